"""Verdicts in figures, and the journal by which a broken-off evaluation goes on."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from envsched.errors import StateError
from envsched.evaluate.bfcl.dialogue import Verdict


@dataclass(frozen=True, slots=True)
class Score:
    """Of one subset: ``accuracy`` is the share of dialogues with score 1 among those scored; ``num_failed`` had no environment."""

    accuracy: float | None
    num_scored: int
    num_failed: int


def scores_of(verdicts: Iterable[Verdict], subsets: Sequence[str]) -> dict[str, Score]:
    """By subset, in their order."""
    verdicts = list(verdicts)
    return {subset: _score([v.score for v in verdicts if v.subset == subset]) for subset in subsets}


def mean_accuracy(scores: dict[str, Score]) -> float | None:
    """Mean over subsets, each counting alike; none where a subset has no score."""
    known = [score.accuracy for score in scores.values() if score.accuracy is not None]
    return fmean(known) if known and len(known) == len(scores) else None


def _score(scores: list[float | None]) -> Score:
    known = [score for score in scores if score is not None]
    return Score(fmean(known) if known else None, len(known), len(scores) - len(known))


class Journal:
    """Verdicts on disk, one JSON line each, the first line says of what.

    Args:
        file: made where it is missing.
        subject: what the verdicts are of; another one in the file is refused.

    Raises:
        StateError: the file is of another evaluation.
    """

    def __init__(self, file: Path, subject: dict[str, Any]) -> None:
        self._file = file
        self.verdicts: list[Verdict] = []
        lines = file.read_text(encoding="utf-8").split("\n")[:-1] if file.exists() else []  # a line cut short has no end
        if not lines:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(subject) + "\n", encoding="utf-8")
            return
        before = json.loads(lines[0])
        differing = [name for name in subject if before.get(name) != subject[name]]
        if differing:
            words = "; ".join(f"{name} was {before.get(name)!r}, now {subject[name]!r}" for name in differing)
            raise StateError(f"{file}: begun with other settings ({words}); give another --out, or remove it")
        self.verdicts = [Verdict(**json.loads(line)) for line in lines[1:]]
        file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    def add(self, verdict: Verdict) -> None:
        """Keep one more."""
        self.verdicts.append(verdict)
        with open(self._file, "a", encoding="utf-8") as stream:
            stream.write(json.dumps(asdict(verdict)) + "\n")

    def close(self) -> None:
        """All is in the report now."""
        self._file.unlink(missing_ok=True)
