"""Namespaces, a root folder of our own, and a user without rights."""

import functools
import os
import sysconfig

from . import system

UNPRIVILEGED = 65534
_PRIVATE = system.CLONE_NEWNS | system.CLONE_NEWPID | system.CLONE_NEWNET | system.CLONE_NEWIPC | system.CLONE_NEWUTS
_KEPT_FLAGS = system.MS_NOSUID | system.MS_NODEV | system.MS_NOEXEC


def enter_namespaces(user: int) -> None:
    """Mounts, processes, network, IPC and host name of our own; a user namespace too where we may not do that as we are.

    The caller's next fork is process 1 of the new namespace.

    Raises:
        OSError: the kernel, or who started us, does not allow it.
    """
    try:
        system.unshare(_PRIVATE)
    except PermissionError:
        if os.geteuid() == 0 and user != 0:  # a root without rights to mount: the user namespace must not map the real root's number
            _leave_root(user)
            system.prctl(system.PR_SET_DUMPABLE, 1)  # or the maps below would belong to root
        user, group = os.geteuid(), os.getegid()
        system.unshare(system.CLONE_NEWUSER | _PRIVATE)
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{user} {user} 1")
        _write("/proc/self/gid_map", f"{group} {group} 1")
    system.mount("none", "/", "", system.MS_REC | system.MS_PRIVATE)


@functools.cache
def readable_folders() -> list[str]:
    """What an environment may read: Python's standard library and the time zones."""
    paths = sysconfig.get_paths()
    folders = [paths["stdlib"], paths["platstdlib"], "/usr/share/zoneinfo"]
    return [folder for folder in dict.fromkeys(map(os.path.realpath, folders)) if os.path.isdir(folder)]


def enter_root(folder: str, size_mb: int, owner: int) -> None:
    """Make a small memory file system at ``folder`` the root; in it the readable folders, read-only, and a writable /tmp.

    Raises:
        OSError: a mount is not allowed.
    """
    system.mount("tmpfs", folder, "tmpfs", system.MS_NOSUID | system.MS_NODEV, f"size={size_mb}m,nr_inodes=20000,mode=755")
    for source in readable_folders():
        target = folder + source
        os.makedirs(target)
        _bind_readonly(source, target)
        if os.path.isdir(f"{target}/site-packages"):
            system.mount("tmpfs", f"{target}/site-packages", "tmpfs", system.MS_RDONLY, "size=4k")
    os.mkdir(f"{folder}/tmp", 0o700)
    os.chown(f"{folder}/tmp", owner, owner)
    os.chdir(folder)
    system.pivot_root(".", ".")
    system.unmount(".", system.MNT_DETACH)
    os.chdir("/")


def become_unprivileged(user: int) -> None:
    """Leave root behind; a process that never was root only gives up what the user namespace gave it."""
    if os.geteuid() == 0 and user != 0:
        _leave_root(user)
    system.drop_capabilities()
    if os.geteuid() == 0:
        raise OSError("no user but root is mapped here")


def unprivileged_user() -> int:
    """The user to become: ourselves unless root. A number that no other process has, where this machine maps it."""
    if os.geteuid() != 0:
        return os.geteuid()
    with open("/proc/self/uid_map") as stream:
        ranges = [tuple(map(int, line.split())) for line in stream]
    for wanted in (1_500_000_000 + os.getpid(), UNPRIVILEGED):
        if any(first <= wanted < first + length for first, _, length in ranges):
            return wanted
    return 0


def _leave_root(user: int) -> None:
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)


def _bind_readonly(source: str, target: str) -> None:
    system.mount(source, target, "", system.MS_BIND)
    kept = os.statvfs(target).f_flag & _KEPT_FLAGS
    system.mount("none", target, "", system.MS_REMOUNT | system.MS_BIND | system.MS_RDONLY | kept)


def _write(path: str, text: str) -> None:
    with open(path, "w") as stream:
        stream.write(text)
