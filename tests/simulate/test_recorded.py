import gzip
import json

import numpy as np
import pytest

from envsched.errors import RecordError
from envsched.pool import Pool
from envsched.simulate.recorded import SplitPolicy, read_recordings


def write(path, rows):
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "wt") as stream:
        stream.writelines(json.dumps(row) + "\n" for row in rows)
    return path


def row(task, policy, rewards, step=None):
    return {"environment": task[0], "task_id": task, "policy": policy, "step": step, "rewards": rewards, "prompt": f"do {task}"}


def test_policies_from_weak_to_strong_over_the_tasks_that_all_have(tmp_path):
    rows = [row(t, p, [base, base + 0.2]) for t in ("a1", "a2", "b1", "b2", "b3") for p, base in (("strong", 0.7), ("weak", 0.1))]
    rows += [row("a1", "narrow", [0.0, 0.0])]  # tried on too few tasks
    rows = [r for r in rows if (r["task_id"], r["policy"]) != ("b3", "strong")] + [row("b3", "strong", [0.5])]  # one reward is no cell
    (recording,) = read_recordings(write(tmp_path / "rollouts.jsonl.gz", rows))
    assert recording.policies == ("weak", "strong")
    assert [task.key for task in recording.pool.tasks] == ["a1", "a2", "b1", "b2"]
    assert recording.cells[1][0] == pytest.approx([0.7, 0.9])
    assert recording.pool.tasks[0].prompt == "do a1"


def test_checkpoints_make_one_recording_each_and_cells_are_joined(tmp_path):
    rows = [row(t, p, [0, 1, 0], s) for t in ("a1", "a2") for p, s in (("base", 0), ("x", 500), ("y", 400), ("other", None))]
    rows.append(row("a1", "base", [1, 1], 0))
    prompts = write(tmp_path / "prompts.jsonl", [{"task_id": "a1", "prompt": "from elsewhere"}])
    recordings = read_recordings(write(tmp_path / "check.jsonl", rows), prompts)
    assert [recording.policies for recording in recordings] == [("base", "x"), ("base", "y")]
    assert recordings[0].cells[0][0].tolist() == [0, 1, 0, 1, 1]
    assert recordings[0].pool.task("a1").prompt == "from elsewhere"


def test_checkpoints_of_one_run_make_a_chain_in_order_of_steps(tmp_path):
    rows = [row(t, "tiny", [0, 1], s) for t in ("a1", "a2") for s in (20, 0, 10)]
    (recording,) = read_recordings(write(tmp_path / "run.jsonl", rows))
    assert recording.policies == ("tiny at step 0", "tiny at step 10", "tiny at step 20")


def test_tasks_come_from_the_pool_where_one_is_given(tmp_path):
    pool = Pool.synthetic(2, 3)
    rows = [row(task.key, p, [0, 1]) for task in pool.tasks[:4] for p in ("weak", "strong")]
    (recording,) = read_recordings(write(tmp_path / "rollouts.jsonl", rows), pool=pool)
    assert recording.pool.tasks == pool.tasks[:4]
    stranger = write(tmp_path / "other.jsonl", [*rows, row("b9", "weak", [0, 1]), row("b9", "strong", [0, 1])])
    with pytest.raises(RecordError, match="not in the pool: 1 task, the first is 'b9'"):
        read_recordings(stranger, pool=pool)


def test_groups_take_each_rollout_of_the_half_once_before_any_twice(tmp_path):
    """Drawn so, a group as large as the half has the half's own variance, not a smaller one."""
    rows = [row("a1", "p", [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]), row("a2", "p", [0.7, 0.8])]
    (recording,) = read_recordings(write(tmp_path / "rollouts.jsonl", rows))
    policy = SplitPolicy(recording, 0, whole=True)
    assert policy.group_size == 4
    large, small = policy.roll_out(0, np.array([0, 1]), 3)
    assert len(set(large)) == 4
    assert sorted(small) == [0.7, 0.7, 0.8, 0.8]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "not JSON lines"),
        ('{"a": 1}\n', "line 1: expected an object with task_id"),
        ("", "0 tasks with two or more rewards under each of 0 policies, at least 2 needed"),
    ],
)
def test_unusable_files_are_refused(tmp_path, content, message):
    path = tmp_path / "rollouts.jsonl"
    path.write_text(content)
    with pytest.raises(RecordError, match=message):
        read_recordings(path)
    with pytest.raises(RecordError, match=r"nothing\.jsonl"):
        read_recordings(tmp_path / "nothing.jsonl")


def test_halves_are_disjoint_and_make_the_cell(tmp_path):
    rows = [row(t, "p", [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]) for t in ("a1", "a2")]
    (recording,) = read_recordings(write(tmp_path / "rollouts.jsonl", rows))
    for seed in range(5):
        policy = SplitPolicy(recording, seed)
        shown = policy._shown[0][0]
        kept = np.setdiff1d(recording.cells[0][0], shown)
        assert len(shown) == len(kept) == 3
        assert policy.judged[0, 0] == pytest.approx(kept.var(ddof=1))
        assert policy.shown_variance[0, 0] == pytest.approx(shown.var(ddof=1))
        assert set(policy.roll_out(0, np.array([0]), 0)[0]) <= set(shown)
    assert policy.group_size == 3


def test_a_scheduler_gains_nothing_from_the_noise_of_a_cell(tmp_path):
    """All tasks alike: choosing by the shown half's variance finds no more variance in the other half than chance."""
    rng = np.random.default_rng(0)
    rows = [row(f"a{i}", "p", rng.integers(0, 2, 8).tolist()) for i in range(400)]
    (recording,) = read_recordings(write(tmp_path / "rollouts.jsonl", rows))
    split, whole = SplitPolicy(recording, 1), SplitPolicy(recording, 1, whole=True)
    best = np.argsort(-split.shown_variance[0])[:100]
    assert split.judged[0][best].mean() == pytest.approx(split.judged[0].mean(), abs=0.02)
    best = np.argsort(-whole.shown_variance[0])[:100]
    assert whole.judged[0][best].mean() > whole.judged[0].mean() + 0.015
