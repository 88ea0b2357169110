"""Recorded rollouts as a policy that can be asked again: cells of (task, policy), weakest or earliest policy first.

Letters: N tasks, P policies, G rollouts.
"""

import gzip
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from envsched.errors import RecordError
from envsched.files import parse_json
from envsched.pool import Pool
from envsched.types import Environment, Task
from envsched.wording import counted

MIN_COVERAGE = 0.8  # a policy that was tried on fewer of the tasks is left out
MAX_GROUP = 8


@dataclass(frozen=True)
class Recording:
    """A complete block of cells: ``cells[p][row]`` are the rewards [n >= 2] of policy p on task row; ``policies`` from weak to strong."""

    name: str
    pool: Pool
    policies: tuple[str, ...]
    cells: tuple[tuple[np.ndarray, ...], ...]

    @property
    def cell_size(self) -> int:
        """Median number of rollouts in a cell."""
        return int(np.median([len(rewards) for cells in self.cells for rewards in cells]))


@dataclass
class _Rows:
    """What the lines of a file say: names of policies, rewards by policy and task, a policy's step, environment and prompt of a task."""

    names: set[str] = field(default_factory=set)
    rewards: dict[str, dict[str, np.ndarray]] = field(default_factory=dict)
    step_of: dict[str, Any] = field(default_factory=dict)
    about: dict[str, tuple[str, str]] = field(default_factory=dict)

    def means(self, policy: str) -> tuple[float, str]:
        """Sorts policies from weak to strong."""
        return float(np.mean([rewards.mean() for rewards in self.rewards[policy].values()])), policy


def read_recordings(path: Path | str, prompts: Path | str | None = None, pool: Pool | None = None) -> list[Recording]:
    """Recordings of a file of JSON lines (gzip or plain): environment, task_id, policy, rewards, and step or null.

    * one policy name with several steps: one recording, checkpoints of one training run in order of their steps;
    * a base at step 0 and several names with later steps: siblings, each in a recording of its own with the base; policies
      without a step are left out;
    * otherwise one recording of all policies, ordered by mean reward.

    A task stays when every kept policy has two or more rewards for it.

    Args:
        prompts: JSON lines of task_id and prompt, where the first file holds none.
        pool: that the tasks belong to; their texts, tools, checks and topologies are taken from it.

    Raises:
        RecordError: an unreadable file, a line without the fields, no task that several policies share, or a task that the
            pool does not have.
    """
    path = Path(path)
    rows = _read_rows(path, Path(prompts) if prompts else None)
    name = path.name.split(".")[0]
    base = [policy for policy, step in rows.step_of.items() if step == 0]
    later = [policy for policy, step in rows.step_of.items() if step]
    if len(rows.names) == 1 and len(rows.rewards) > 1:
        return [_recording(name, sorted(rows.rewards, key=lambda policy: rows.step_of[policy]), rows, pool)]
    if base and later:
        return [_recording(f"{name}: {policy}", [base[0], policy], rows, pool) for policy in sorted(later)]
    broad = [policy for policy, known in rows.rewards.items() if len(_usable(known)) >= MIN_COVERAGE * len(rows.about)]
    return [_recording(name, sorted(broad, key=rows.means), rows, pool)]


def _read_rows(path: Path, prompts: Path | None) -> _Rows:
    rows, found = _Rows(), list(_lines(path))
    texts = {row["task_id"]: row["prompt"] for row in _lines(prompts)} if prompts else {}
    steps_of: dict[str, set[Any]] = {}
    for row in found:
        steps_of.setdefault(row["policy"], set()).add(row.get("step"))
    rows.names = set(steps_of)
    for row in found:
        task, policy, step = row["task_id"], row["policy"], row.get("step")
        if len(steps_of[policy]) > 1:
            policy = f"{policy} at step {step}"
        rewards, known = np.asarray(row["rewards"], dtype=float), rows.rewards.setdefault(policy, {})
        known[task] = np.concatenate([known[task], rewards]) if task in known else rewards
        rows.about[task] = (row["environment"], texts.get(task) or row.get("prompt") or "")
        rows.step_of[policy] = step
    return rows


