"""Means with 95% intervals over independent runs, and figures that compare a run with its world's random and oracle.

Letters: R runs.
"""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

# Two-sided 95% quantiles of Student's t for 1..30 degrees of freedom; scipy is no dependency of the library.
_T95 = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip

Interval = dict[str, float | None]


def t_quantile(degrees: int) -> float:
    """97.5% quantile of Student's t."""
    return _T95[degrees - 1] if degrees <= len(_T95) else 1.96 + 2.4 / degrees


def interval(values: Sequence[float | None]) -> Interval:
    """``mean``, ``low``, ``high`` of values over runs [R]; runs without a value are left out, one run has no interval."""
    known = np.array([value for value in values if value is not None and math.isfinite(value)])
    if len(known) == 0:
        return {"mean": None, "low": None, "high": None}
    mean = float(known.mean())
    if len(known) == 1:
        return {"mean": mean, "low": None, "high": None}
    half = t_quantile(len(known) - 1) * float(known.std(ddof=1)) / math.sqrt(len(known))
    return {"mean": mean, "low": mean - half, "high": mean + half}


def bootstrap(parts: np.ndarray, statistic: Callable[[np.ndarray], np.ndarray], seed: int = 0, draws: int = 2000) -> Interval:
    """Interval of a statistic of column sums when the rows of ``parts`` [n, K] (environments, say) are drawn anew.

    Args:
        statistic: from sums [..., K] to values [...]; NaN where there is none, and draws without one are left out.
    """
    n = len(parts)
    mean = float(statistic(parts.sum(axis=0)))
    if not math.isfinite(mean):
        return {"mean": None, "low": None, "high": None}
    rng = np.random.Generator(np.random.Philox(key=[seed, 7]))
    found = statistic(rng.multinomial(n, np.full(n, 1 / n), size=draws) @ parts)
    found = found[np.isfinite(found)]
    if n < 2 or not len(found):
        return {"mean": mean, "low": None, "high": None}
    low, high = np.quantile(found, [0.025, 0.975])
    return {"mean": mean, "low": float(low), "high": float(high)}


def captured_share(variance: float, random: float, oracle: float) -> float | None:
    """(x - random) / (oracle - random); None where the oracle gains nothing."""
    return (variance - random) / (oracle - random) if oracle > random else None


def compared(figures: Mapping[str, float | None], random: Mapping[str, float], oracle: Mapping[str, float]) -> dict[str, float | None]:
    """A run's figures with ``captured_share`` and ``regret`` (oracle - x, mean variance) in the same world."""
    x, low, high = figures["mean_variance"], random["mean_variance"], oracle["mean_variance"]
    return {**figures, "captured_share": captured_share(x, low, high), "regret": high - x}
