"""The native build alone; metadata, extras and tools are declared in pyproject.toml, where every tool reads them."""

import os
import runpy
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

WITH_KERNELS = runpy.run_path(str(Path(__file__).parent / "kernels/build.py"))["with_kernels"]


class NativeDistribution(Distribution):
    """A wheel that holds compiled libraries belongs to one platform."""

    def has_ext_modules(self) -> bool:
        return os.environ.get("ENVSCHED_KERNELS") != "0"


setup(cmdclass={"build_py": WITH_KERNELS(build_py)}, distclass=NativeDistribution)
