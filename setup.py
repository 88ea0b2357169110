"""The native build alone; metadata, extras and tools are declared in pyproject.toml, where every tool reads them."""

from setuptools import setup

setup()
