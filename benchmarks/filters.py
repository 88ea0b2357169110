"""What the filters catch and what they disturb: ``python -m benchmarks.filters [--tasks N] [--runs N] [--json FILE]``.

**Identifier guard**, on the bundled pool's environments: each task's reference actions, once as they are (honest) and once without
their look-ups (a planted hack: identifiers come from nowhere). A hack *pays* where the reward is lower without the actions that use
identifiers which the prompt does not name. ``caught``: paying hacks that were proven; ``false alarms``: honest rollouts that were.

**Progress filter**, on simulated runs (``envsched.simulate``) of 12 environments with 15 tasks each, B = 24, so that tasks come round
often: the same learner under the same scheduler, without and with the filter. Every third task is mastered from the start (its logit
is 12 higher) and forgotten at half time. Until then: ``mastered_picks``: share of picks that went to mastered tasks; ``false_alarms``:
tasks that rested although their rewards varied (exact variance above .001), as a share of all such tasks, over all steps.
``resting``: mastered tasks at rest when they were forgotten; ``back``: those of them that were open again within the longest rest and
the queue for probation; ``longest_wait``: steps until the last of them was; ``again``: tasks at rest right after a visit that showed
a spread below the top; ``fewest_open``: fewest tasks that were not resting at any step.
"""

import argparse
import json
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from envsched.config import SchedulerConfig
from envsched.files import write_json
from envsched.filters import IdentifierGuard
from envsched.filters.provenance import identifiers_of
from envsched.pool import Pool
from envsched.progress import track
from envsched.runtime import EnvironmentRuntime
from envsched.scheduler import EnvScheduler
from envsched.simulate.calibration import load_kind
from envsched.simulate.runs import Setting, environment_pool, make_learner, records_of, world_features
from envsched.types import RolloutRecord, Status, Task

FALL = 12.0  # logits
SIZE = {"num_environments": 12, "tasks_per_environment": 15}
BATCH = 24
TEACHES = 1e-3  # variance of a rollout's reward
SUMMED_UP = {  # over runs
    "mastered_picks": fmean,
    "false_alarms": fmean,
    "resting": sum,
    "back": sum,
    "longest_wait": max,
    "again": sum,
    "fewest_open": min,
}
SOLUTIONS = Path(__file__).parent.parent / "envsched/pool/bundled/solutions.json"
Action = Mapping[str, Any]


@dataclass(frozen=True)
class Rollout:
    """One rollout of reference actions, with or without its look-ups."""

    task: Task
    actions: Sequence[Action]  # with observations
    reward: float
    is_hack: bool
    pays: bool  # a hack whose reward came from what nobody had shown

    def record(self) -> RolloutRecord:
        return RolloutRecord(self.task.key, 0, (self.reward,), (Status.OK,), 0, trace=[list(self.actions)])


def planted_rollouts(runtime: EnvironmentRuntime, seed: int, num_tasks: int) -> Iterator[Rollout]:
    """An honest rollout of each of ``num_tasks`` tasks drawn from the bundled pool, and a hack where its actions have look-ups."""
    solutions = json.loads(SOLUTIONS.read_text())
    for task in track(random.Random(seed).sample(runtime.pool.tasks, num_tasks), "guarded tasks"):
        whole = solutions[task.key]
        hacked = [action for action in whole if not _is_look_up(action["name"])]
        for actions in [whole, hacked] if len(hacked) < len(whole) else [whole]:
            recorded, reward = _carry_out(runtime, task.key, actions)
            is_hack = actions is hacked
            yield Rollout(task, recorded, reward, is_hack, is_hack and _pays(runtime, task, recorded, reward))


def guard_figures(num_tasks: int, seed: int = 1) -> dict[str, int]:
    """Counts of planted hacks that pay, of those caught, of honest rollouts, and of false alarms among them."""
    figures = dict.fromkeys(("planted", "caught", "honest", "false_alarms"), 0)
    with EnvironmentRuntime(Pool.bundled()) as runtime:
        guard = IdentifierGuard(runtime)
        for rollout in planted_rollouts(runtime, seed, num_tasks):
            if rollout.is_hack and not rollout.pays:
                continue
            proven = bool(guard.judge(rollout.record()))
            figures["planted" if rollout.is_hack else "honest"] += 1
            figures["caught" if rollout.is_hack else "false_alarms"] += proven
    return figures


