"""Untrusted source made into code, in a process that may crash.

Compiling runs nothing of the source, but deep nesting can crash the compiler; so a fork does it and sends the code back
as ``marshal`` bytes. Those bytes are the compiler's own, never the environment's.
"""

import marshal
import os
import resource
import signal
from types import CodeType
from typing import Any

from .words import describe

ATTEMPTS = 3  # where somebody else kills the process
CPU_SECONDS = 20  # source that keeps the compiler busy for longer is a failure


def compile_in_fork(sources: list[str], memory_mb: int) -> list[CodeType | str]:
    """Code of each source, or the words that say why it has none.

    Raises:
        RuntimeError: the compiler crashed.
    """
    for _ in range(ATTEMPTS):
        said, status = _said_by_fork(sources, memory_mb)
        if status == 0:
            return marshal.loads(said)
        if status & 0x7F != signal.SIGKILL:
            break
    raise RuntimeError(f"compiling the source ended its process (status {status})")


def _said_by_fork(sources: list[str], memory_mb: int) -> tuple[bytes, int]:
    readable, writable = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 1))
            resource.setrlimit(resource.RLIMIT_AS, (memory_mb << 20, memory_mb << 20))
            _write_all(writable, marshal.dumps([_compile(source, f"<source {i}>") for i, source in enumerate(sources)]))
            os._exit(0)
        finally:
            os._exit(1)
    os.close(writable)
    with os.fdopen(readable, "rb") as stream:
        said = stream.read()
    return said, os.waitpid(process, 0)[1]


def _compile(source: str, name: str) -> CodeType | str:
    try:
        return compile(source, name, "exec")
    except Exception as error:
        return describe(error)


def _write_all(descriptor: int, content: bytes) -> None:
    rest: Any = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
