"""Seccomp: the system calls that an environment's process may make; every other answers EPERM.

A list of what is allowed, so that a call which a newer kernel brings is denied: no sockets, no processes or threads, no
programs, no tracing, no mounts, no signals to others. The long filter is installed once, in the worker; an episode's
process inherits it and adds a short one that takes away what only the worker needs.
"""

import ctypes
import functools
import os
import struct

from . import system

# Name: number on x86_64, number on aarch64 (None: does not exist there).
# fmt: off
ALLOWED = {
    # bytes in and out of what is open
    "read": (0, 63), "write": (1, 64), "readv": (19, 65), "writev": (20, 66), "pread64": (17, 67), "pwrite64": (18, 68),
    "close": (3, 57), "fstat": (5, 80), "lseek": (8, 62), "fsync": (74, 82), "fdatasync": (75, 83), "ftruncate": (77, 46),
    "fcntl": (72, 25), "ioctl": (16, 29), "flock": (73, 32), "dup": (32, 23), "dup2": (33, None), "dup3": (292, 24),
    "pipe": (22, None), "pipe2": (293, 59), "eventfd2": (290, 19),
    # the one socket that is open already
    "sendto": (44, 206), "recvfrom": (45, 207), "shutdown": (48, 210), "getsockopt": (55, 209), "getsockname": (51, 204),
    "getpeername": (52, 205),
    # memory
    "mmap": (9, 222), "munmap": (11, 215), "mprotect": (10, 226), "mremap": (25, 216), "brk": (12, 214), "madvise": (28, 233),
    "membarrier": (324, 283),
    # paths, where Landlock and the root folder decide
    "open": (2, None), "openat": (257, 56), "creat": (85, None), "stat": (4, None), "lstat": (6, None), "newfstatat": (262, 79),
    "statx": (332, 291), "access": (21, None), "faccessat": (269, 48), "faccessat2": (439, 439), "readlink": (89, None),
    "readlinkat": (267, 78), "getcwd": (79, 17), "chdir": (80, 49), "fchdir": (81, 50), "getdents": (78, None),
    "getdents64": (217, 61), "statfs": (137, 43), "fstatfs": (138, 44), "mkdir": (83, None), "mkdirat": (258, 34),
    "rmdir": (84, None), "unlink": (87, None), "unlinkat": (263, 35), "rename": (82, None), "renameat": (264, 38),
    "renameat2": (316, 276), "link": (86, None), "linkat": (265, 37), "symlink": (88, None), "symlinkat": (266, 36),
    "truncate": (76, 45), "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53), "utimensat": (280, 88),
    "umask": (95, 166),
    # signals to oneself, timers
    "rt_sigaction": (13, 134), "rt_sigprocmask": (14, 135), "rt_sigreturn": (15, 139), "rt_sigpending": (127, 136),
    "rt_sigsuspend": (130, 133), "rt_sigtimedwait": (128, 137), "sigaltstack": (131, 132), "pause": (34, None), "alarm": (37, None),
    "getitimer": (36, 102), "setitimer": (38, 103), "restart_syscall": (219, 128),
    # who am I
    "getpid": (39, 172), "getppid": (110, 173), "gettid": (186, 178), "getuid": (102, 174), "geteuid": (107, 175),
    "getgid": (104, 176), "getegid": (108, 177), "getgroups": (115, 158), "getresuid": (118, 148), "getresgid": (120, 150),
    "getpgrp": (111, None), "getpgid": (121, 155), "getsid": (124, 156), "uname": (63, 160), "sysinfo": (99, 179),
    "getrusage": (98, 165), "getrlimit": (97, 163), "prlimit64": (302, 261), "getcpu": (309, 168), "getpriority": (140, 141),
    "sched_getaffinity": (204, 123),
    # time and chance
    "clock_gettime": (228, 113), "clock_getres": (229, 114), "clock_nanosleep": (230, 115), "nanosleep": (35, 101),
    "gettimeofday": (96, 169), "time": (201, None), "times": (100, 153), "getrandom": (318, 278),
    # waiting
    "futex": (202, 98), "set_robust_list": (273, 99), "get_robust_list": (274, 100), "set_tid_address": (218, 96),
    "rseq": (334, 293), "arch_prctl": (158, None), "sched_yield": (24, 124), "select": (23, None), "pselect6": (270, 72),
    "poll": (7, None), "ppoll": (271, 73), "epoll_create": (213, None), "epoll_create1": (291, 20), "epoll_ctl": (233, 21),
    "epoll_wait": (232, None), "epoll_pwait": (281, 22), "wait4": (61, 260), "waitid": (247, 95),
    # the end
    "exit": (60, 93), "exit_group": (231, 94),
}
WORKER_ONLY = {
    "clone": (56, 220), "clone3": (435, 435), "fork": (57, None), "vfork": (58, None), "kill": (62, 129), "tgkill": (234, 131),
    "prctl": (157, 167), "seccomp": (317, 277), "sendmsg": (46, 211), "recvmsg": (47, 212),
    "landlock_create_ruleset": (444, 444), "landlock_add_rule": (445, 445), "landlock_restrict_self": (446, 446),
}
# fmt: on
_ARCHITECTURES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}  # audit name, column of ALLOWED

