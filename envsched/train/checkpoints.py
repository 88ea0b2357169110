"""A checkpoint counts once its seal is written: the scheduler's state and the step, last of all and atomically.

A run killed in the middle of a save leaves a folder without a seal, which resuming sets aside.
"""

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from envsched.errors import StateError
from envsched.files import write_json

PREFIX = "checkpoint-"  # transformers' own
SEAL = "envsched.json"


def seal_checkpoint(folder: Path, step: int, scheduler: Mapping[str, Any], digests: Mapping[str, str]) -> None:
    """Declare the checkpoint of ``step`` whole.

    Args:
        folder: transformers' folder of this checkpoint, complete but for the seal.
        step: optimizer steps done.
        scheduler: the scheduler's ``state_dict`` after the records of step - 1.
        digests: what the checkpoint belongs to (pool, rollouts so far).
    """
    for file in folder.rglob("*"):
        if file.is_file():
            _sync(file)
    write_json(folder / SEAL, {"step": step, "digests": dict(digests), "scheduler": dict(scheduler)})


def sealed_checkpoints(folder: Path) -> dict[int, Path]:
    """Whole checkpoints by step, ascending."""
    found = {step: path for step, path in _checkpoints(folder) if (path / SEAL).is_file()}
    return dict(sorted(found.items()))


def unsealed_checkpoints(folder: Path) -> list[Path]:
    """Checkpoints whose save was cut short."""
    return [path for _, path in _checkpoints(folder) if not (path / SEAL).is_file()]


def read_seal(checkpoint: Path) -> dict[str, Any]:
    """What ``seal_checkpoint`` wrote.

    Raises:
        StateError: the trainer's step beside it is another one.
    """
    seal = json.loads((checkpoint / SEAL).read_text())
    trainer_step = json.loads((checkpoint / "trainer_state.json").read_text())["global_step"]
    if trainer_step != seal["step"]:
        raise StateError(
            f"{checkpoint}: the trainer is at step {trainer_step}, the scheduler at step {seal['step']}; "
            "the folder was altered: remove it to resume from the checkpoint before"
        )
    return seal


def drop_old_checkpoints(folder: Path, keep: int) -> None:
    """Remove all but the newest ``keep`` sealed checkpoints; the seal goes first, so a half-removed one never counts."""
    for path in list(sealed_checkpoints(folder).values())[:-keep]:
        (path / SEAL).unlink()
        shutil.rmtree(path)


def _checkpoints(folder: Path) -> list[tuple[int, Path]]:
    return [
        (int(path.name.removeprefix(PREFIX)), path)
        for path in folder.glob(f"{PREFIX}*")
        if path.is_dir() and path.name.removeprefix(PREFIX).isdigit()
    ]


def _sync(file: Path) -> None:
    handle = os.open(file, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
