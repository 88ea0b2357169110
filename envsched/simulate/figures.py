"""Pictures of a court: variance, coverage and hit rate over steps, calibration, and where the picks went.

Needs matplotlib. Letters: R runs, T steps, M environments.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from envsched.errors import MissingExtraError
from envsched.simulate.intervals import t_quantile


def draw(results: Mapping[str, Sequence[Mapping[str, Any]]], folder: Path, suffix: str = "png") -> list[Path]:
    """Write the pictures of ``hold_court``'s results into ``folder``; gives their paths.

    Raises:
        MissingExtraError: matplotlib is absent.
    """
    pyplot = _pyplot()
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, paint in (
        ("variance", lambda axes: _over_steps(axes, results, "variance", "mean variance of the batch")),
        ("variance_log", lambda axes: _over_steps(axes, results, "variance", "mean variance of the batch", log=True)),
        ("coverage", lambda axes: _over_steps(axes, results, "environments", "environments in the batch")),
        ("coverage_log", lambda axes: _over_steps(axes, results, "environments", "environments in the batch", log=True)),
        ("hit_rate", lambda axes: _hit_rate(axes, results)),
        ("calibration", lambda axes: _calibration(axes, results)),
    ):
        figure, axes = pyplot.subplots(figsize=(7, 4.2), layout="constrained")
        paint(axes)
        written.append(_save(figure, folder / f"{name}.{suffix}"))
        pyplot.close(figure)
    for name, runs in results.items():
        figure, axes = pyplot.subplots(figsize=(7, 6), layout="constrained")
        _heat(figure, axes, runs, name)
        written.append(_save(figure, folder / f"environments_{_file_name(name)}.{suffix}"))
        pyplot.close(figure)
    return written


def draw_prediction(prediction: Mapping[str, Mapping[str, Any]], folder: Path, suffix: str = "png") -> Path:
    """Write the calibration of ``prediction_figures`` by estimator into ``folder``, one panel a question; gives its path.

    Raises:
        MissingExtraError: matplotlib is absent.
    """
    pyplot = _pyplot()
    folder.mkdir(parents=True, exist_ok=True)
    figure, panels = pyplot.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
    for axes, question in zip(panels, ("unobserved", "observed"), strict=True):
        for name, figures in prediction.items():
            curve = figures[question]["calibration"]
            axes.plot(curve["predicted"], curve["realised"], marker="o", markersize=3, label=name)
        ends = max(axes.get_xlim()[1], axes.get_ylim()[1])
        axes.plot([0, ends], [0, ends], color="grey", linewidth=0.8)
        axes.set(title=f"{question} tasks", xlabel="predicted variance", ylabel="variance of the cell", xlim=(0, ends), ylim=(0, ends))
        axes.legend(fontsize=8)
    path = _save(figure, folder / f"prediction.{suffix}")
    pyplot.close(figure)
    return path


def _pyplot():
    try:
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot
    except ImportError:
        raise MissingExtraError("figures need matplotlib: pip install 'envsched[figures]'") from None
    return pyplot


def _over_steps(axes, results: Mapping[str, Sequence[Mapping[str, Any]]], curve: str, label: str, log: bool = False) -> None:
    for name, runs in results.items():
        values = np.array([run["steps"][curve] for run in runs], dtype=float)  # [R, T]
        _band(axes, np.cumsum(values, axis=1) / np.arange(1, values.shape[1] + 1) if log else _smooth(values), name)
    if log:
        axes.set_xscale("log")
        label = f"{label}, mean of the steps so far"
    axes.set(xlabel="step", ylabel=label)
    axes.legend(fontsize=8)


def _hit_rate(axes, results: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    for name, runs in results.items():
        hits = _smooth(np.array([run["steps"]["hits"] for run in runs], dtype=float))
        picks = _smooth(np.array([run["steps"]["exploited"] for run in runs], dtype=float))
        _band(axes, np.divide(hits, picks, out=np.full_like(hits, np.nan), where=picks > 0), name)
    axes.axhline(0.25, color="grey", linewidth=0.8)
    axes.set(xlabel="step", ylabel="exploitation picks in the pool's top quartile", ylim=(0, 1.02))
    axes.legend(fontsize=8)


def _calibration(axes, results: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    for name, runs in results.items():
        count, score, realised = np.sum([run["curve"] for run in runs], axis=0)
        filled = (count > 0) & (score > 0)  # schedulers without scores leave the first bin at 0
        if filled.any():
            axes.plot(score[filled] / count[filled], realised[filled] / count[filled], marker="o", markersize=3, label=name)
    axes.plot([0, 1], [0, 1], color="grey", linewidth=0.8)
    axes.set(xlabel="score at selection", ylabel="realised variance / largest variance")
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize=8)


def _heat(figure, axes, runs: Sequence[Mapping[str, Any]], name: str) -> None:
    picks = np.mean([run["heat"] for run in runs], axis=0)
    image = axes.imshow(picks, aspect="auto", origin="lower", cmap="viridis")
    figure.colorbar(image, label="picks")
    axes.set(xlabel="block of steps", ylabel="environment", title=name)


def _band(axes, values: np.ndarray, name: str) -> None:
    """Mean over runs and its 95% interval, [R, T]; steps without a value in any run are left out."""
    steps = np.flatnonzero(np.isfinite(values).any(axis=0)) + 1
    values = values[:, steps - 1]
    mean = np.nanmean(values, axis=0)
    (line,) = axes.plot(steps, mean, label=name, linewidth=1.2)
    if np.isfinite(values).sum(axis=0).min(initial=2) > 1:
        half = t_quantile(len(values) - 1) * np.nanstd(values, axis=0, ddof=1) / np.sqrt(len(values))
        axes.fill_between(steps, mean - half, mean + half, alpha=0.2, color=line.get_color(), linewidth=0)


def _smooth(values: np.ndarray, window: int = 5) -> np.ndarray:
    """Running mean [R, T] over ``window`` steps where there are enough of them; steps without a value (NaN) are left out."""
    if values.shape[1] < 4 * window:
        return values
    kernel, known = np.ones(window), np.isfinite(values)
    weight = np.stack([np.convolve(row, kernel, mode="same") for row in known.astype(float)])
    total = np.stack([np.convolve(row, kernel, mode="same") for row in np.where(known, values, 0)])
    return np.divide(total, weight, out=np.full_like(total, np.nan), where=weight > 0)


def _save(figure, path: Path) -> Path:
    figure.savefig(path, dpi=120)
    return path


def _file_name(name: str) -> str:
    return "".join(letter if letter.isalnum() else "_" for letter in name)