_LOAD_WORD, _JUMP_EQUAL, _RETURN = 0x20, 0x15, 0x06
_NUMBER_AT, _ARCHITECTURE_AT = 0, 4
_ALLOW, _DENY, _KILL = 0x7FFF0000, 0x00050001, 0x80000000  # the low half of _DENY is EPERM
_MODE_FILTER = 2


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def restrict_worker() -> None:
    """Deny all but ``ALLOWED`` and ``WORKER_ONLY`` to this process and those after it, for good.

    Raises:
        OSError: the kernel has no seccomp filters, or we know no numbers for this machine.
    """
    audit, allowed = _numbers({**ALLOWED, **WORKER_ONLY})
    lines = [
        (_LOAD_WORD, 0, 0, _ARCHITECTURE_AT),
        (_JUMP_EQUAL, 1, 0, audit),  # another architecture's numbers mean other calls
        (_RETURN, 0, 0, _KILL),
        (_LOAD_WORD, 0, 0, _NUMBER_AT),
    ]
    _install(_program([*lines, *_verdict(allowed, matched=_ALLOW, other=_DENY)]))


def restrict_episode() -> None:
    """Deny ``WORKER_ONLY`` as well.

    Raises:
        OSError: as in ``restrict_worker``.
    """
    _install(episode_program())


@functools.cache
def episode_program() -> _Program:
    """The short filter; asked for once in the worker, it is there in every fork.

    Raises:
        OSError: we know no numbers for this machine.
    """
    _, denied = _numbers(WORKER_ONLY)
    return _program([(_LOAD_WORD, 0, 0, _NUMBER_AT), *_verdict(denied, matched=_DENY, other=_ALLOW)])


def _verdict(numbers: list[int], matched: int, other: int) -> list[tuple[int, int, int, int]]:
    """Jump to the last line on a number of the list; the line before it is for all others."""
    jumps = [(_JUMP_EQUAL, len(numbers) - position, 0, number) for position, number in enumerate(numbers)]
    return [*jumps, (_RETURN, 0, 0, other), (_RETURN, 0, 0, matched)]


def _numbers(table: dict[str, tuple[int, int | None]]) -> tuple[int, list[int]]:
    machine = os.uname().machine
    if machine not in _ARCHITECTURES:
        raise OSError(f"no list of system calls for {machine}")
    audit, column = _ARCHITECTURES[machine]
    return audit, sorted(row[column] for row in table.values() if row[column] is not None)


def _program(lines: list[tuple[int, int, int, int]]) -> _Program:
    return _Program(len(lines), b"".join(struct.pack("HBBI", *line) for line in lines))


def _install(program: _Program) -> None:
    system.prctl(system.PR_SET_SECCOMP, _MODE_FILTER, ctypes.addressof(program))
