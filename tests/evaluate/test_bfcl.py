"""The protocol and the checker on small files of BFCL's form."""

import json
import random

import mpmath
import pytest
from typer.testing import CliRunner

from envsched.cli import build_app
from envsched.errors import PoolError, StateError
from envsched.evaluate.bfcl import BfclSuite, has_bfcl, logarithm
from envsched.evaluate.scores import Journal, mean_accuracy, scores_of
from tests.cli.commands import run_command
from tests.evaluate.playing import message, play, without_last
from tests.evaluate.small import SUBSETS, write_small


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_small(tmp_path_factory.mktemp("bfcl"))


@pytest.fixture(scope="module")
def suite(folder):
    with BfclSuite(folder) as made:
        yield made


def begun(suite, key):
    return suite.begin(next(task for task in suite.tasks if task.key == key))


def test_reference_calls_score_one_and_without_the_last_nothing(suite):
    assert [play(suite, task).score for task in suite.tasks] == [1.0] * 8
    for task in suite.tasks:
        verdict = play(suite, task, without_last)
        assert (verdict.score, verdict.reason, verdict.turn) == (0.0, "no call", len(task.turns) - 1)


def test_a_wrong_value_shows_in_the_state_and_a_call_left_out_in_the_responses(suite):
    dialogue = begun(suite, "multi_turn_base_1")
    dialogue.take(message([("post", {"text": "y"})]))
    dialogue.take({"content": "done"})
    assert dialogue.verdict.reason == "state differs: MessageAPI.letters"
    dialogue = begun(suite, "multi_turn_base_0")
    dialogue.take(message([("add", {"a": 1, "b": 2})]))
    dialogue.take({"content": "done"})
    assert dialogue.verdict.reason == "response missing: hello"


def test_further_reads_and_any_order_do_no_harm(suite):
    dialogue = begun(suite, "multi_turn_base_0")
    dialogue.take(message([("read", {"number": 0})]))
    dialogue.take(message([("add", {"a": 9, "b": 9}), ("add", {"a": 1, "b": 2}), ("nothing", {}), ("_load_scenario", {"scenario": {}})]))
    told = [m["content"] for m in dialogue.request.messages if m["role"] == "tool"]
    assert told[1:] == [
        '{"result": 18}',
        '{"result": 3}',
        *(f"Error during execution: name {name!r} is not defined" for name in ("nothing", "_load_scenario")),
    ]
    dialogue.take({"content": "done"})
    assert dialogue.verdict is None
    assert dialogue.request.messages[-1] == {"role": "user", "content": "Post it."}


def test_withheld_functions_come_with_their_announcement(suite):
    dialogue = begun(suite, "multi_turn_miss_func_0")
    names = [tool["function"]["name"] for tool in dialogue.request.tools]
    assert names == ["read", "sleep", "add", "logarithm"]
    dialogue.take({"content": "I can't post."})
    assert dialogue.request.messages[-1]["content"] == "There is more now."
    assert [tool["function"]["name"] for tool in dialogue.request.tools] == [*names, "post"]


def test_too_many_messages_with_calls_and_a_call_without_end_fail_the_dialogue(suite):
    dialogue = begun(suite, "multi_turn_base_0")
    for _ in range(4):
        assert dialogue.verdict is None
        dialogue.take(message([("add", {"a": 1, "b": 2})]))
    assert (dialogue.verdict.score, dialogue.verdict.reason) == (0.0, "more than 3 messages with calls")
    dialogue = begun(suite, "multi_turn_base_0")
    dialogue.take(message([("sleep", {})]))
    assert (dialogue.verdict.score, dialogue.verdict.reason) == (0.0, "a call took longer than its time limit")


def test_long_responses_reach_the_policy_whole(suite):
    dialogue = begun(suite, "multi_turn_long_context_1")
    dialogue.take(message([("post", {"text": "x"}), ("read", {"number": 1})]))
    assert dialogue.request.messages[-1]["content"] == "x" + "." * 20000


def test_a_malformed_call_ends_the_turn(suite):
    dialogue = begun(suite, "multi_turn_base_0")
    dialogue.take({"content": "<tool_call>{broken</tool_call>"})
    assert dialogue.verdict.reason == "no call"


def test_types_are_those_of_json_schema(suite):
    (add,) = [tool for tool in begun(suite, "multi_turn_base_0").request.tools if tool["function"]["name"] == "add"]
    assert add["function"]["parameters"] == {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}}


def test_a_subset_is_scored_by_the_share_of_its_dialogues(suite):
    verdicts = [play(suite, task, without_last if task.key.endswith("1") else list) for task in suite.tasks]
    scores = scores_of(verdicts, SUBSETS)
    assert {name: score.accuracy for name, score in scores.items()} == dict.fromkeys(SUBSETS, 0.5)
    assert mean_accuracy(scores) == 0.5


def test_logarithms_are_written_as_mpmath_writes_them():
    generator = random.Random(0)
    for _ in range(500):
        places = generator.choice([1, 2, 3, 5, 10, 15, 20, 50])
        value = generator.choice([generator.uniform(1e-9, 1e9), generator.randint(1, 10**6), 10.0 ** generator.randint(-6, 12), 1])
        base = generator.choice([2, 10, 2.718281828, generator.uniform(1.01, 50)])
        mpmath.mp.dps = logarithm.mp.dps = places
        ours, theirs = (one.log(value) / one.log(base) for one in (logarithm, mpmath))
        assert (str(ours), repr(ours)) == (str(theirs), repr(theirs))


def test_an_unprepared_folder_names_the_command(tmp_path, folder):
    assert has_bfcl(folder)
    assert not has_bfcl(tmp_path)
    with pytest.raises(PoolError, match=r"prepare_data.py --from-package bfcl-eval"):
        BfclSuite(tmp_path)


def test_a_journal_goes_on_and_refuses_another_subject(tmp_path, suite):
    file = tmp_path / "report.json.part"
    first = Journal(file, {"policy": "a"})
    first.add(play(suite, suite.tasks[0]))
    with open(file, "a") as stream:
        stream.write('{"task": "cut sho')
    second = Journal(file, {"policy": "a"})
    assert second.verdicts == first.verdicts
    second.add(play(suite, suite.tasks[1]))
    assert len(Journal(file, {"policy": "a"}).verdicts) == 2
    with pytest.raises(StateError, match="policy was 'a', now 'b'"):
        Journal(file, {"policy": "b"})


def test_a_folder_that_is_not_there_is_named_without_asking_a_hub(capsys, tmp_path, folder):
    words = ["evaluate", "--data", folder, "--model-path", tmp_path / "nofolder", "--out", tmp_path / "r.json"]
    status, _, err = run_command(capsys, *words)
    assert status == 2
    assert err == f"error: --model-path {tmp_path}/nofolder: no such folder; give one that save_pretrained wrote\n"


def test_the_command_scores_a_local_policy(tmp_path, folder, random_policy):
    words = ["evaluate", "--data", str(folder), "--model-path", str(random_policy), "--max-tokens", "8", "--out", str(tmp_path / "r.json")]
    done = CliRunner().invoke(build_app(), words, catch_exceptions=False)
    assert done.exit_code == 0
    assert "mean of subsets" in done.output
    report = json.loads((tmp_path / "r.json").read_text())
    assert {name: score["num_scored"] for name, score in report["scores"].items()} == dict.fromkeys(SUBSETS, 2)
    assert len(report["dialogues"]) == 8
    assert not (tmp_path / "r.json.part").exists()