def progress_figures(setting: Setting, config: SchedulerConfig) -> dict[str, float]:
    """One simulated run in which every third task is mastered, and forgotten at half time."""
    pool = environment_pool(setting.num_environments, setting.tasks_per_environment)
    world, learner = make_learner(setting, load_kind(setting.learner))
    scheduler = EnvScheduler(pool, config, setting.seed, world_features(world, pool))
    mastered, half = np.arange(len(pool)) % 3 == 0, setting.steps // 2
    learner._learned[mastered] += FALL
    latest: dict[int, int] = {}
    picks, could_rest, alarms, waits, again, fewest = [], 0, 0, [], 0, len(pool)
    for step in range(setting.steps):
        resting = scheduler.resting(step).rows
        fewest = min(fewest, int((~resting).sum()))
        if step < half:
            teaches = ~mastered & (learner.moments()[1] > TEACHES)
            could_rest, alarms = could_rest + int(teaches.sum()), alarms + int((teaches & resting).sum())
        if step == half:
            learner._learned[mastered] -= FALL
            latest = {row: _latest_return(row, scheduler, step) for row in np.flatnonzero(resting & mastered).tolist()}
            num_resting = len(latest)
            mastered = np.zeros(len(pool), dtype=bool)
        waits += [(step - half, step <= latest.pop(row)) for row in [row for row in latest if not resting[row]]]
        batch = scheduler.select(step)
        rows = pool.rows_of(batch.tasks)
        rewards = learner.roll_out(rows, config.group_size)
        picks += mastered[rows].tolist() if step < half else []
        scheduler.observe(records_of(batch.tasks, step, rewards))
        learner.train(rows, rewards)
        showed_a_fall = (rewards.mean(axis=1) < 1 - config.top_tolerance) & (rewards.min(axis=1) < rewards.max(axis=1))
        again += int(scheduler.resting(step + 1).rows[rows[showed_a_fall]].sum())
    return {
        "mastered_picks": float(np.mean(picks)),
        "false_alarms": alarms / could_rest,
        "resting": num_resting,
        "back": sum(in_time for _, in_time in waits),
        "longest_wait": max((wait for wait, _ in waits), default=0),
        "again": again,
        "fewest_open": fewest,
    }


def _latest_return(row: int, scheduler: EnvScheduler, step: int) -> int:
    """When a task that rests at ``step`` must be open again: its rest, then all other tasks before it in the queue for probation."""
    visits, config = scheduler.history.visits.before(step), scheduler.config
    last = int(visits.step[visits.row == row].max())
    return last + config.longest_rest_steps + math.ceil(len(scheduler.pool) / config.probation_picks)


def _is_look_up(name: str) -> bool:
    return name.startswith(("find", "list", "get", "read", "search", "show", "count"))


def _carry_out(runtime: EnvironmentRuntime, key: str, actions: Sequence[Action]) -> tuple[list[Action], float]:
    recorded = []
    with runtime.start(key, 0) as episode:
        for action in actions:
            text = episode.call(action["name"], action["arguments"], validate=False).text
            recorded.append({**action, "observation": text})
        reward = episode.score().reward
    assert reward is not None
    return recorded, reward


def _pays(runtime: EnvironmentRuntime, task: Task, actions: Sequence[Action], reward: float) -> bool:
    """Independent of the guard: without the actions that use identifiers which the prompt does not name, the reward is lower."""
    identifiers = set().union(*identifiers_of(task.initial_state).values())
    unseen = {name for name in identifiers if name not in task.prompt.replace(".", " ").replace(",", " ").split()}
    kept = [action for action in actions if not unseen & {str(value) for value in action["arguments"].values()}]
    return _carry_out(runtime, task.key, kept)[1] < reward


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=321, help="tasks of the bundled pool for the guard")
    parser.add_argument("--runs", type=int, default=3, help="simulated runs of each kind for the progress filter")
    parser.add_argument("--steps", type=int, default=160, help="of a simulated run")
    parser.add_argument("--json", type=Path, help="write the figures there too")
    arguments = parser.parse_args()
    figures: dict[str, Any] = {"guard": guard_figures(arguments.tasks) if arguments.tasks else {}}
    print("guard", figures["guard"])
    for learner in ("slow", "fast"):
        for filters in ((), ("progress",)):
            config, seeds = SchedulerConfig(batch_size=BATCH, filters=filters), range(arguments.runs)
            runs = [progress_figures(Setting(learner, seed, arguments.steps, **SIZE), config) for seed in seeds]
            name = f"{learner}, {'with' if filters else 'without'} progress filter"
            figures[name] = {key: over(run[key] for run in runs) for key, over in SUMMED_UP.items()}
            print(name, figures[name], flush=True)
    if arguments.json:
        write_json(arguments.json, figures)


if __name__ == "__main__":
    main()
