"""Derive every batch of a run again from pool, resolved config, saved features and rollouts; never from stored scores."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from envsched.audit.epochs import read_epochs
from envsched.audit.layout import RunLayout
from envsched.audit.manifest import make_manifest, read_manifest, read_mapping
from envsched.audit.writing import input_audit
from envsched.baselines import build_scheduler, scheduler_entry
from envsched.config import load_config
from envsched.errors import AuditError, ConfigError, EnvschedError
from envsched.features import Features
from envsched.filters import Findings
from envsched.history import read_records
from envsched.pool import Pool
from envsched.pool.opening import open_pool
from envsched.pool.pool import OutlinedPool
from envsched.scheduler import carry_over
from envsched.scheduler.recorded import RecordedScheduler
from envsched.types import Manifest, Pick, RolloutRecord, Scheduler

SAME_NUMBER = 1e-9  # scores and terms may differ by rounding between machines; picks may not differ at all


@dataclass(frozen=True, slots=True)
class AuditReport:
    """An audit that found no difference."""

    steps: tuple[int, ...]  # of the manifests that were derived again
    num_records: int  # rollout records that they follow from
    notes: tuple[str, ...]  # what a killed run left half-written


def audit_run(folder: Path | str, pool: str | None = None) -> AuditReport:
    """Check every manifest and input audit of a run directory, in order of steps.

    Records of ``rollouts/step_N.jsonl`` count as observed between the batches of N and N + 1, whatever earlier step made them.

    Args:
        folder: of the run.
        pool: where its pool lies now; none: where the config says, a relative path seen from ``folder``.

    Raises:
        ConfigError: the folder holds no run, or its config is not one that can be read.
        AuditError: the first step that differs and how, or what is missing to derive it.
    """
    layout = RunLayout(Path(folder))
    if not layout.config.is_file():
        raise ConfigError(f"{layout.folder} is no run directory: it has no {layout.config.name}; give the directory of a run")
    manifests, audits = set(layout.manifest_steps()), set(layout.input_audit_steps())
    _refuse_gaps(layout, manifests, audits)
    steps = sorted(manifests | audits)
    epochs = _Epochs(layout, steps[0] if steps else 0, pool, max(manifests, default=-1))
    scheduler = epochs.first()
    notes: list[str] = []
    pending, num_records = layout.rollout_steps(), 0
    for step in steps:
        try:
            while pending and pending[0] < step:
                records, problems = _records(layout, pending.pop(0))
                scheduler.observe(records)
                num_records += len(records)
                notes += problems
            scheduler = epochs.follow(scheduler, step)
            if step in audits:
                _compare_inputs(read_mapping(layout.input_audit(step)), input_audit(step, scheduler))
            if step in manifests:
                _compare(read_manifest(layout.manifest(step)), make_manifest(scheduler.select(step), scheduler))
        except EnvschedError as error:
            raise AuditError(f"step {step}: {error}") from error
    for step in pending:
        notes += _unvouched(layout, step, scheduler)
    return AuditReport(tuple(sorted(manifests)), num_records, tuple(notes))


def _refuse_gaps(layout: RunLayout, manifests: set[int], audits: set[int]) -> None:
    """A run writes a batch per step, each before its rollouts; only the next step's input audit may stand alone."""
    rollouts = set(layout.rollout_steps())
    end = max(manifests, default=-1) + 1
    expected = manifests | rollouts | (audits - {end}) | set(range(min(manifests, default=0), end))
    missing = sorted(expected - manifests)
    if missing:
        step = missing[0]
        left = " or ".join(str(path.name) for path in (layout.rollouts(step), layout.input_audit(step)) if path.exists())
        beside = f"; {left} is there without it" if left else ""
        raise AuditError(f"step {step}: {layout.manifest(step)} is missing{beside}; restore it from the run")


def _records(layout: RunLayout, step: int) -> tuple[list[RolloutRecord], list[str]]:
    """Records that came in at ``step``, and what a killed run left half-written."""
    records, problems = read_records(layout.rollouts(step))
    early = next((record for record in records if record.step > step), None)
    if early is not None:
        raise AuditError(
            f"{layout.rollouts(step)} has a record of step {early.step} (task {early.task!r}), which was not chosen yet; "
            "it was moved or its step was edited"
        )
    return records, problems


def _unvouched(layout: RunLayout, step: int, scheduler: Scheduler) -> list[str]:
    """Notes on rollouts that no batch and no input audit follows: they must fit, more can't be told."""
    try:
        records, problems = _records(layout, step)
        scheduler.observe(records)
    except EnvschedError as error:
        raise AuditError(f"step {step}: {error}") from error
    return [*problems, f"{layout.rollouts(step)}: no later batch or input audit vouches for its {len(records)} records"]


