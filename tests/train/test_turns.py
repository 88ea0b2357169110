"""Turns that keep their cache, against ``model.generate`` on the whole conversation."""

import pytest
import torch
from transformers import AutoModelForCausalLM, GenerationConfig

from envsched.train.turns import Turns, can_keep

MODEL, PAD, END = "models/tiny-policy", 0, 1
PROMPTS = [[2, 40, 41, 42, 3, 50, 51, 4], [2, 40, 41, 42, 3, 50, 51, 4], [2, 60, 3, 70, 71, 72, 73, 74, 4], [2, 9, 3, 4]]


@pytest.fixture(scope="module")
def model():
    return AutoModelForCausalLM.from_pretrained(MODEL, dtype=torch.float32).eval()


def settings(**changed):
    plain = {"do_sample": True, "top_k": 0, "top_p": 1.0, "temperature": 1.0, "max_new_tokens": 12}
    return GenerationConfig(**{**plain, "pad_token_id": PAD, "eos_token_id": [END], **changed})


def greedy(model, prompt):
    made = model.generate(torch.tensor([prompt]), do_sample=False, max_new_tokens=12, pad_token_id=PAD, eos_token_id=END)
    return made[0, len(prompt) :].tolist()


def test_three_turns_equal_generation_from_the_whole_conversation(model):
    """At a temperature near 0 sampling is the argmax; rollouts drop out between turns and get tool results of different lengths."""
    turns, prompts = Turns(model, settings(temperature=1e-4)), PROMPTS
    for results in ([[6, 80, 81], None, [6, 90], [6, 91, 92, 93, 94, 4]], [[6, 95, 4], [6, 96, 97, 98], None], None):
        made = turns.take(prompts)
        assert made == [greedy(model, prompt) for prompt in prompts]
        if results:
            prompts = [p + new + more for p, new, more in zip(prompts, made, results, strict=True) if more is not None]
    assert len(prompts) == 2


def test_a_conversation_that_continues_none_is_read_anew(model):
    turns = Turns(model, settings(temperature=1e-4))
    turns.take(PROMPTS)
    other = [[2, 44, 3, 45, 4], PROMPTS[0]]
    assert turns.take(other) == [greedy(model, prompt) for prompt in other]


def test_samples_follow_the_models_distribution(model):
    """First tokens of 4,000 rollouts of one prompt: within 5 standard deviations of the probabilities."""
    torch.manual_seed(0)
    made = Turns(model, settings(max_new_tokens=1)).take([PROMPTS[2]] * 4000)
    share = torch.bincount(torch.tensor(made).flatten(), minlength=model.config.vocab_size) / 4000
    with torch.no_grad():
        wanted = torch.softmax(model(torch.tensor([PROMPTS[2]])).logits[0, -1], dim=-1)
    assert ((share - wanted).abs() <= 5 * (wanted * (1 - wanted) / 4000).sqrt() + 1e-3).all()


@pytest.mark.parametrize("changed", [{"top_k": 5}, {"top_p": 0.9}, {"repetition_penalty": 1.1}, {"do_sample": False}])
def test_other_sampling_is_left_to_transformers(model, changed):
    assert can_keep(model, settings())
    assert not can_keep(model, settings(**changed))
