import os
from pathlib import Path

import pytest

from envsched.pool import Pool


@pytest.fixture(scope="session")
def envscaler_folder() -> Path:
    folder = os.environ.get("ENVSCHED_TESTDATA")
    if not folder:
        pytest.skip("ENVSCHED_TESTDATA names no folder with real data")
    return Path(folder) / "envscaler"


@pytest.fixture(scope="session")
def envscaler_pool(envscaler_folder) -> Pool:
    return Pool.from_envscaler(envscaler_folder)
