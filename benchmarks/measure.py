"""What all benchmarks share: interleaved medians, one process for one thread and one for the default, a table, a JSON file.

Only ratios inside one run mean anything on a shared machine. Each figure is a median of interleaved repeats, by the wall
clock; ``cpu`` repeats the one-thread ratios by the processor time of the thread, which a busy neighbour disturbs less.
"""

import argparse
import datetime
import importlib.metadata
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

Figures = dict[str, Any]

_PEERS = ("torch", "torch-geometric", "torch-scatter", "faiss-cpu", "faiss-gpu", "numpy", "scipy")


def medians(functions: Mapping[str, Callable[[], Any]], repeats: int, warm: int = 1) -> dict[str, dict[str, float]]:
    """Median seconds of each function by both clocks, run in turns: {"wall": {...}, "cpu": {...}}."""
    for _ in range(warm):
        for function in functions.values():
            function()
    seconds: dict[str, dict[str, list[float]]] = {clock: {name: [] for name in functions} for clock in ("wall", "cpu")}
    for _ in range(repeats):
        for name, function in functions.items():
            wall, cpu = time.perf_counter(), time.thread_time()
            function()
            seconds["cpu"][name].append(time.thread_time() - cpu)
            seconds["wall"][name].append(time.perf_counter() - wall)
    return {clock: {name: statistics.median(values) for name, values in by_name.items()} for clock, by_name in seconds.items()}


def by_clock(measured: Mapping[str, Mapping[str, float]], ratios: Callable[[Mapping[str, float]], Figures]) -> Figures:
    """``ratios`` of the wall medians at the top level, of the processor medians under ``cpu``."""
    return ratios(measured["wall"]) | {"cpu": ratios(measured["cpu"])}


def merge(*parts: Figures) -> Figures:
    """Figures of several measurements as one; their ``cpu`` parts are merged too."""
    merged: Figures = {}
    for part in parts:
        cpu = {**merged.get("cpu", {}), **part.get("cpu", {})}
        merged |= part
        if cpu:
            merged["cpu"] = cpu
    return merged


def main(module: str, measure: Callable[[argparse.Namespace], Figures], *, tasks: int, environments: int, **more: int) -> None:
    """Command line of a benchmark: runs ``measure`` with one thread and with the default, prints a table, writes JSON."""
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=sys.modules["__main__"].__doc__)
    parser.add_argument("--tasks", type=int, default=tasks, help="N (default: %(default)s)")
    parser.add_argument("--environments", type=int, default=environments, help="M (default: %(default)s)")
    for name, value in more.items():
        parser.add_argument(f"--{name}", type=int, default=value, help="(default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=7, help="medians are over this many (default: %(default)s)")
    parser.add_argument("--json", type=Path, help="file to write")
    parser.add_argument("--threads", type=int, help="measure in this process with this many threads only")
    arguments = parser.parse_args()
    if arguments.threads:
        os.environ["ENVSCHED_THREADS"] = os.environ["OMP_NUM_THREADS"] = str(arguments.threads)
        _finish(measure(arguments), arguments)
        return
    one, default = (_in_process(module, threads) for threads in (1, len(os.sched_getaffinity(0))))
    _finish(one | {"default_threads": default}, arguments)


def _in_process(module: str, threads: int) -> Figures:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "figures.json"
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "ENVSCHED_THREADS": str(threads)}
        command = [sys.executable, "-m", module, *sys.argv[1:], "--threads", str(threads), "--json", str(file)]  # the last --json holds
        subprocess.run(command, check=True, env=environment)
        figures = json.loads(file.read_text())
    for name in ("machine", "versions", "date", "command"):
        figures.pop(name)
    return figures


def _finish(figures: Figures, arguments: argparse.Namespace) -> None:
    for name, value in figures.items():
        if not isinstance(value, dict):
            shown = f"{value:.4g}" if isinstance(value, float) else value
            print(f"  {name:36} {shown}")
    figures |= {
        "repeats": arguments.repeats,
        "machine": {"kind": _processor(), "processors": len(os.sched_getaffinity(0)), "load": os.getloadavg()[0]},
        "versions": {name: _version(name) for name in _PEERS},
        "date": datetime.date.today().isoformat(),
        "command": " ".join(["python", "-m", sys.modules["__main__"].__spec__.name, *sys.argv[1:]]),
    }
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n")


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
