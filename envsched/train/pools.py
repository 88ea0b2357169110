"""The pool that a config names."""

import re

from envsched.errors import ConfigError
from envsched.pool import Pool


def open_pool(name: str) -> Pool:
    """``bundled``, ``synthetic:MxT`` (M environments of T tasks, for scheduling alone), or a folder in EnvScaler's format.

    Raises:
        ConfigError: the name looks like a synthetic pool but states no size.
        PoolError: the folder holds no usable pool.
    """
    if name == "bundled":
        return Pool.bundled()
    if name.startswith("synthetic"):
        size = re.fullmatch(r"synthetic:(\d+)x(\d+)", name)
        if size is None:
            raise ConfigError(f"train.pool {name!r}: expected synthetic:MxT, for example synthetic:51x50")
        return Pool.synthetic(int(size[1]), int(size[2]))
    return Pool.from_envscaler(name)
