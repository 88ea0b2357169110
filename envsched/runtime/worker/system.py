"""System calls that Python has no words for, through the C library."""

import ctypes
import os

_libc = ctypes.CDLL(None, use_errno=True)

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC = 0x00020000, 0x04000000, 0x08000000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 2, 4, 8, 32, 4096, 16384, 1 << 18
MNT_DETACH = 2
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS = 1, 4, 22, 38

_CAPABILITY_VERSION_3 = 0x20080522
_SYSCALLS = {  # the few that the C library does not wrap; the numbers from 424 on are the same everywhere
    "x86_64": {"pivot_root": 155, "capset": 126},
    "aarch64": {"pivot_root": 41, "capset": 91},
}


def checked(result: int) -> int:
    """Raise what ``errno`` says when a call answered -1."""
    if result == -1:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def syscall(number: int, *arguments) -> int:
    return checked(_libc.syscall(ctypes.c_long(number), *arguments))


def number_of(name: str) -> int:
    try:
        return _SYSCALLS[os.uname().machine][name]
    except KeyError:
        raise OSError(f"no number known for {name} on {os.uname().machine}") from None


def prctl(option: int, *arguments: int) -> int:
    padded = (*arguments, 0, 0, 0, 0)[:4]
    return checked(_libc.prctl(ctypes.c_int(option), *map(ctypes.c_ulong, padded)))


def unshare(flags: int) -> None:
    checked(_libc.unshare(ctypes.c_int(flags)))


def mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    checked(_libc.mount(source.encode(), target.encode(), kind.encode() or None, ctypes.c_ulong(flags), options.encode() or None))


def unmount(target: str, flags: int) -> None:
    checked(_libc.umount2(target.encode(), ctypes.c_int(flags)))


def pivot_root(new: str, old: str) -> None:
    syscall(number_of("pivot_root"), new.encode(), old.encode())


def drop_capabilities() -> None:
    """Give up every capability, for good together with ``PR_SET_NO_NEW_PRIVS``."""
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    syscall(number_of("capset"), ctypes.byref(header), ctypes.byref((ctypes.c_uint32 * 6)()))
