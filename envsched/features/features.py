"""The arrays that every rank, resume and audit of a run shares.

Letters: N tasks, D features.

Values are rounded to multiples of 2**-24. A product of two of them is a multiple of 2**-48 and every partial sum of an
inner product of unit rows stays below 2, so float64 holds it **exactly**: similarities do not depend on the order of
summation, the BLAS, the number of threads or the backend, and ties are ties on every machine.
"""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from envsched.errors import StateError
from envsched.features.arrays import read_arrays, write_arrays
from envsched.files import canonical_json, digest
from envsched.pool import Pool

GRID = 2.0**24
_FORMAT = "envsched features 1"


def on_grid(values: np.ndarray) -> np.ndarray:
    """Round to multiples of 1 / GRID, float32, C order; exact for what is on the grid already."""
    return np.ascontiguousarray(np.rint(np.asarray(values, dtype=np.float64) * GRID) / GRID, dtype=np.float32)


@dataclass(frozen=True, eq=False)
class Features:
    """Unit or zero rows; the inner product of two rows is their similarity (negative counts as 0).

    Args:
        within: float32 [N, Dw], for two tasks of one environment: prompt, tool, state-key and verifier similarity.
        cross: float32 [N, Dc], for tasks of different environments: topology similarity.
        pool_fingerprint: of the pool that the rows belong to.
        encoder: name and digest of the text encoder.
    """

    within: np.ndarray
    cross: np.ndarray
    pool_fingerprint: str = ""
    encoder: str = ""
    digest: str = field(init=False)

    def __post_init__(self) -> None:
        for name in ("within", "cross"):
            values = on_grid(getattr(self, name))
            assert _are_unit_rows(values), f"{name} must be [N, D] with rows of norm 1 or 0"
            values.setflags(write=False)
            object.__setattr__(self, name, values)
        assert len(self.within) == len(self.cross), "within and cross must have one row a task"
        object.__setattr__(self, "digest", self._digest())

    def _digest(self) -> str:
        shapes = canonical_json([self.within.shape, self.cross.shape])
        return digest(_FORMAT, self.pool_fingerprint, self.encoder, shapes, self.within.tobytes(), self.cross.tobytes())

    def __len__(self) -> int:
        return len(self.within)

    def save(self, path: Path | str) -> None:
        """Write one ``.npz`` file, whole or not at all."""
        header = {"format": _FORMAT, "pool": self.pool_fingerprint, "encoder": self.encoder, "digest": self.digest}
        write_arrays(path, header, {"within": self.within, "cross": self.cross})

    @classmethod
    def load(cls, path: Path | str, pool: Pool) -> "Features":
        """Read what ``save`` wrote.

        Raises:
            StateError: no such file, a damaged one, or features of another pool; names the file and what differs.
        """
        header, arrays = read_arrays(path, _FORMAT, ("within", "cross"))
        said = {name: str(header.get(name)) for name in ("pool", "encoder", "digest")}
        if said["pool"] != pool.fingerprint:
            raise StateError(
                f"features file {path}: made for the pool with fingerprint {said['pool'][:12]}, but this pool has "
                f"{pool.fingerprint[:12]}; build the features again, or give the pool they belong to"
            )
        if not all(len(rows) == len(pool) and _are_unit_rows(rows) for rows in arrays.values()):
            raise StateError(f"features file {path}: expected a unit or zero row for each of {len(pool)} tasks; build the features again")
        made = cls(**arrays, pool_fingerprint=said["pool"], encoder=said["encoder"])
        if made.digest != said["digest"]:
            raise StateError(f"features file {path}: content has digest {made.digest[:12]}, header says {said['digest'][:12]}; build again")
        return made


def _are_unit_rows(values: np.ndarray) -> bool:
    if values.ndim != 2 or values.dtype.kind != "f":
        return False
    norms = np.sqrt(np.einsum("nd,nd->n", values, values, dtype=np.float64))
    return bool(np.all((norms < 1e-6) | (np.abs(norms - 1) < 1e-3)))
