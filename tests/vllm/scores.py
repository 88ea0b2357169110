"""The validation of a run with vLLM against transformers on the run's own checkpoints."""

import json
from dataclasses import asdict

from envsched.evaluate.bfcl import BfclSuite
from envsched.evaluate.local import local_policy
from envsched.train.run_directory import RunDirectory, read_metrics

EVAL_TOKENS = 16


def check_scores(folder, dialogues, after):
    """Files and figures after these numbers of steps, and nowhere else; each verdict is what transformers comes to."""
    run = RunDirectory(folder)
    assert {path.name for path in (folder / "validation").iterdir()} == {f"after_{num_steps}.json" for num_steps in after}
    lines = {line["step"] + 1: line for line in read_metrics(run.metrics_file)}
    for num_steps, line in lines.items():
        assert ("bfcl/mean" in line) == (num_steps in after)
    for num_steps in after:
        kept = json.loads(run.validation_file(num_steps).read_text())
        assert kept["scores"]["bfcl/mean"] == lines[num_steps]["bfcl/mean"]
        assert kept["verdicts"] == verdicts_by_transformers(run.checkpoints / f"checkpoint-{num_steps}", dialogues)


def verdicts_by_transformers(checkpoint, dialogues):
    policy = local_policy(checkpoint, EVAL_TOKENS, thinking=False)
    with BfclSuite(dialogues, num_tasks=1) as suite:
        return sorted((asdict(verdict) for verdict in suite.run(policy, suite.tasks, 16)), key=lambda verdict: verdict["task"])
