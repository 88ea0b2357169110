"""What goes wrong in the middle of a run: one rank or the only process killed at a known point, no room on the disk, no leave to write."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from envsched.audit import audit_run
from envsched.train.checkpoints import SEAL
from tests.train.killing import ROOT, differences

pytestmark = pytest.mark.slow

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
MOMENTS = {  # a file that appears when the step is in this part of its way
    "generation": "selector/task_manifest.step_3.json",
    "update": "rollouts/step_3.jsonl",
    "save": "checkpoint/checkpoint-4",
}
PATIENCE = 120  # seconds that the other ranks may take to stop


def launched(number, run_dir, flags):
    ranks = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(number)] if number > 1 else []
    words = [sys.executable, *ranks, "-m", "tests.train.pure_run", "--run-dir", str(run_dir), *flags]
    return subprocess.Popen(words, cwd=ROOT, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def ended(process, timeout=600):
    said, _ = process.communicate(timeout=timeout)
    return process.returncode, said


def rank_of(launcher, rank):
    """Process id of a rank under a launcher."""
    for entry in Path("/proc").iterdir():
        try:
            parent = (entry / "stat").read_text().rpartition(")")[2].split()[1]
            if parent == str(launcher) and f"RANK={rank}" in (entry / "environ").read_text().split("\0"):
                return int(entry.name)
        except (OSError, IndexError):
            continue
    raise AssertionError(f"no rank {rank} under process {launcher}")


def wait_for(path, process):
    while not path.exists():
        assert process.poll() is None, process.communicate()[0][-3000:]
        time.sleep(0.002)


@pytest.fixture(scope="module")
def references(tmp_path_factory, run_flags):
    """Runs that nobody disturbs, by number of processes."""
    made = {}

    def of(number):
        if number not in made:
            made[number] = tmp_path_factory.mktemp("reference") / "run"
            code, said = ended(launched(number, made[number], run_flags))
            assert code == 0, said[-3000:]
        return made[number]

    return of


@pytest.mark.parametrize("moment", MOMENTS)
def test_when_a_rank_is_killed_the_others_stop_and_a_resume_goes_on_alike(tmp_path, run_flags, references, moment):
    process = launched(2, tmp_path / "run", run_flags)
    wait_for(tmp_path / "run" / MOMENTS[moment], process)
    os.kill(rank_of(process.pid, 1), signal.SIGKILL)
    began = time.monotonic()
    code, said = ended(process, PATIENCE)
    print(f"killed in {moment}: the launcher was back after {time.monotonic() - began:.1f} s")
    assert code != 0
    assert "Signal 9 (SIGKILL)" in said, said[-3000:]
    code, said = ended(launched(2, tmp_path / "run", [*run_flags, "--resume"]))
    assert code == 0, said[-3000:]
    assert differences(references(2), tmp_path / "run") == []
    audit_run(tmp_path / "run")


def test_a_run_killed_in_the_middle_of_a_save_goes_on_from_the_one_before(tmp_path, run_flags, references):
    process = launched(1, tmp_path / "run", run_flags)
    wait_for(tmp_path / "run/checkpoint/checkpoint-4", process)
    process.kill()
    ended(process)
    assert not (tmp_path / "run/checkpoint/checkpoint-4" / SEAL).exists()
    code, said = ended(launched(1, tmp_path / "run", [*run_flags, "--resume"]))
    assert code == 0, said[-3000:]
    assert "from step 2 of 6" in said
    assert "missing keys" not in said
    assert differences(references(1), tmp_path / "run") == []


NO_MOUNTS = subprocess.run(["unshare", "-rm", "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True).returncode != 0
SCENE = """
set -u
mount -t tmpfs -o size={size} none {folder}
{python} -m tests.train.pure_run --run-dir {folder}/run {flags} > {out}/first 2>&1; echo $? > {out}/code
mount -o remount,size=64m {folder}
{python} -m tests.train.pure_run --run-dir {folder}/run {flags} --resume > {out}/second 2>&1; echo $? >> {out}/code
cp -r {folder}/run {out}/run
"""


@pytest.mark.skipif(NO_MOUNTS, reason="needs leave to mount in a namespace of its own")
@pytest.mark.parametrize("size", ["150k", "700k", "1300k"])
def test_a_full_disk_is_one_line_and_nothing_is_lost(tmp_path, run_flags, references, size):
    """The sizes fill up at the first files, in the first save, in a later one."""
    (tmp_path / "disk").mkdir()
    scene = SCENE.format(size=size, folder=tmp_path / "disk", python=sys.executable, flags=" ".join(run_flags), out=tmp_path)
    done = subprocess.run(["unshare", "-rm", "bash", "-c", scene], cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, timeout=900)
    first, second = (tmp_path / "first").read_text(), (tmp_path / "second").read_text()
    assert (tmp_path / "code").read_text().split() == ["2", "0"], done.stderr + first[-2000:] + second[-2000:]
    assert "Traceback" not in first
    (line,) = [line for line in first.splitlines() if line.startswith("error: ")]
    assert "No space left on device" in line
    assert differences(references(1), tmp_path / "run") == []
    audit_run(tmp_path / "run")


@pytest.mark.skipif(NO_MOUNTS, reason="needs leave to mount in a namespace of its own")
def test_a_run_directory_that_can_not_be_written_is_one_line(tmp_path, run_flags):
    (tmp_path / "disk").mkdir()
    words = f"mount -t tmpfs -o ro none {tmp_path}/disk && {sys.executable} train.py --run-dir {tmp_path}/disk/run {' '.join(run_flags)}"
    done = subprocess.run(["unshare", "-rm", "bash", "-c", words], cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert [line for line in done.stderr.splitlines() if line.startswith("error: ")] == [
        f"error: {tmp_path}/disk/run: Read-only file system; mend it, then --resume goes on"
    ]


def test_a_run_that_was_only_prepared_is_trained_by_resuming_it(tmp_path, run_flags):
    flags = [*run_flags, "--max-steps", "1"]
    assert ended(launched(1, tmp_path / "run", [*flags, "--prepare-only"]))[0] == 0
    prepared = shutil.copy(tmp_path / "run/selector/task_manifest.step_0.json", tmp_path)
    code, said = ended(launched(1, tmp_path / "run", [*flags, "--resume"]))
    assert code == 0, said[-3000:]
    assert Path(prepared).read_bytes() == (tmp_path / "run/selector/task_manifest.step_0.json").read_bytes()
