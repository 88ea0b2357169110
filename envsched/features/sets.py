"""Sets as vectors: the inner product of two rows is |A n B| / sqrt(|A| |B|).

Letters: N tasks, D columns.
"""

import zlib
from collections.abc import Hashable, Sequence

import numpy as np


def exact_block(sets: Sequence[frozenset[str]], environment_of: np.ndarray) -> np.ndarray:
    """One column for each group of elements that always occur together, counted anew in each environment.

    Only rows of one environment may be compared: column 3 is another element in the next environment, which keeps D at
    the size of the richest environment. Elements with equal membership share a column of value sqrt(count).

    Args:
        sets: N sets.
        environment_of: int [N].

    Returns:
        float64 [N, D], rows of norm 1, or 0 for an empty set.
    """
    columns: list[tuple[np.ndarray, int, float]] = []
    for environment in np.unique(environment_of):
        rows = np.flatnonzero(environment_of == environment)
        columns += [(np.array(members), column, np.sqrt(count)) for column, (members, count) in enumerate(_membership(sets, rows))]
    block = np.zeros((len(sets), 1 + max((column for _, column, _ in columns), default=-1)))
    for members, column, value in columns:
        block[members, column] = value
    return unit_rows(block)


def hashed_block(sets: Sequence[frozenset[str]], num_columns: int) -> np.ndarray:
    """Elements counted in ``num_columns`` buckets: float64 [N, num_columns], unit or zero rows.

    Two elements in one bucket look alike, so overlaps of large sets come out a little high; equal sets still give 1.
    """
    block = np.zeros((len(sets), num_columns))
    for row, elements in enumerate(sets):
        for element in elements:
            block[row, zlib.crc32(element.encode()) % num_columns] += 1
    return unit_rows(block)


def unit_rows(values: np.ndarray) -> np.ndarray:
    """Rows divided by their norm; a zero row stays zero."""
    norms = np.linalg.norm(values, axis=1, keepdims=True)
    return np.divide(values, norms, out=np.zeros_like(values), where=norms > 0)


def _membership(sets: Sequence[frozenset[str]], rows: np.ndarray) -> list[tuple[tuple[int, ...], int]]:
    """Distinct memberships of an environment's elements with their counts, in a fixed order."""
    members: dict[Hashable, list[int]] = {}
    for row in rows.tolist():
        for element in sets[row]:
            members.setdefault(element, []).append(row)
    counts: dict[tuple[int, ...], int] = {}
    for rows_of_element in members.values():
        key = tuple(rows_of_element)
        counts[key] = counts.get(key, 0) + 1
    return sorted(counts.items())
