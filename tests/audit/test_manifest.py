import resource

import pytest

from envsched.audit import make_manifest, read_manifest, write_batch, write_manifest
from envsched.baselines import build_scheduler
from envsched.errors import AuditError
from envsched.types import Batch, Lane, Pick
from tests.scheduler.worlds import make_features, make_pool, records_of, small_config


def manifests(steps=4):
    pool = make_pool()
    scheduler = build_scheduler("envsched", pool, small_config(), 3, make_features(pool))
    for step in range(steps):
        batch = scheduler.select(step)
        yield make_manifest(batch, scheduler)
        scheduler.observe(records_of(batch))


def test_a_manifest_survives_its_file_exactly(tmp_path):
    for manifest in manifests():
        write_manifest(tmp_path / "manifest.json", manifest)
        assert read_manifest(tmp_path / "manifest.json") == manifest
        assert manifest.digests.keys() == {"pool", "features", "graph", "history", "config"}


def test_on_a_full_disk_the_old_manifest_stays_whole(tmp_path):
    """The limit on file sizes gives what a full disk gives: a write that stops half-way with an error."""
    path = tmp_path / "manifest.json"
    first, second = manifests(2)
    write_manifest(path, first)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(OSError, match=r"File too large.*manifest\.json"):
            write_manifest(path, second)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert read_manifest(path) == first
    assert [entry.name for entry in tmp_path.iterdir()] == ["manifest.json"]


class FirstTask:
    """A user's own scheduler may know no more than the verbs."""

    def select(self, step):
        return Batch(step, (Pick("a", "b", Lane.EXPLOITATION, 0.5),))


def test_a_scheduler_with_the_verbs_alone_gets_a_manifest_without_digests(tmp_path):
    scheduler = FirstTask()
    manifest = make_manifest(scheduler.select(2), scheduler)
    assert (manifest.scheduler, manifest.digests, manifest.batch.step) == ("FirstTask", {}, 2)
    write_batch(tmp_path, scheduler.select(2), scheduler)
    assert read_manifest(tmp_path / "selector" / "task_manifest.step_2.json") == manifest


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{", r"m\.json is not valid JSON"),
        ("[]", r"m\.json: expected a JSON object, came list"),
        ("{}", r"m\.json is no manifest: KeyError 'picks'"),
        (None, r"m\.json: No such file"),
    ],
)
def test_a_file_that_is_no_manifest_is_named(tmp_path, content, says):
    if content is not None:
        (tmp_path / "m.json").write_text(content)
    with pytest.raises(AuditError, match=says):
        read_manifest(tmp_path / "m.json")
