"""Compile the C++ operations: ``python -m kernels.build``, and setup.py through ``with_kernels``.

One shared library for each level of instructions, so that a wheel runs on any machine of its architecture; plain C
interfaces, loaded with ctypes, so that no version of Python or torch is built in. ``ENVSCHED_KERNELS=0`` skips.
"""

import hashlib
import logging
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
SOURCES = HERE / "csrc"
LIBRARIES = HERE / "lib"
_AVX512 = ("-march=x86-64-v4", "-mavx512vnni")
LEVELS = {"amx": (*_AVX512, "-mamx-tile", "-mamx-int8"), "avx512vnni": _AVX512, "avx2": ("-march=x86-64-v3",), "baseline": ()}  # best first
_FLAGS = ("-std=c++17", "-O3", "-fPIC", "-fopenmp", "-fvisibility=hidden", "-fno-math-errno", "-fno-trapping-math", "-w")
# A fused multiply-add rounds once: wanted in product tiles, whose error is bounded anyway, and nowhere else.
_FUSED = ("within.cpp", "cross.cpp", "offer.cpp", "similarity.cpp", "stream.cpp", "live.cpp")

_log = logging.getLogger(__name__)


def sources_digest() -> str:
    """SHA-256 over the C++ sources: a library built from others is not used."""
    sha = hashlib.sha256()
    for file in sorted(SOURCES.glob("*")):
        sha.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return sha.hexdigest()[:16]


def levels() -> list[str]:
    """Levels that can be built on this architecture."""
    return list(LEVELS) if platform.machine() in ("x86_64", "AMD64") else ["baseline"]


def build(folder: Path = LIBRARIES) -> list[Path]:
    """Build every level into ``folder``; the libraries made.

    Raises:
        RuntimeError: no compiler, or it failed; with what it said.
    """
    compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("c++")
    if not compiler:
        raise RuntimeError("no C++ compiler found (g++); install one or set CXX")
    folder.mkdir(parents=True, exist_ok=True)
    return [_build_level(compiler, level, folder) for level in levels()]


def build_or_warn(folder: Path = LIBRARIES) -> list[Path]:
    """``build`` for an installation: a failure costs speed, not the package."""
    if os.environ.get("ENVSCHED_KERNELS") == "0":
        return []
    try:
        return build(folder)
    except (RuntimeError, OSError) as error:
        _log.warning("native kernels were not built, torch takes their place: %s", error)
        return []


def with_kernels(build_py: type) -> type:
    """setuptools' command ``build_py`` that also builds the libraries: in place for an editable install, else into the wheel."""

    class BuildWithKernels(build_py):
        def run(self) -> None:
            super().run()
            build_or_warn(LIBRARIES if self.editable_mode else Path(self.build_lib) / "kernels" / "lib")

    return BuildWithKernels


def _build_level(compiler: str, level: str, folder: Path) -> Path:
    library = folder / f"envsched-{level}.so"
    with tempfile.TemporaryDirectory() as scratch:
        objects = []
        for source in sorted(SOURCES.glob("*.cpp")):
            objects.append(str(Path(scratch) / f"{source.stem}.o"))
            contract = "-ffp-contract=fast" if source.name in _FUSED else "-ffp-contract=off"
            digest = f'-DENVSCHED_SOURCES="{sources_digest()}"'
            _run([compiler, *_FLAGS, *LEVELS[level], contract, digest, "-c", str(source), "-o", objects[-1]])
        made = Path(scratch) / library.name
        _run([compiler, "-shared", "-fopenmp", *objects, "-o", str(made)])
        shutil.copy2(made, folder / f".{library.name}")
    os.replace(folder / f".{library.name}", library)
    return library


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}\n{done.stderr[-2000:]}")


if __name__ == "__main__":
    try:
        for path in build():
            print(path)
    except RuntimeError as error:
        sys.exit(f"kernels: {error}")
