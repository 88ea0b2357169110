"""The walls around environments: which are wanted, which stand, and why another does not.

The worker goes through ``enter_worker`` once; each episode's process through ``enter_episode`` after its fork.
"""

import contextlib
import json
import os
import resource
import signal
import sys
from collections.abc import Callable
from typing import Any

from . import landlock, namespaces, seccomp, system

EPISODE_WALLS = ("limits", "landlock", "seccomp")


class Walls:
    """Protections by name: ``standing`` names them, ``missing`` says why one is not; a wall of two parts needs both."""

    def __init__(self) -> None:
        self.standing: list[str] = []
        self.missing: dict[str, str] = {}

    def join(self, inner: "Walls") -> None:
        """The episode's walls beside the worker's."""
        self.missing |= inner.missing
        self.standing = [name for name in dict.fromkeys(self.standing + inner.standing) if name not in self.missing]

    def raise_wall(self, name: str, action: Callable[[], None]) -> bool:
        try:
            action()
        except (OSError, ValueError, AttributeError, AssertionError) as error:
            self.missing[name] = f"{type(error).__name__}: {error}"
            return False
        self.standing.append(name)
        return True


def enter_worker(settings: dict[str, Any], folder: str) -> Walls:
    """Namespaces, own root, unprivileged user. Returns in a child: its parent stays behind only to wait for it."""
    walls = Walls()
    user = namespaces.unprivileged_user()
    if os.geteuid() == 0:
        os.chown(folder, user, user)
    if walls.raise_wall("namespaces", lambda: namespaces.enter_namespaces(user)):
        _continue_as_first_process()
        walls.raise_wall("chroot", lambda: namespaces.enter_root(folder, settings["folder_mb"], user))
    else:
        walls.missing["chroot"] = "needs namespaces"
    walls.raise_wall("setuid", lambda: namespaces.become_unprivileged(user))
    _end_with_parent()
    _gain_nothing()
    _foresee()
    walls.raise_wall("seccomp", seccomp.restrict_worker)
    return walls


def _foresee() -> None:
    """Look once for what every episode's process needs; forks inherit it. What is not there, each wall says for itself."""
    namespaces.readable_folders()
    for look in (seccomp.episode_program, landlock.supported_version):
        with contextlib.suppress(OSError):
            look()


def writable_folder(walls: Walls, folder: str) -> str:
    """Where an environment may write, as seen from inside."""
    return "/tmp" if "chroot" in walls.standing else folder


def enter_episode(settings: dict[str, Any], folder: str) -> Walls:
    """Resource limits, Landlock, seccomp; ``folder`` is the episode's own."""
    walls = Walls()
    if os.getppid() != 1:  # process 1 of a namespace takes all others along when it ends
        _end_with_parent()
    walls.raise_wall("limits", lambda: _limit(settings))
    walls.raise_wall("landlock", lambda: landlock.restrict(namespaces.readable_folders(), [folder]))
    walls.raise_wall("seccomp", seccomp.restrict_episode)
    return walls


def probe_episode(settings: dict[str, Any], folder: str) -> Walls:
    """What ``enter_episode`` achieves here, tried in a process that ends at once."""
    readable, writable = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            walls = enter_episode(settings, folder)
            os.write(writable, json.dumps([walls.standing, walls.missing]).encode())
        finally:
            os._exit(0)
    os.close(writable)
    with os.fdopen(readable, "rb") as stream:
        said = stream.read()
    os.waitpid(process, 0)
    walls = Walls()
    walls.standing, walls.missing = json.loads(said) if said else ([], dict.fromkeys(EPISODE_WALLS, "the trial process died"))
    return walls


def _limit(settings: dict[str, Any]) -> None:
    for kind, value in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, settings["file_mb"] << 20),
        (resource.RLIMIT_AS, settings["memory_mb"] << 20),
        (resource.RLIMIT_CPU, settings["cpu_seconds"]),
        (resource.RLIMIT_NOFILE, 32),
        (resource.RLIMIT_NPROC, 0),
    ):
        _, hard = resource.getrlimit(kind)
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        beyond = 1 if kind == resource.RLIMIT_CPU and value != hard else 0  # equal limits end a process without saying why
        resource.setrlimit(kind, (value, value + beyond))


def _end_with_parent() -> None:
    if sys.platform.startswith("linux"):
        system.prctl(system.PR_SET_PDEATHSIG, signal.SIGKILL)


def _gain_nothing() -> None:
    """No tracing by others, no rights by running a program; both pass on to forks."""
    if sys.platform.startswith("linux"):
        system.prctl(system.PR_SET_DUMPABLE, 0)
        system.prctl(system.PR_SET_NO_NEW_PRIVS, 1)


def _continue_as_first_process() -> None:
    """Fork; the child goes on as process 1 of the new namespace, the parent waits for it and ends as it ends."""
    process = os.fork()
    if process == 0:
        return
    os.closerange(0, 256)
    _, status = os.waitpid(process, 0)
    os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