class _Epochs:
    """The run's scheduler as it was before its first step, and on each pool that came later.

    Args:
        layout: of the run.
        first_step: blamed for what is missing at the start.
        pool_name: of the last pool; none: as the config names it.
        last_batch: a change after it has not come into force.
    """

    def __init__(self, layout: RunLayout, first_step: int, pool_name: str | None, last_batch: int) -> None:
        self._layout, self._pool_name, self._first_step = layout, pool_name, first_step
        self._config = load_config(layout.config)
        self._gone = read_epochs(layout)
        self._since = [0, *(until for until, _ in self._gone)]
        self._pending = [number for number, since in enumerate(self._since) if 0 < since <= last_batch]

    def first(self) -> Scheduler:
        try:
            return self._scheduler(0)
        except EnvschedError as error:
            raise AuditError(f"step {self._first_step}: {error}") from error

    def follow(self, scheduler: Scheduler, step: int) -> Scheduler:
        """The scheduler that chooses for ``step``, all records before it observed."""
        while self._pending and self._since[self._pending[0]] <= step:
            following = self._scheduler(self._pending.pop(0))
            state, _ = carry_over(scheduler.state_dict(), following.pool, step)
            following.load_state_dict(state)
            scheduler = following
        return scheduler

    def _scheduler(self, number: int) -> RecordedScheduler:
        config, since = self._config, self._since[number]
        run, entry = config.train, scheduler_entry(config.train.scheduler)
        if number < len(self._gone) and entry.reads_content:
            raise AuditError(
                f"{run.scheduler} reads the content of tasks, and the pool of the steps before {self._gone[number][0]} is gone"
            )
        pool = OutlinedPool(self._gone[number][1]) if number < len(self._gone) else self._last_pool(run.pool)
        features = Features.load(self._layout.features_since(since), pool) if entry.uses_features else None
        findings = Findings.read(self._layout.findings_since(since), pool) if self._layout.findings_since(since).exists() else None
        return build_scheduler(run.scheduler, pool, config.scheduler, run.seed, features, findings)

    def _last_pool(self, named: str) -> Pool:
        return open_pool(named, self._layout.folder) if self._pool_name is None else open_pool(self._pool_name)


def _compare_inputs(written: Mapping[str, Any], derived: Mapping[str, Any]) -> None:
    digests = written.get("digests", {})
    if not isinstance(digests, Mapping):
        raise AuditError(f"the input audit has digests {digests!r}, expected an object")
    _compare_digests(digests, derived.get("digests", {}), "input audit")
    for name in sorted(written.keys() | derived.keys()):
        if written.get(name) != derived.get(name):
            raise AuditError(f"the input audit has {name} {written.get(name)!r}, derived is {derived.get(name)!r}")


def _compare(written: Manifest, derived: Manifest) -> None:
    """Say how a manifest differs from what its inputs give."""
    _compare_digests(written.digests, derived.digests, "manifest")
    version = "" if written.version == derived.version else f" (written by envsched {written.version}, this is {derived.version})"
    for name in ("scheduler", "seed"):
        if getattr(written, name) != getattr(derived, name):
            raise AuditError(f"the manifest has {name} {getattr(written, name)!r}, the run {getattr(derived, name)!r}")
    if written.batch.step != derived.batch.step:
        raise AuditError(f"the manifest says step {written.batch.step}")
    if len(written.batch.picks) != len(derived.batch.picks):
        raise AuditError(f"the manifest has {len(written.batch.picks)} picks, derived are {len(derived.batch.picks)}{version}")
    for position, (old, new) in enumerate(zip(written.batch.picks, derived.batch.picks, strict=True)):
        for name in (field.name for field in fields(Pick)):
            has, gives = getattr(old, name), getattr(new, name)
            if not _same(has, gives):
                raise AuditError(f"pick {position} differs in {name}: the manifest has {has!r}, derived is {gives!r}{version}")
    if written.graph != derived.graph:
        raise AuditError(f"the manifest has the graph {dict(written.graph)}, derived is {dict(derived.graph)}{version}")
    if not _same(written.batch.gap, derived.batch.gap):
        raise AuditError(f"the manifest has gap {written.batch.gap!r}, derived is {derived.batch.gap!r}{version}")
    if written.pool_change != derived.pool_change:
        raise AuditError(f"the manifest has pool change {written.pool_change}, derived is {derived.pool_change}{version}")
    if written.batch.masked != derived.batch.masked:
        task = min(written.batch.masked.items() ^ derived.batch.masked.items())[0]
        said = written.batch.masked.get(task), derived.batch.masked.get(task)
        raise AuditError(f"the manifest has task {task!r} masked with {said[0]!r}, derived is {said[1]!r}{version}")
    if written.batch.relaxed != derived.batch.relaxed:
        raise AuditError(f"the manifest has relaxations {written.batch.relaxed}, derived are {derived.batch.relaxed}{version}")


def _compare_digests(written: Mapping[str, str], derived: Mapping[str, str], where: str) -> None:
    blame = {
        "pool": "a text, tool, state or check of the pool changed",
        "features": "the features file changed",
        "graph": "features or numbers of neighbours changed",
        "history": "rollouts of an earlier step changed",
        "config": "resolved_config.yaml changed",
        "findings": "the report of pool check changed",
        "leases": "an earlier batch, or when its records came, changed",
    }
    for name in (*blame, *sorted((written.keys() | derived.keys()) - blame.keys())):
        if written.get(name) != derived.get(name):
            raise AuditError(
                f"the {where} has {name} digest {str(written.get(name))[:12]}, derived is {str(derived.get(name))[:12]}"
                f"; {blame.get(name, 'an input changed')}"
            )


def _same(old: Any, new: Any) -> bool:
    if isinstance(new, Mapping):
        return old.keys() == new.keys() and all(_same(old[name], new[name]) for name in new)
    return abs(old - new) <= SAME_NUMBER if isinstance(new, float) and isinstance(old, (int, float)) else old == new
