"""The plain decoder against transformers' own forward pass."""

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers", reason="the tiny policy belongs to the extra 'train'")

from transformers import AutoModelForCausalLM  # noqa: E402

from scripts.tiny_policy.decoder import Decoder  # noqa: E402

FOLDER = Path(__file__).parents[2] / "models" / "tiny-policy"


@pytest.fixture(scope="module")
def model():
    return AutoModelForCausalLM.from_pretrained(FOLDER, dtype=torch.float32).eval()


def last_logits(model, ids):
    with torch.no_grad():
        return model(torch.tensor([ids])).logits[0, -1]


def test_rows_of_different_lengths_are_read_like_conversations_of_their_own(model):
    one, other = [5, 6, 7, 8, 9], [11, 12, 13]
    decoder = Decoder(model, num_rows=2, width=32)
    logits = decoder.read([one, other])
    assert torch.allclose(logits[0], last_logits(model, one), atol=1e-4)
    assert torch.allclose(logits[1], last_logits(model, other), atol=1e-4)
    logits = decoder.read([[20], [21, 22]])
    assert torch.allclose(logits[0], last_logits(model, [*one, 20]), atol=1e-4)
    assert torch.allclose(logits[1], last_logits(model, [*other, 21, 22]), atol=1e-4)


def test_a_row_without_new_ids_stays_and_a_copy_goes_its_own_way(model):
    one, other = [5, 6, 7, 8, 9], [11, 12, 13]
    decoder = Decoder(model, num_rows=4, width=32)
    decoder.read([one, other])
    decoder.copy([0, 1], [2, 3])
    decoder.read([[20], [], [], [22]])
    logits = decoder.read([[21], [30]], torch.tensor([3, 2]))
    assert torch.allclose(logits[0], last_logits(model, [*other, 22, 21]), atol=1e-4)
    assert torch.allclose(logits[1], last_logits(model, [*one, 30]), atol=1e-4)
    assert decoder.length.tolist() == [6, 3, 6, 5]
