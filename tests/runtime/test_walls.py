"""The walls themselves: their lists against the kernel's headers, and what the run says of them."""

import logging
import re
from pathlib import Path

import pytest

from envsched.errors import WorkerError
from envsched.runtime import EnvironmentRuntime
from envsched.runtime.worker import seccomp
from tests.runtime.pools import counter_pool

HEADERS = {0: "/usr/include/x86_64-linux-gnu/asm/unistd_64.h", 1: "/usr/include/asm-generic/unistd.h"}


@pytest.mark.parametrize("column", HEADERS)
def test_numbers_of_system_calls_are_the_kernels(column):
    header = Path(HEADERS[column])
    if not header.exists():
        pytest.skip(f"no {header}: the kernel's headers are not installed")
    numbers = {name: int(number) for name, number in re.findall(r"#define\s+__NR(?:3264)?_(\w+)\s+(\d+)", header.read_text())}
    numbers.setdefault("newfstatat", numbers.get("fstatat"))  # the generic table has it under its older name
    for name, row in {**seccomp.ALLOWED, **seccomp.WORKER_ONLY}.items():
        assert row[column] == numbers.get(name), name


def test_the_run_says_which_walls_stand(caplog):
    with caplog.at_level(logging.INFO, logger="envsched.runtime"), EnvironmentRuntime(counter_pool(), num_workers=1) as runtime:
        for wall in runtime.protections.standing:
            assert wall in caplog.text
        for wall in runtime.protections.missing:
            assert f"no {wall}" in caplog.text


def test_no_walls_is_a_warning(caplog):
    with EnvironmentRuntime(counter_pool(), num_workers=1, sandbox="off"):
        assert "environments run behind: none" in caplog.text


def test_required_walls_are_all_or_nothing():
    with EnvironmentRuntime(counter_pool(), num_workers=1) as runtime:
        missing = runtime.protections.missing
    if missing:
        with pytest.raises(WorkerError, match="sandbox: require"):
            EnvironmentRuntime(counter_pool(), num_workers=1, sandbox="require")
    else:
        with EnvironmentRuntime(counter_pool(), num_workers=1, sandbox="require") as runtime, runtime.start("task") as episode:
            assert episode.call("add", {"amount": 1}).ok
