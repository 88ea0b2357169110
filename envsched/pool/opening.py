"""A pool by the name that a config, a command line or a run directory gives it."""

import re
from pathlib import Path

from envsched.errors import PoolError
from envsched.pool.jsonl import read_jsonl
from envsched.pool.pool import Pool


def open_pool(name: str | Path) -> Pool:
    """``bundled``, ``synthetic:MxT`` (M environments of T tasks, for scheduling alone), a folder in EnvScaler's format, or a JSONL file.

    Raises:
        PoolError: a synthetic pool without a size, or a folder or file that holds no usable pool.
    """
    if name == "bundled":
        return Pool.bundled()
    if str(name).startswith("synthetic"):
        size = re.fullmatch(r"synthetic:([1-9]\d*)x([1-9]\d*)", str(name))
        if size is None:
            raise PoolError(f"pool {name!r}: expected synthetic:MxT with M environments of T tasks, for example synthetic:51x50")
        return Pool.synthetic(int(size[1]), int(size[2]))
    if str(name).endswith(".jsonl"):
        return read_jsonl(Path(name))
    return Pool.from_envscaler(name)
