"""The example of a shared pool, as a user starts it: any number of processes prints the same batches."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kernels import native

EXAMPLE = Path(__file__).parents[2] / "examples" / "sharded_pool.py"


@pytest.mark.slow
@pytest.mark.skipif(
    not native.is_built() or not native.has_int8(), reason="no native library with int8 products was built (python -m kernels.build)"
)
def test_one_and_two_processes_print_the_same_batches():
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(EXAMPLE.parents[1])}
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node"]
    one, two = (
        subprocess.run(
            [*launcher, str(number), str(EXAMPLE)], capture_output=True, text=True, check=True, timeout=300, env=environment
        ).stdout
        for number in (1, 2)
    )
    assert [line.split(":")[0] for line in one.splitlines()] == [f"step {step}" for step in range(5)]
    assert one == two
