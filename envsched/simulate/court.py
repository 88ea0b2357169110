"""Many runs: every scheduler in every world, over worker processes, resumable; then means with 95% intervals.

Letters: R runs (worlds), T steps.
"""

import json
import multiprocessing
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import envsched
from envsched.config import SchedulerConfig
from envsched.errors import ConfigError
from envsched.files import canonical_json, digest, read_lines
from envsched.progress import track
from envsched.simulate.calibration import load_kind
from envsched.simulate.intervals import Interval, compared, interval
from envsched.simulate.line_up import prepare
from envsched.simulate.runs import Setting, environment_pool, make_learner, run_schedule, summary, world_features

REFERENCES = ("random", "oracle")  # always run: share and regret are relative to them


@dataclass(frozen=True)
class Job:
    """One run: a scheduler by its line-up name (``envsched``, ``envsched:half_life=24``) in one setting."""

    scheduler: str
    setting: Setting
    config: SchedulerConfig

    def key(self) -> str:
        """Same key, same numbers: it covers the job and every line of the package."""
        return digest(canonical_json([self.scheduler, asdict(self.setting), self.config.model_dump(mode="json")]), package_digest())


def run_job(job: Job) -> dict[str, Any]:
    """Run it; a pure function of the job."""
    setting = job.setting
    pool = environment_pool(setting.num_environments, setting.tasks_per_environment)
    world, learner = make_learner(setting, load_kind(setting.learner))
    difficulty = 100 * (1 - learner.moments()[0])
    scheduler = prepare(job.scheduler, pool, job.config, setting.seed, world_features(world, pool), difficulty)
    trace = run_schedule(scheduler, learner, pool, setting.steps, job.config.group_size)
    return summary(trace)


def run_jobs(
    jobs: Sequence[Any], run: Callable[[Any], dict[str, Any]], workers: int, journal: Path | None, description: str
) -> list[dict[str, Any]]:
    """Results in the order of ``jobs``. Each is written to ``journal`` as it comes, and read from there when asked again.

    Args:
        jobs: each has a ``key()``.
        run: a function at the top of a module, as it travels to worker processes.
        workers: processes; with 1 all runs here. The numbers do not depend on it.
        journal: JSON lines of finished runs; none keeps nothing.
    """
    known = _read_journal(journal)
    missing = {job.key(): job for job in jobs if job.key() not in known}
    with _journal_writer(journal) as write:
        for key, result in track(_results(missing, run, workers), description, total=len(missing)):
            known[key] = result
            write(key, result)
    return [known[job.key()] for job in jobs]


def hold_court(
    schedulers: Sequence[str], settings: Iterable[Setting], config: SchedulerConfig, workers: int = 1, journal: Path | None = None
) -> dict[str, list[dict[str, Any]]]:
    """Summaries by scheduler, one per setting; ``random`` and ``oracle`` are run beside those asked for.

    Each figure gets ``captured_share`` and ``regret`` from the same world's random and oracle.

    Raises:
        ConfigError: an unknown scheduler or setting.
    """
    settings = list(settings)
    names = list(dict.fromkeys([*schedulers, *REFERENCES]))
    jobs = [Job(name, setting, config) for setting in settings for name in names]
    results = run_jobs(jobs, run_job, workers, journal, "runs")
    table = {name: results[i :: len(names)] for i, name in enumerate(names)}
    return {
        name: [
            {**one, "figures": compared(one["figures"], low["figures"], high["figures"])}
            for one, low, high in zip(table[name], table["random"], table["oracle"], strict=True)
        ]
        for name in names
    }


def tabulate(results: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, dict[str, Interval]]:
    """Scheduler -> figure -> mean, low, high."""
    return {
        name: {figure: interval([run["figures"][figure] for run in runs]) for figure in runs[0]["figures"]}
        for name, runs in results.items()
    }


def differences(results: Mapping[str, Sequence[Mapping[str, Any]]], ours: str) -> dict[str, dict[str, Interval]]:
    """Ours minus each other, paired by world: mean variance (relative to the other's) and captured share."""
    out = {}
    for name in results:
        if name == ours:
            continue
        pairs = [(a["figures"], b["figures"]) for a, b in zip(results[ours], results[name], strict=True)]
        out[name] = {
            "mean_variance_ratio": interval([a["mean_variance"] / b["mean_variance"] for a, b in pairs]),
            "captured_share": interval([a["captured_share"] - b["captured_share"] for a, b in pairs]),
            "environments": interval([a["environments"] - b["environments"] for a, b in pairs]),
        }
    return out


def by_first_batch(runs: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, list[float]]] | None:
    """Mean variance by step of the quarter of runs whose first batch had the lowest, and the highest, variance; None below 8 runs."""
    if len(runs) < 8:
        return None
    curves = np.array([run["steps"]["variance"] for run in runs])
    order = np.argsort(curves[:, 0], kind="stable")
    quarter = len(runs) // 4
    halves = {"lowest_quarter": order[:quarter], "highest_quarter": order[-quarter:]}
    return {name: {"variance": curves[rows].mean(axis=0).tolist()} for name, rows in halves.items()}


def journal_of(output: Path | None) -> Path | None:
    """Where finished runs are kept until ``output`` is written; none without an output."""
    return None if output is None else output.with_name(f"{output.name}.runs.jsonl")


def _results(missing: Mapping[str, Any], run: Callable[[Any], dict[str, Any]], workers: int):
    if workers == 1:
        yield from ((key, run(job)) for key, job in missing.items())
        return
    # One thread a process: BLAS and OpenMP pools of several workers on few cores only wait for each other.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as executor:
        futures = {executor.submit(run, job): key for key, job in missing.items()}
        for future in as_completed(futures):
            yield futures[future], future.result()


def _read_journal(journal: Path | None) -> dict[str, dict[str, Any]]:
    known: dict[str, dict[str, Any]] = {}
    if journal is None or not journal.exists():
        return known
    for number, line in read_lines(journal):
        try:
            entry = json.loads(line)
        except json.JSONDecodeError:
            if line.endswith("\n"):
                raise ConfigError(f"{journal}, line {number} is not JSON; remove the line or the file") from None
            continue  # a run that was being written when the process died: it runs again
        known[entry["key"]] = entry["result"]
    return known


class _journal_writer:
    def __init__(self, journal: Path | None) -> None:
        self.journal = journal

    def __enter__(self) -> Callable[[str, Mapping[str, Any]], None]:
        if self.journal is None:
            return lambda key, result: None
        self.journal.parent.mkdir(parents=True, exist_ok=True)
        whole = self.journal.read_text(encoding="utf-8").rpartition("\n")[0] if self.journal.exists() else ""
        self.stream = open(self.journal, "w", encoding="utf-8")
        self._put(whole)
        return lambda key, result: self._put(json.dumps({"key": key, "result": result}))

    def __exit__(self, *_: object) -> None:
        if self.journal is not None:
            self.stream.close()

    def _put(self, line: str) -> None:
        if line:
            self.stream.write(line + "\n")
            self.stream.flush()


@cache
def package_digest() -> str:
    """``code_digest`` of the package itself, read once."""
    return code_digest(Path(envsched.__file__).parent)


def code_digest(folder: Path) -> str:
    """SHA-256 of a package's code and of its calibration."""
    files = sorted([*folder.rglob("*.py"), *folder.glob("simulate/*.json")])
    return digest(*(file.read_bytes() for file in files))
