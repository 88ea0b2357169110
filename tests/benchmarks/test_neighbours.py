"""benchmarks/neighbours.py on worlds whose answer is known."""

import json
import runpy
from pathlib import Path

import numpy as np

SCRIPT = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "neighbours.py"), run_name="neighbours")


def world(path: Path, has_structure: bool) -> Path:
    """Three environments of 40 tasks on four topics; a task's spread of rewards is its topic's, or is drawn for itself."""
    rng = np.random.default_rng(5)
    topics = ["boil the pasta water", "paint a wooden fence", "tune an old piano", "repair the bicycle chain"]
    lines = []
    for e in range(3):
        for i in range(40):
            topic = i % 4
            level = topic if has_structure else rng.integers(4)
            for policy in ("weak", "strong"):
                rewards = np.clip(0.5 + (0.02 + 0.1 * level) * rng.standard_normal(8), 0, 1)
                line = {"environment": f"e{e}", "task_id": f"e{e}-{i}", "policy": policy, "prompt": f"{topics[topic]} {i}"}
                lines.append(json.dumps({**line, "rewards": rewards.tolist()}))
    path.write_text("\n".join(lines))
    return path


def measured(path: Path) -> dict[str, dict]:
    cells = SCRIPT["read_cells"](path, None, None)
    assert len(cells.policies) == 2
    rows = SCRIPT["measure"](cells, "tfidf", has_topologies=False)
    assert len(SCRIPT["table"](rows)) == 2 + len(rows)
    return {row["relation"]: row for row in rows}


def test_planted_structure_is_found(tmp_path):
    for row in measured(world(tmp_path / "rollouts.jsonl", has_structure=True)).values():
        assert row["neighbours"]["mean"] > 0.7
        assert row["difference"]["low"] > 0.4
        assert row["absolute_error_ratio"] < 0.6


def test_no_structure_is_not_found(tmp_path):
    for row in measured(world(tmp_path / "rollouts.jsonl", has_structure=False)).values():
        assert row["difference"]["low"] < 0 < row["difference"]["high"]
        assert abs(row["neighbours"]["mean"]) < 0.25


def test_rollouts_of_a_run_bring_their_topologies(tmp_path):
    rng = np.random.default_rng(1)
    pool = SCRIPT["open_pool"]("bundled")
    path = tmp_path / "step_0.jsonl"
    path.write_text("".join(json.dumps({"task": t.key, "step": 0, "rewards": rng.random(4).tolist()}) + "\n" for t in pool.tasks))
    rows = SCRIPT["measure"](SCRIPT["read_cells"](path, None, "bundled"), "tfidf", has_topologies=True)
    assert [row["relation"] for row in rows][2:] == ["topology, across environments", "text, tools, state and checks, within"]
    assert all(row["cells"] > 250 for row in rows)


def test_the_simulators_learner_is_asked_over_worlds(monkeypatch):
    for name, value in (("WORLDS", 3), ("WORLD_ENVIRONMENTS", 3)):
        monkeypatch.setitem(SCRIPT["measure_simulated"].__globals__, name, value)
    within, cross = SCRIPT["measure_simulated"]("slow")
    assert (within["policies"], within["cells"], cross["cells"]) == (3, 450, 450)
    assert within["neighbours"]["low"] <= within["neighbours"]["mean"] <= within["neighbours"]["high"]
    assert len(SCRIPT["table"]([within, cross])) == 4
