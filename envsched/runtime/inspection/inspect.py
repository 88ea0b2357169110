"""A pool held up to the light: every environment constructed and probed, every check run at the start and on nothing."""

from collections.abc import Hashable, Iterable, Sequence
from typing import TypeVar

import numpy as np

from envsched.config import RuntimeConfig
from envsched.files import canonical_json, digest
from envsched.pool import Pool
from envsched.progress import track
from envsched.runtime.episode import Episode
from envsched.runtime.inspection.probe import probe_calls
from envsched.runtime.inspection.report import EnvironmentReport, Finding, PoolReport, Severity, TaskReport
from envsched.runtime.inspection.sources import reads
from envsched.runtime.inspection.texts import injected, texts_of_environment, texts_of_task
from envsched.runtime.outcome import CheckReport
from envsched.runtime.process import ProcessLost
from envsched.runtime.runtime import EnvironmentRuntime
from envsched.types import Check, Environment, Status, Task

_EMPTY = " (inspected without a task)"  # no task key ends so
_PROBE_SEED = 0
_CHUNK = 32  # tasks that stand side by side
Report = TypeVar("Report")


def inspect_pool(pool: Pool, config: RuntimeConfig | None = None) -> PoolReport:
    """Inspect every environment and task; their code runs in worker processes only.

    Raises:
        WorkerError: no worker starts, or fewer walls stand than the config requires.
    """
    num_tasks = dict(zip((environment.key for environment in pool.environments), np.diff(pool.offsets).tolist(), strict=True))
    stand_ins = [Task(key=key + _EMPTY, environment=key, checks=(Check("", ""),)) for key, size in num_tasks.items() if size == 0]
    everything = [*pool.tasks, *stand_ins]
    first = {task.environment: task for task in reversed(everything)}
    with EnvironmentRuntime(Pool(pool.environments, everything), config) as runtime:
        environments = [
            _inspect_environment(runtime, environment, first[environment.key], num_tasks[environment.key])
            for environment in track(pool.environments, "environments")
        ]
        chunks = [pool.tasks[start : start + _CHUNK] for start in range(0, len(pool), _CHUNK)]
        tasks = [report for chunk in track(chunks, "tasks") for report in _inspect_tasks(runtime, chunk)]
        walls = runtime.protections.standing
    _find_duplicates(pool, environments, tasks)
    return PoolReport(pool.fingerprint, tuple(environments), tuple(tasks), walls)


def _inspect_environment(runtime: EnvironmentRuntime, environment: Environment, task: Task, num_tasks: int) -> EnvironmentReport:
    report = EnvironmentReport(environment.key, num_tasks, reads=reads(environment.source))
    for place, words in injected(texts_of_environment(environment)):
        report.findings.append(Finding(Severity.WARNING, "injected_text", f"{place} {words}"))
    if num_tasks == 0:
        report.findings.append(Finding(Severity.NOTE, "no_task", "the pool has no task for it"))
    with runtime.start(task.key, _PROBE_SEED) as episode:
        if episode.status is not Status.OK:
            report.stands = False
            report.findings.append(Finding(Severity.ERROR, "does_not_stand", episode.problem))
            return report
        report.tools_without_method, _ = _methods(episode, environment)
    if report.tools_without_method:
        report.findings.append(Finding(Severity.ERROR, "tool_without_method", ", ".join(report.tools_without_method)))
    _probe(runtime, environment, task, report)
    return report


def _methods(episode: Episode, environment: Environment) -> tuple[tuple[str, ...], tuple[str, ...]]:
    try:
        return episode.methods(environment.tool_names)
    except ProcessLost:
        return (), ()


