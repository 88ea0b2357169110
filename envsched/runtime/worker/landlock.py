"""Landlock: this process and those after it see only the folders named here (Linux 5.13; network rules 6.7, scopes 6.12)."""

import ctypes
import functools
import os

from . import system

_CREATE, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION_FLAG, _PATH_BENEATH = 1, 1

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_ALL_OF_VERSION = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}
_DEVICES = 1 << 6 | 1 << 11  # making character and block devices
_NET_TCP = 0b11  # bind, connect
_SCOPES = 0b11  # abstract sockets, signals


class _Attributes(ctypes.Structure):
    _fields_ = (("filesystem", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("folder", ctypes.c_int32))


def restrict(readable: list[str], writable: list[str]) -> None:
    """Deny every path but these, every TCP port, and signals to processes outside.

    Raises:
        OSError: the kernel has no Landlock.
    """
    version = supported_version()
    handled = _ALL_OF_VERSION[max(known for known in _ALL_OF_VERSION if known <= version)]
    attributes = _Attributes(handled, _NET_TCP if version >= 4 else 0, _SCOPES if version >= 6 else 0)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    ruleset = system.syscall(_CREATE, ctypes.byref(attributes), ctypes.c_size_t(size), ctypes.c_uint32(0))
    for folder in readable:
        _allow(ruleset, folder, (_EXECUTE | _READ_FILE | _READ_DIR) & handled)
    for folder in writable:
        _allow(ruleset, folder, handled & ~_DEVICES & ~_EXECUTE)
    system.syscall(_RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint32(0))
    os.close(ruleset)


@functools.cache
def supported_version() -> int:
    """Of the kernel's Landlock; asked for once in the worker, it is known in every fork.

    Raises:
        OSError: the kernel has none.
    """
    return system.syscall(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION_FLAG))


def _allow(ruleset: int, folder: str, access: int) -> None:
    try:
        handle = os.open(folder, os.O_PATH | os.O_CLOEXEC)
    except OSError:  # a folder that this user can't reach needs no leave
        return
    try:
        rule = _Beneath(access, handle)
        system.syscall(_ADD_RULE, ctypes.c_int(ruleset), ctypes.c_int(_PATH_BENEATH), ctypes.byref(rule), ctypes.c_uint32(0))
    finally:
        os.close(handle)
