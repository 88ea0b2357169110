"""What replays of one recording found, as figures with 95% intervals: environments are drawn anew, paired over schedulers.

Letters: M environments, R runs.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from envsched.simulate.intervals import Interval, bootstrap, interval


def gains(by_name: Mapping[str, Sequence[Mapping[str, Any]]], with_share: bool) -> dict[str, dict[str, Interval]]:
    """Scheduler -> figure -> mean, low, high, of the accounts that ``run_replay`` gave, ``random`` and ``oracle`` among them.

    ``mean_variance`` of judged picks; ``gain`` over random, relative; ``minus_X`` for every other scheduler X; ``hit_rate``
    (interval over runs); ``captured_share`` of (oracle - random), where asked for.
    """
    sums = {name: _sums(runs) for name, runs in by_name.items()}
    out: dict[str, dict[str, Interval]] = {}
    for name, runs in by_name.items():
        stacked = np.concatenate([sums[name], sums["random"], sums["oracle"]], axis=1)  # [M, 6]
        figures = {"mean_variance": bootstrap(stacked, _mean), "gain": bootstrap(stacked, _gain)}
        if with_share:
            figures["captured_share"] = bootstrap(stacked, _share)
        figures["hit_rate"] = interval([run["hits"] / max(np.sum(run["count"]), 1) for run in runs])
        figures["environments"] = interval([float(np.mean(run["steps"]["environments"])) for run in runs])
        for rival in by_name:
            if rival != name:
                figures[f"minus_{rival}"] = bootstrap(np.concatenate([sums[name], sums[rival]], axis=1), _difference)
        out[name] = figures
    return out


def _sums(runs: Sequence[Mapping[str, Any]]) -> np.ndarray:
    """Value and count of all runs by environment, [M, 2]."""
    return np.stack([np.sum([run[key] for run in runs], axis=0) for key in ("value", "count")], axis=1)


def _mean(sums: np.ndarray, which: int = 0) -> np.ndarray:
    """Mean value of the ``which``-th pair of columns (value, count) of sums [..., K]."""
    return _ratio(sums[..., 2 * which], sums[..., 2 * which + 1])


def _gain(sums: np.ndarray) -> np.ndarray:
    return _ratio(_mean(sums) - _mean(sums, 1), _mean(sums, 1))


def _difference(sums: np.ndarray) -> np.ndarray:
    return _mean(sums) - _mean(sums, 1)


def _share(sums: np.ndarray) -> np.ndarray:
    x, low, high = (_mean(sums, which) for which in range(3))
    return _ratio(x - low, high - low)


def _ratio(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """part / whole, NaN where the whole is not positive."""
    part, whole = np.asarray(part, dtype=float), np.asarray(whole, dtype=float)
    return np.divide(part, whole, out=np.full(part.shape, np.nan), where=whole > 0)
