"""A pool by the name that a config, a command line or a run directory gives it."""

import os
import re
from pathlib import Path

from envsched.errors import PoolError
from envsched.pool.pool import Pool

_KINDS = "expected a folder in EnvScaler's format, a JSONL file (.jsonl), bundled, or synthetic:MxT"


def open_pool(name: str | Path, base: Path | None = None) -> Pool:
    """``bundled``, ``synthetic:MxT`` (M environments of T tasks, for scheduling alone), a folder in EnvScaler's format, or a JSONL file.

    A relative path is seen from ``base``; none: from the working directory.

    Raises:
        PoolError: a synthetic pool without a size, or a folder or file that holds no usable pool.
    """
    if base is not None and _is_path(name):
        name = base.resolve() / name
    pool = _opened(name)
    try:
        _ = pool.fingerprint  # content without a canonical form is refused here, where the file is known
    except PoolError as error:
        raise PoolError(f"{name}: {error}") from None
    return pool


def pool_seen_from(folder: Path, name: str) -> str:
    """The name under which ``open_pool(..., base=folder)`` finds a relative path of the working directory; others stay."""
    if not _is_path(name) or Path(name).is_absolute():
        return name
    return os.path.relpath(Path(name).resolve(), folder.resolve())


def _is_path(name: str | Path) -> bool:
    return name != "bundled" and not str(name).startswith("synthetic")


def _opened(name: str | Path) -> Pool:
    if name == "bundled":
        return Pool.bundled()
    if str(name).startswith("synthetic"):
        size = re.fullmatch(r"synthetic:([1-9]\d*)x([1-9]\d*)", str(name))
        if size is None:
            raise PoolError(f"pool {name!r}: expected synthetic:MxT with M environments of T tasks, for example synthetic:51x50")
        return Pool.synthetic(int(size[1]), int(size[2]))
    path = Path(name)
    if not path.exists():
        raise PoolError(f"pool {name}: no such file or folder; {_KINDS}")
    if path.suffix == ".jsonl":
        return Pool.from_jsonl(path)
    if not path.is_dir():
        raise PoolError(f"pool {name}: a file of another kind; {_KINDS} (`envsched pool import` makes one from other formats)")
    return Pool.from_envscaler(path)
