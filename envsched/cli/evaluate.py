"""``envsched evaluate``: a policy's score on BFCL's multi-turn dialogues."""

from pathlib import Path
from typing import Annotated

import typer

from envsched.cli.outputs import new_folder_said

_HELP = """Score a policy on BFCL's multi-turn dialogues: calls are executed in sandboxed workers and compared with the reference calls.

The policy is a model behind an OpenAI-compatible endpoint (--model, with OPENAI_API_KEY and --base-url or OPENAI_BASE_URL), or a
folder that transformers reads (--model-path). An interrupted command goes on where it stood when it is given again.

Examples:

  python scripts/prepare_data.py --from-package bfcl-eval

  envsched evaluate --model-path models/tiny-policy --tasks 5 --out tiny.json

  envsched evaluate --model Qwen/Qwen3-4B --base-url http://127.0.0.1:8000/v1 --out qwen.json
"""


def register(app: typer.Typer) -> None:
    app.command("evaluate", help=_HELP, short_help="Score a policy on BFCL's multi-turn dialogues.")(evaluate)


def evaluate(
    out: Annotated[
        Path, typer.Option("--out", help="The report, JSON; verdicts so far lie in OUT.part meanwhile.", callback=new_folder_said)
    ],
    data: Annotated[Path, typer.Option("--data", help="BFCL's files, as prepare_data.py lays them out.")] = Path("data/bfcl"),
    model: Annotated[str | None, typer.Option("--model", help="A model's name at the endpoint.")] = None,
    base_url: Annotated[str | None, typer.Option("--base-url", help="The endpoint; default OPENAI_BASE_URL.")] = None,
    model_path: Annotated[Path | None, typer.Option("--model-path", help="A folder with a policy.")] = None,
    subsets: Annotated[str, typer.Option("--subsets", help="Comma-separated.")] = "base,miss_func,miss_param,long_context",
    tasks: Annotated[int | None, typer.Option("--tasks", min=1, help="Dialogues of each subset, evenly spread; all 200 without.")] = None,
    max_tokens: Annotated[int, typer.Option("--max-tokens", min=1, help="Of one message.")] = 1024,
    thinking: Annotated[bool, typer.Option("--thinking", help="Let a local policy's chat template open a thinking block.")] = False,
    at_once: Annotated[int, typer.Option("--at-once", min=1, help="Dialogues under way together.")] = 16,
    workers: Annotated[int, typer.Option("--workers", min=1, help="Environment worker processes.")] = 1,
) -> None:
    from dataclasses import asdict

    from envsched.evaluate.bfcl import BfclSuite
    from envsched.evaluate.scores import Journal, mean_accuracy, scores_of
    from envsched.files import write_json
    from envsched.progress import track

    chosen = _subsets(subsets)
    policy = _policy(model, base_url, model_path, max_tokens, thinking)
    with BfclSuite(data, chosen, tasks, workers) as suite:
        subject = {"policy": model or str(model_path), "tasks": suite.fingerprint, "max_tokens": max_tokens, "thinking": thinking}
        journal = Journal(out.with_name(f"{out.name}.part"), subject)
        done = {verdict.task for verdict in journal.verdicts}
        left = [task for task in suite.tasks if task.key not in done]
        for verdict in track(suite.run(policy, left, at_once), "dialogues", total=len(left)):
            journal.add(verdict)
    scores = scores_of(journal.verdicts, chosen)
    report = {
        **subject,
        "scores": {subset: asdict(score) for subset, score in scores.items()},
        "mean": mean_accuracy(scores),
        "prompts_too_long": policy.num_too_long,
        "dialogues": [asdict(verdict) for verdict in sorted(journal.verdicts, key=lambda v: v.task)],
    }
    write_json(out, report)
    journal.close()
    _print(report)


def _subsets(words: str) -> list[str]:
    from envsched.errors import ConfigError
    from envsched.evaluate.bfcl import SUBSETS

    chosen = [word.strip() for word in words.split(",")]
    unknown = [word for word in chosen if word not in SUBSETS]
    if unknown:
        raise ConfigError(f"--subsets {unknown[0]!r}: known are {', '.join(SUBSETS)}")
    return chosen


def _policy(model: str | None, base_url: str | None, folder: Path | None, max_tokens: int, thinking: bool):
    import os

    from envsched.errors import ConfigError

    if (model is None) == (folder is None):
        raise ConfigError("give either --model (at an endpoint) or --model-path (a folder)")
    if folder is not None:
        from envsched.evaluate.local import local_policy

        return local_policy(folder, max_tokens, thinking)
    from envsched.evaluate.endpoint import EndpointPolicy

    assert model is not None
    return EndpointPolicy(model, base_url, os.environ.get("OPENAI_API_KEY", "none"), max_tokens)


def _print(report: dict) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"BFCL multi-turn: {report['policy']}")
    for heading in ("subset", "accuracy", "dialogues", "without environment"):
        table.add_column(heading, justify="left" if heading == "subset" else "right")
    for subset, score in report["scores"].items():
        table.add_row(subset, _share(score["accuracy"]), str(score["num_scored"]), str(score["num_failed"]))
    table.add_row("mean of subsets", _share(report["mean"]), "", "")
    Console().print(table)
    if report["prompts_too_long"]:
        print(f"{report['prompts_too_long']} prompts were longer than the policy's context: their turns count as without a call")


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
