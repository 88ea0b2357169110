"""Pools that the tests of this room read; nothing of the real data lies in the repository."""

import os
from pathlib import Path

import pytest

from envsched.pool import Pool

# Ten environments that the extractor's authors neither looked at nor ran it on before its first comparison with the truth:
# ``sorted(random.Random(7).sample(environments_with_tasks, 10))`` over the 22 of the real slice.
SET_ASIDE = (
    "env_1",
    "env_143_rl",
    "env_144_rl",
    "env_145_rl",
    "env_147_rl",
    "env_162_rl",
    "env_166_rl",
    "env_169_rl",
    "env_173_rl",
    "env_176_rl",
)


@pytest.fixture(scope="session")
def real_pool() -> Pool:
    folder = os.environ.get("ENVSCHED_TESTDATA")
    if not folder:
        pytest.skip("ENVSCHED_TESTDATA names no folder with envscaler/ in it, so the real slice is not there to read")
    return Pool.from_envscaler(Path(folder) / "envscaler")
