"""Results as a table for people: a line per scheduler, means with their 95% intervals."""

from collections.abc import Mapping, Sequence

from envsched.simulate.intervals import Interval

COURT_COLUMNS = (
    ("mean_variance", "mean variance", ".4f"),
    ("median_variance", "median", ".4f"),
    ("captured_share", "share", ".3f"),
    ("regret", "regret", ".4f"),
    ("median_reward", "reward", ".3f"),
    ("environments", "envs", ".2f"),
    ("tools", "tools", ".1f"),
    ("hit_rate", "hits", ".3f"),
    ("final_hit_rate", "last hits", ".3f"),
    ("zero_signal", "zero", ".3f"),
    ("distinct_tasks", "tasks", ".0f"),
)
REPLAY_COLUMNS = (
    ("mean_variance", "mean variance", ".4f"),
    ("gain", "over random", "+.3f"),
    ("captured_share", "share", ".3f"),
    ("hit_rate", "hits", ".3f"),
    ("environments", "envs", ".1f"),
    ("minus_random", "- random", "+.4f"),
    ("minus_mopps", "- mopps", "+.4f"),
    ("minus_dps", "- dps", "+.4f"),
)
PREDICTION_COLUMNS = (
    ("spearman", "rho", ".3f"),
    ("environment_spearman", "env. mean", ".3f"),
    ("minus_environment", "difference", "+.3f"),
    ("hit_rate", "top-quarter hits", ".3f"),
    ("chance", "chance", ".3f"),
)


def render(table: Mapping[str, Mapping[str, Interval]], columns: Sequence[tuple[str, str, str]]) -> str:
    """Plain text: ``mean [low, high]`` in each cell, a dash where there is no value; columns without any value are left out."""
    present = [column for column in columns if any(figures.get(column[0], {}).get("mean") is not None for figures in table.values())]
    rows = [["scheduler", *(title for _, title, _ in present)]]
    rows += [[name, *(_cell(figures.get(figure), style) for figure, _, style in present)] for name, figures in table.items()]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)


def legend(table: Mapping[str, Mapping[str, Interval]]) -> str:
    """What the cells of ``render`` hold: one run alone has no interval."""
    some = any(interval["low"] is not None for figures in table.values() for interval in figures.values())
    return "mean [95% interval]" if some else "one run, so no interval"


def _cell(interval: Interval | None, style: str) -> str:
    if interval is None or interval["mean"] is None:
        return "-"
    mean = f"{interval['mean']:{style}}"
    if interval["low"] is None or interval["high"] is None:
        return mean
    return f"{mean} [{interval['low']:{style}}, {interval['high']:{style}}]"