def _probe(runtime: EnvironmentRuntime, environment: Environment, task: Task, report: EnvironmentReport) -> None:
    """The same calls in four runs: two seeded ones must be equal, two unseeded ones tell whether that takes a seed."""
    calls = list(probe_calls(environment, task.initial_state))
    report.num_probed_calls = len(calls)
    seen = []
    for seed in (_PROBE_SEED, _PROBE_SEED, None, None):
        with runtime.start(task.key, seed) as episode:
            texts = []
            for tool, arguments in calls:
                texts.append(episode.call(tool, arguments, validate=False).text)
                if episode.status is not Status.OK:
                    report.findings.append(Finding(Severity.ERROR, "tool_breaks", f"{tool}: {episode.problem}"))
                    return
            seen.append((texts, episode.snapshot()))
    report.deterministic_with_seed = seen[0] == seen[1]
    report.varies_between_runs = seen[2] != seen[3]
    if not report.deterministic_with_seed:
        report.findings.append(Finding(Severity.ERROR, "nondeterministic", "two runs with one seed differ"))
    elif report.varies_between_runs:
        report.findings.append(Finding(Severity.NOTE, "varies_between_runs", "it uses clock, uuid or chance; equal with a seed"))


def _inspect_tasks(runtime: EnvironmentRuntime, tasks: Sequence[Task]) -> list[TaskReport]:
    episodes = runtime.start_many([task.key for task in tasks], [_PROBE_SEED] * len(tasks))
    reports = []
    for episode in episodes:
        with episode:
            reports.append(_inspect_task(episode))
    return reports


def _inspect_task(episode: Episode) -> TaskReport:
    task = episode.task
    report = TaskReport(task.key, task.environment, len(task.checks))
    for place, words in injected(texts_of_task(task)):
        report.findings.append(Finding(Severity.WARNING, "injected_text", f"{place} {words}"))
    start, nothing = episode.score(), episode.score(empty=True)
    if start.reward is None:
        words = "; ".join(start.errors) or episode.problem or "it has no check"
        report.findings.append(Finding(Severity.ERROR, "no_reward", words))
        return report
    report.no_op_reward = start.reward
    report.pass_at_start, report.pass_on_empty_state = _passing(start), _passing(nothing)
    report.raise_at_start, report.raise_on_empty_state = _raising(start), _raising(nothing)
    report.vacuous = tuple(sorted(set(report.pass_at_start) & set(report.pass_on_empty_state)))
    report.findings += [Finding(Severity.WARNING, problem.kind, f"check {problem.check}: {problem.text}") for problem in start.problems]
    if report.mask:
        report.findings.append(Finding(Severity.ERROR, "teaches_nothing", report.mask))
    elif len(report.pass_at_start) > len(task.checks) / 2:
        words = f"{len(report.pass_at_start)} of {len(task.checks)} checks pass before anything is done (reward {start.reward:.4f})"
        report.findings.append(Finding(Severity.WARNING, "mostly_done_at_start", words))
    return report


def _passing(report: CheckReport) -> tuple[int, ...]:
    return tuple(position for position, passed in enumerate(report.passed) if passed)


def _raising(report: CheckReport) -> tuple[int, ...]:
    return tuple(problem.check for problem in report.problems if problem.kind == "raised")


def _find_duplicates(pool: Pool, environments: list[EnvironmentReport], tasks: list[TaskReport]) -> None:
    """Environments of equal code and tools, tasks of equal prompt, state and checks: keys differ, content does not."""
    codes = (digest(environment.source, canonical_json(list(environment.tools))) for environment in pool.environments)
    contents = (digest(canonical_json([t.environment, t.prompt, t.initial_state, [c.source for c in t.checks]])) for t in pool.tasks)
    for report, twin in _twins(environments, codes):
        report.findings.append(Finding(Severity.WARNING, "duplicate_environment", f"the same code and tools as {twin.environment}"))
    for report, twin in _twins(tasks, contents):
        report.findings.append(Finding(Severity.WARNING, "duplicate_task", f"the same prompt, state and checks as {twin.task}"))


def _twins(reports: list[Report], contents: Iterable[Hashable]) -> Iterable[tuple[Report, Report]]:
    first: dict[Hashable, Report] = {}
    for report, content in zip(reports, contents, strict=True):
        if content in first:
            yield report, first[content]
        first.setdefault(content, report)
