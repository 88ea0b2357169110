"""Random worlds to choose from, and plain-Python truths to compare with."""

from itertools import combinations

import numpy as np

from envsched.select import Candidates, Mix, Quotas, Recent, recent_picks

DEFAULTS = Quotas(max_consecutive=2, max_per_environment_window=11, max_per_environment=4)
DEFAULT_MIX = Mix(batch_size=64, coverage_share=0.5, coverage_explore=0.25, similarity_penalty=0.08)


def environment_of(offsets):
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))


def table_similarity(generator, num_tasks, levels=None):
    """Similarity looked up in a symmetric table, so that its values do not depend on how they are asked for."""
    table = generator.random((num_tasks, num_tasks))
    if levels:
        table = np.round(table * levels) / levels
    table = (table + table.T) / 2
    np.fill_diagonal(table, 1.0)
    return lambda a, b: table[np.ix_(a, b)]


def recent_of(batches, offsets, step, window_steps=3):
    """``recent_picks`` of a list of (step, rows)."""
    rows = np.array([row for _, picked in batches for row in picked], dtype=np.int64)
    steps = np.array([s for s, picked in batches for _ in picked], dtype=np.int64)
    return recent_picks(rows, steps, step, environment_of(offsets), len(offsets) - 1, window_steps)


def make_candidates(generator, offsets, recent: Recent, *, seen=None, masked=None, levels=None, exposures=None, similarity=None):
    """Random scores; with ``levels`` they fall on a coarse grid, so that ties are common."""
    num_tasks = int(offsets[-1])
    score = generator.random(num_tasks)
    variance = generator.random(num_tasks)
    headroom = np.ones(num_tasks)
    exposures = generator.integers(0, 6, num_tasks).astype(float) if exposures is None else exposures
    if levels:
        score, variance = np.round(score * levels) / levels, np.round(variance * levels) / levels
    return Candidates(
        offsets=np.asarray(offsets),
        score=score,
        variance=variance,
        discount=16 / (16 + exposures) * headroom,
        headroom=headroom,
        exposures=exposures,
        seen=np.ones(num_tasks, dtype=bool) if seen is None else seen,
        masked=np.zeros(num_tasks, dtype=bool) if masked is None else masked,
        recent=recent,
        similarity=similarity or table_similarity(generator, num_tasks, levels),
    )


def broken_quotas(batches, offsets, quotas=DEFAULTS, window_steps=3, judged=None):
    """Names of quotas that a list of (step, rows) breaks (at step ``judged`` alone, if given), counted in plain Python."""
    e_of = environment_of(offsets)
    by_step = {step: [int(r) for r in rows] for step, rows in batches}
    broken = set()
    for step, rows in by_step.items():
        assert len(set(rows)) == len(rows)
        if judged not in (None, step):
            continue
        for e in range(len(offsets) - 1):
            here = sum(e_of[r] == e for r in rows)
            window = sum(e_of[r] == e for s in range(step - window_steps + 1, step + 1) for r in by_step.get(s, ()))
            if here > quotas.max_per_environment:
                broken.add("max_per_environment")
            if window > quotas.max_per_environment_window and here:
                broken.add("max_per_environment_window")
        for row in rows:
            if all(row in by_step.get(s, ()) for s in range(step - quotas.max_consecutive, step + 1)):
                broken.add("max_consecutive")
    return broken


def legal_batches(batches, offsets, step, batch_size, quotas, window_steps):
    """Every set of B tasks that keeps the quotas at ``step``, by enumeration."""
    e_of = environment_of(offsets)
    past = dict(batches)
    resting = {row for row in range(offsets[-1]) if all(row in past.get(s, ()) for s in range(step - quotas.max_consecutive, step))}
    window = [sum(e_of[r] == e for s in range(step - window_steps + 1, step) for r in past.get(s, ())) for e in range(len(offsets) - 1)]
    room = [min(quotas.max_per_environment, quotas.max_per_environment_window - w) for w in window]
    open_rows = [row for row in range(offsets[-1]) if row not in resting]
    for rows in combinations(open_rows, batch_size):
        counts = np.bincount(e_of[list(rows)], minlength=len(room))
        if (counts <= np.maximum(room, 0)).all():
            yield rows


def most_picks(batches, offsets, step, quotas, window_steps):
    """The largest number of picks that the quotas allow at ``step``, counted in plain Python."""
    e_of = environment_of(offsets)
    past = dict(batches)
    total = 0
    for e in range(len(offsets) - 1):
        window = sum(e_of[r] == e for s in range(step - window_steps + 1, step) for r in past.get(s, ()))
        rows = range(offsets[e], offsets[e + 1])
        rested = sum(not all(row in past.get(s, ()) for s in range(step - quotas.max_consecutive, step)) for row in rows)
        total += max(0, min(quotas.max_per_environment, quotas.max_per_environment_window - window, rested))
    return total
