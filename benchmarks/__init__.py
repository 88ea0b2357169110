"""Ratios measured in one run, by ``python -m benchmarks.NAME``; BENCHMARKS.md has the figures with command, machine kind and date."""

from pathlib import Path

# ``benchmarks.select`` lies in a folder of its own: beside the others it would stand in for the standard library's ``select``
# wherever one of them is run by its path.
__path__.append(str(Path(__file__).parent / "by_name"))
