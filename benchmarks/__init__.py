"""Ratios measured in one run; BENCHMARKS.md has the figures with command, machine kind and date."""
