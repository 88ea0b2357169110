"""Kill a run with SIGKILL at random moments, resume it, and hold it against one that was never killed.

    python -m tests.train.killing --moments 10 --work DIR --config configs/cpu.yaml

Each killed run must end with the same batches, records (but for times), scheduler state and weights; what the resume set aside must
equal what took its place; and the audit must pass.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from statistics import fmean

from envsched.audit import audit_run
from envsched.train.checkpoints import sealed_checkpoints
from envsched.train.run_directory import read_metrics

ROOT = Path(__file__).parents[2]


def command(run_dir, arguments):
    program = ["-m", "tests.train.pure_run"] if "--pure" in arguments else ["train.py"]
    return [sys.executable, *program, "--run-dir", str(run_dir), *(word for word in arguments if word != "--pure")]


def run_to_end(run_dir, arguments):
    """Seconds of a run that nobody kills."""
    began = time.monotonic()
    done = subprocess.run(command(run_dir, arguments), cwd=ROOT, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return time.monotonic() - began


def kill_within(run_dir, arguments, num_steps, seconds):
    """Start a run and kill it ``seconds`` after it has recorded ``num_steps`` steps; whether it was still running."""
    process = subprocess.Popen(command(run_dir, arguments), cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None and steps_in(run_dir) < num_steps:
        time.sleep(0.01)
    try:
        process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        return True
    return False


def steps_in(run_dir):
    return len(list((run_dir / "rollouts").glob("step_*.jsonl")))


def records(path):
    """Lines of a rollouts file without the times."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return [{name: value for name, value in line.items() if name != "seconds"} for line in lines]


def content(path):
    return records(path) if path.suffix == ".jsonl" else path.read_bytes()


def differences(reference, run):
    """What in ``run`` is not as in ``reference``, as words."""
    found = []
    for part in ("selector", "rollouts"):
        ours, theirs = ({path.name for path in (folder / part).iterdir()} for folder in (reference, run))
        found += [f"{part}/{name} is only in one" for name in ours ^ theirs]
        found += [f"{part}/{name} differs" for name in ours & theirs if content(reference / part / name) != content(run / part / name)]
    last, other = (max(sealed_checkpoints(folder / "checkpoint").items()) for folder in (reference, run))
    if last[0] != other[0]:
        found.append(f"last checkpoints are after {last[0]} and {other[0]} steps")
    for name in ("model.safetensors",):
        if (last[1] / name).read_bytes() != (other[1] / name).read_bytes():
            found.append(f"{name} differs")
    states = [json.loads((folder / "envsched.json").read_text())["scheduler"] for folder in (last[1], other[1])]
    if without_seconds(states[0]) != without_seconds(states[1]):
        found.append("scheduler states differ")
    for path in (run / "superseded").glob("*/*/*.json*"):
        now = run / path.relative_to(run / "superseded" / path.relative_to(run / "superseded").parts[0])
        if content(path) != content(now):
            found.append(f"{path.relative_to(run)} differs from what took its place")
    return found


def without_seconds(value):
    if isinstance(value, dict):
        return {name: without_seconds(inner) for name, inner in value.items() if name != "seconds"}
    return [without_seconds(inner) for inner in value] if isinstance(value, list) else value


def judge(work, arguments, moments, seed=0, say=print):
    """Differences over all moments, as words; empty is a pass."""
    reference = work / "reference"
    whole = run_to_end(reference, arguments)
    total = steps_in(reference)
    step_seconds = fmean(line["step_time"] for line in read_metrics(reference / "logs/metrics.jsonl"))
    generator = random.Random(seed)
    found = []
    for moment in range(moments):
        run, num_steps = work / f"killed-{moment}", generator.randrange(total)
        seconds = generator.uniform(0, whole / 2 if num_steps == 0 else step_seconds)
        alive = kill_within(run, arguments, num_steps, seconds)
        steps = steps_in(run)
        run_to_end(run, [*arguments, "--resume"])
        audit_run(run)
        wrong = differences(reference, run)
        shelved = len(list((run / "superseded").glob("*/rollouts/*")))
        words = f"moment {moment}: {'killed' if alive else 'ended'} {seconds:.2f} s into step {num_steps} of {total}"
        say(f"{words}, {steps} steps recorded, {shelved} run again: {'; '.join(wrong) or 'equal'}", flush=True)
        found += [f"moment {moment}: {words}" for words in wrong]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--moments", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--work", type=Path, required=True, help="a fresh folder")
    flags, arguments = parser.parse_known_args()
    return 1 if judge(flags.work, arguments, flags.moments, flags.seed) else 0


if __name__ == "__main__":
    sys.exit(main())
