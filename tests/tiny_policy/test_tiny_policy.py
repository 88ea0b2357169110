"""The tiny policy that ships with the repository, and the warm-up that made it."""

import json
import random
import re
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("trl", reason="the tiny policy belongs to the extra 'train'")

from transformers import AutoModelForCausalLM, AutoTokenizer  # noqa: E402
from trl.chat_template_utils import (  # noqa: E402
    is_chat_template_prefix_preserving,
    is_chat_template_stop_token_trained,
    parse_response,
    supports_tool_calling,
)

from envsched.files import digest  # noqa: E402
from envsched.pool import Pool  # noqa: E402
from scripts.bundled_pool.build import environment_item  # noqa: E402
from scripts.tiny_policy.rollouts import rewards_of  # noqa: E402
from scripts.tiny_policy.tokenizer import ASSISTANT, SPECIAL  # noqa: E402
from scripts.tiny_policy.traces import draw_task, habitual, skilled, unforgotten  # noqa: E402
from scripts.tiny_policy.warm_up import Demonstrations, Stage, WarmUp, build_model  # noqa: E402
from scripts.warm_up_tiny_policy import make_tokenizer  # noqa: E402

FOLDER = Path(__file__).parents[2] / "models" / "tiny-policy"
TOKENIZER = AutoTokenizer.from_pretrained(FOLDER)
POOL = Pool.bundled()


@pytest.fixture(scope="module")
def model():
    return AutoModelForCausalLM.from_pretrained(FOLDER).eval()


def messages_of(text):
    """A trace read back as chat messages, by its markers alone."""
    messages, parts = [], re.split(f"({'|'.join(SPECIAL)})", text)
    for marker, body in zip(parts[1::2], parts[2::2], strict=True):
        if marker in ("<user>", "<tool>"):
            messages.append({"role": marker[1:-1], "content": body})
        elif marker == "<call>":
            name, arguments = re.fullmatch(r"(\w+)(\{.*\})", body).groups()
            call = {"type": "function", "function": {"name": name, "arguments": json.loads(arguments)}}
            messages.append({"role": "assistant", "content": "", "tool_calls": [call]})
        elif marker == ASSISTANT and body:
            messages.append({"role": "assistant", "content": body})
    return messages


def test_size_and_digests():
    made_from = json.loads((FOLDER / "made_from.json").read_text())
    assert sum(file.stat().st_size for file in FOLDER.iterdir()) < 12_000_000
    assert made_from["pool"] == POOL.fingerprint, "the pool changed: run python -m scripts.warm_up_tiny_policy"
    for name, recorded in made_from["files"].items():
        assert digest((FOLDER / name).read_bytes()) == recorded, name


def test_what_trl_asks_of_a_tokenizer():
    assert supports_tool_calling(TOKENIZER)
    assert is_chat_template_prefix_preserving(TOKENIZER)
    assert is_chat_template_stop_token_trained(TOKENIZER)
    assert TOKENIZER.padding_side == "left"
    assert TOKENIZER.response_template is not None
    assert TOKENIZER.pad_token_id != TOKENIZER.eos_token_id


def test_tokenizer_is_what_the_script_makes():
    assert make_tokenizer().get_vocab() == TOKENIZER.get_vocab()


@pytest.mark.parametrize("task", POOL.tasks[::7], ids=lambda task: task.key)
def test_every_word_of_the_pool_is_a_token(task):
    text = f"{task.prompt} {' '.join(POOL.environment(task.environment).tool_names)}"
    tokens = TOKENIZER.tokenize(text)
    assert len(tokens) <= 2 * len(re.findall(r"\w+", text.replace("_", " "))) + 4
    assert TOKENIZER.decode(TOKENIZER(text)["input_ids"]) == text


@pytest.mark.parametrize("seed", range(20))
def test_demonstrations_read_as_the_chat_template_renders(seed):
    draft = draw_task(random.Random(seed))
    text = "".join(part for part, _ in skilled(draft, random.Random(seed)))
    tools = environment_item(draft.domain)["tools"]
    assert TOKENIZER.apply_chat_template(messages_of(text), tools=tools, tokenize=False) == text


@pytest.mark.parametrize("seed", range(20))
def test_calls_are_parsed_as_they_were_meant(seed):
    draft = draw_task(random.Random(seed))
    tools = environment_item(draft.domain)["tools"]
    written = [text for text, weight in skilled(draft, random.Random(seed)) if weight == 1.0]
    parsed = [
        parse_response(TOKENIZER, TOKENIZER(text)["input_ids"], prefix=TOKENIZER(ASSISTANT)["input_ids"], tools=tools) for text in written
    ]
    calls = [(call["function"]["name"], call["function"]["arguments"]) for message in parsed for call in message.get("tool_calls", [])]
    assert calls == list(draft.actions)
    assert parsed[-1] == {"role": "assistant", "content": "done"}


def test_habits_leave_out_and_skill_is_not_unlearned():
    drafts = [draw_task(random.Random(seed)) for seed in range(200)]
    full = [len(skilled(draft, random.Random(0))) for draft in drafts]
    lazy = [len(habitual(draft, random.Random(0))) for draft in drafts]
    assert all(short <= long for short, long in zip(lazy, full, strict=True))
    assert 0.2 * sum(full) < sum(lazy) < 0.8 * sum(full)
    for draft in drafts:
        unlearned = [text for text, weight in unforgotten(draft, random.Random(0)) if weight == 0.0]
        assert len(unlearned) == len(draft.goals)


def test_policy_acts_and_its_rewards_differ_inside_groups(model):
    tasks = [task for task in POOL.tasks if "train_0" in task.key][::10]
    rewards = rewards_of(model, TOKENIZER, POOL, tasks, group_size=8)
    assert sum(map(sum, rewards)) / (8 * len(tasks)) > 0.2
    assert any(max(group) > min(group) for group in rewards)
    assert rewards == rewards_of(model, TOKENIZER, POOL, tasks, group_size=8)


def test_warm_up_resumed_equals_unbroken():
    rows = Demonstrations((skilled, habitual, unforgotten), growing=True, num_rows=6)
    stage = Stage("skill", 6, 1e-3, rows)

    def begin():
        return WarmUp(build_model(TOKENIZER, 0), TOKENIZER, stage, seed=0)

    unbroken = begin()
    losses = [unbroken.run_step() for _ in range(6)]
    first, second = begin(), begin()
    assert [first.run_step() for _ in range(3)] == losses[:3]
    second.load_state(first.state())
    assert [second.run_step() for _ in range(3)] == losses[3:]
    assert all(torch.equal(a, b) for a, b in zip(second.model.parameters(), unbroken.model.parameters(), strict=True))
    assert second.step == stage.num_steps
