"""A step in figures: what the console line, the metrics file and the table at the end show.

Letters: B tasks, G rollouts per task, v realised within-task variance.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from envsched.config import SchedulerConfig
from envsched.history import group_statistics
from envsched.types import Batch, Lane, RolloutRecord, Status


@dataclass(frozen=True, slots=True)
class StepReport:
    """Figures of one step; a mean over nothing is none.

    ``variance`` is the mean of v over groups with evidence; ``zero_signal`` the share of those groups with v = 0; ``hit_rate`` the share
    of exploitation picks whose v lies in the batch's top quarter (all picks, where there are no lanes); ``tool_errors`` the share of
    tool calls that the environment refused or answered with an error.
    """

    step: int
    reward: float | None
    variance: float | None
    zero_signal: float | None
    hit_rate: float | None
    num_environments: int
    tool_errors: float | None
    statuses: dict[str, int]

    def metrics(self) -> dict[str, float]:
        """Plain floats under namespaced keys; what is none is left out."""
        named = {
            "step/reward": self.reward,
            "step/variance": self.variance,
            "step/zero_signal": self.zero_signal,
            "step/hit_rate": self.hit_rate,
            "step/environments": self.num_environments,
            "step/tool_errors": self.tool_errors,
        }
        statuses = {f"status/{name}": count for name, count in self.statuses.items()}
        return {name: float(value) for name, value in {**named, **statuses}.items() if value is not None}


def report_of(batch: Batch, records: Sequence[RolloutRecord], config: SchedulerConfig) -> StepReport:
    """Figures of a batch [B] and its records [B]."""
    groups = {record.task: group_statistics(record, config) for record in records}
    variance = {task: group.variance for task, group in groups.items() if group.variance is not None}
    means = [group.mean for group in groups.values() if group.mean is not None]
    statuses = Counter(status for record in records for status in record.status)
    return StepReport(
        step=batch.step,
        reward=fmean(means) if means else None,
        variance=fmean(variance.values()) if variance else None,
        zero_signal=fmean(v == 0 for v in variance.values()) if variance else None,
        hit_rate=_hit_rate(batch, variance),
        num_environments=len({pick.environment for pick in batch.picks}),
        tool_errors=_tool_errors(records),
        statuses={status.value: statuses[status] for status in Status},
    )


def _tool_errors(records: Sequence[RolloutRecord]) -> float | None:
    answered = [action["ok"] for record in records for actions in record.trace or () for action in actions]
    refused = sum(sum(record.extra.get("refused", ())) for record in records)
    return (answered.count(False) + refused) / (len(answered) + refused) if answered or refused else None


def _hit_rate(batch: Batch, variance: dict[str, float]) -> float | None:
    if not variance:
        return None
    top = sorted(variance.values(), reverse=True)[: max(1, len(variance) // 4)][-1]
    lanes = {pick.lane for pick in batch.picks}
    judged = [p.task for p in batch.picks if p.task in variance and (p.lane is Lane.EXPLOITATION or Lane.EXPLOITATION not in lanes)]
    return fmean(variance[task] >= top and variance[task] > 0 for task in judged) if judged else None