def _recording(name: str, policies: Sequence[str], rows: _Rows, pool: Pool | None) -> Recording:
    shared = sorted(set.intersection(*(_usable(rows.rewards[policy]) for policy in policies))) if policies else []
    if len(shared) < 2:
        raise RecordError(
            f"{name}: {counted(len(shared), 'task')} with two or more rewards under each of {len(policies)} policies, at least 2 needed; "
            "give more rollouts"
        )
    kept = Pool(*_from_lines(shared, rows) if pool is None else _from_pool(shared, pool, name))
    cells = tuple(tuple(rows.rewards[policy][task.key] for task in kept.tasks) for policy in policies)
    return Recording(name, kept, tuple(policies), cells)


def _from_lines(keys: Sequence[str], rows: _Rows) -> tuple[list[Environment], list[Task]]:
    environments = {rows.about[key][0] for key in keys}
    return [Environment(key) for key in environments], [Task(key, *rows.about[key]) for key in keys]


def _from_pool(keys: Sequence[str], pool: Pool, name: str) -> tuple[list[Environment], list[Task]]:
    absent = [key for key in keys if key not in pool]
    if absent:
        outside = counted(len(absent), "task")
        raise RecordError(f"{name}: not in the pool: {outside}, the first is {absent[0]!r}; give the pool of these rollouts")
    tasks = [pool.task(key) for key in keys]
    return [pool.environment(key) for key in {task.environment for task in tasks}], tasks


def _usable(known: Mapping[str, np.ndarray]) -> set[str]:
    return {task for task, rewards in known.items() if len(rewards) >= 2}


def _lines(path: Path) -> Iterable[dict[str, Any]]:
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8") as stream:
            for number, line in enumerate(stream, start=1):
                if not line.strip():
                    continue
                row = parse_json(line)
                if not isinstance(row, dict) or "task_id" not in row:
                    raise RecordError(
                        f"{path}, line {number}: expected an object with task_id; a rollout line also needs environment, policy and rewards"
                    )
                yield row
    except (OSError, EOFError, zlib.error) as error:
        why = getattr(error, "strerror", None) or error
        raise RecordError(f"rollouts file {path}: {why}; give JSON lines, plain or gzip") from None
    except RecordError:
        raise
    except ValueError as error:
        raise RecordError(f"rollouts file {path}: not JSON lines: {error}; give JSON lines in UTF-8, plain or gzip") from None


class SplitPolicy:
    """One random split of every cell: the shown half answers, the other half judges.

    Judging by rewards that a scheduler never saw keeps luck out of its score: choosing by a cell's own noise gains
    nothing on the other half.

    Args:
        recording: what was recorded.
        seed: of the split and of the draws.
        whole: show whole cells and judge by them; then the noise of a cell counts as its variance.
    """

    def __init__(self, recording: Recording, seed: int, whole: bool = False) -> None:
        self.recording, self.seed = recording, seed
        rng = np.random.Generator(np.random.Philox(key=[seed, 11]))
        self._shown: list[list[np.ndarray]] = []
        judged = []
        for cells in recording.cells:
            halves = [(rewards, rewards) if whole else _halves(rewards, rng) for rewards in cells]
            self._shown.append([shown for shown, _ in halves])
            judged.append([_variance(kept) for _, kept in halves])
        self.judged = np.array(judged)  # [P, N], NaN where the judging half has one reward
        self.shown_variance = np.array([[_variance(shown) for shown in cells] for cells in self._shown])  # [P, N]
        self.group_size = min(MAX_GROUP, max(2, int(np.median([len(shown) for cells in self._shown for shown in cells]))))

    def roll_out(self, policy: int, rows: np.ndarray, step: int) -> np.ndarray:
        """Rewards [B, G] of tasks ``rows`` [B], drawn from the shown half: each of its rollouts once before any twice.

        Drawn with replacement, a group of n rollouts would lose a share 1 / n of the half's variance, half of it at n = 2.
        """
        rng = np.random.Generator(np.random.Philox(key=[self.seed, 1000 + step]))
        return np.stack([_draw(self._shown[policy][row], self.group_size, rng) for row in rows])


def _draw(rewards: np.ndarray, num: int, rng: np.random.Generator) -> np.ndarray:
    rounds = -(-num // len(rewards))
    return np.concatenate([rng.permutation(rewards) for _ in range(rounds)])[:num]


def _halves(rewards: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    order = rng.permutation(len(rewards))
    cut = (len(rewards) + 1) // 2
    return rewards[order[:cut]], rewards[order[cut:]]


def _variance(rewards: np.ndarray) -> float:
    return float(rewards.var(ddof=1)) if len(rewards) >= 2 else float("nan")
