"""Recorded rollouts as a policy that can be asked again: cells of (task, policy), weakest policy first.

Letters: N tasks, P policies, G rollouts.
"""

import gzip
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from envsched.errors import RecordError
from envsched.files import parse_json
from envsched.pool import Pool
from envsched.types import Environment, Task

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


def read_recordings(path: Path | str, prompts: Path | str | None = None) -> list[Recording]:
    """Recordings of a file of JSON lines (gzip or plain): environment, task_id, policy, rewards, and step or null.

    Where policies carry steps (checkpoints of one base at step 0), each later checkpoint makes a recording of its own with the
    base; otherwise all policies, ordered by mean reward, make one. A task stays when every kept policy has two or more
    rewards for it.

    Args:
        prompts: JSON lines of task_id and prompt, where the first file holds none.

    Raises:
        RecordError: an unreadable file, a line without the fields, or no task that several policies share.
    """
    path = Path(path)
    rows = list(_lines(path))
    texts = {row["task_id"]: row["prompt"] for row in _lines(Path(prompts))} if prompts else {}
    by_policy: dict[str, dict[str, np.ndarray]] = {}
    about: dict[str, tuple[str, str]] = {}
    step_of: dict[str, Any] = {}
    for row in rows:
        task, policy = row["task_id"], row["policy"]
        rewards = np.asarray(row["rewards"], dtype=float)
        known = by_policy.setdefault(policy, {})
        known[task] = np.concatenate([known[task], rewards]) if task in known else rewards
        about[task] = (row["environment"], texts.get(task) or row.get("prompt") or "")
        step_of[policy] = row.get("step")
    name = path.name.split(".")[0]
    base = [policy for policy, step in step_of.items() if step == 0]
    later = [policy for policy, step in step_of.items() if step]
    if base and later:
        return [_recording(f"{name}: {policy}", [base[0], policy], by_policy, about) for policy in sorted(later)]
    num_tasks = len(about)
    broad = [policy for policy, known in by_policy.items() if len(_usable(known)) >= MIN_COVERAGE * num_tasks]
    order = sorted(broad, key=lambda policy: (np.mean([rewards.mean() for rewards in by_policy[policy].values()]), policy))
    return [_recording(name, order, by_policy, about)]


def _recording(
    name: str, policies: Sequence[str], by_policy: Mapping[str, Mapping[str, np.ndarray]], about: Mapping[str, tuple[str, str]]
) -> Recording:
    shared = set.intersection(*(_usable(by_policy[policy]) for policy in policies)) if policies else set()
    if len(shared) < 2:
        raise RecordError(
            f"{name}: {len(shared)} tasks have two or more rewards under each of {len(policies)} policies; give more rollouts"
        )
    environments = {about[task][0] for task in shared}
    pool = Pool((Environment(key) for key in environments), (Task(task, about[task][0], about[task][1]) for task in shared))
    cells = tuple(tuple(by_policy[policy][task.key] for task in pool.tasks) for policy in policies)
    return Recording(name, pool, tuple(policies), cells)


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
        raise RecordError(f"rollouts file {path}: {error}; give JSON lines, plain or gzip") from None
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
        """Rewards [B, G] of tasks ``rows`` [B], drawn with replacement from the shown half."""
        rng = np.random.Generator(np.random.Philox(key=[self.seed, 1000 + step]))
        return np.stack([rng.choice(self._shown[policy][row], self.group_size) for row in rows])


def _halves(rewards: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    order = rng.permutation(len(rewards))
    cut = (len(rewards) + 1) // 2
    return rewards[order[:cut]], rewards[order[cut:]]


def _variance(rewards: np.ndarray) -> float:
    return float(rewards.var(ddof=1)) if len(rewards) >= 2 else float("nan")
