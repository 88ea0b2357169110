"""``envsched topology``: an abstract topology for every task, from code alone or by a language model."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from envsched.cli.cache import DEFAULT_CACHE, cache_folder
from envsched.cli.outputs import new_folder_said
from envsched.errors import ConfigError
from envsched.wording import counted

CHECKS_FOR_PROCESSES = 10_000  # about two seconds of one core

PoolName = Annotated[str, typer.Option("--pool", help="A folder in EnvScaler's format, a JSONL file, bundled, or synthetic:MxT.")]
OutFile = Annotated[Path, typer.Option("--out", help="JSON lines, one a task, in the order of the pool.", callback=new_folder_said)]
RunChecks = Annotated[
    bool,
    typer.Option("--run-checks", help="Run every task's checks on its start state, in worker processes, and note the share that pass."),
]


def register(app: typer.Typer) -> None:
    group = typer.Typer(help=_HELP, no_args_is_help=True, rich_markup_mode=None)
    group.command("static", help=_STATIC_HELP, short_help="Topologies from code, schemas and checks alone.")(static)
    group.command("llm", help=_LLM_HELP, short_help="Topologies by a model behind an endpoint.")(llm)
    group.command("show", help=_SHOW_HELP)(show)
    group.command("tools", help=_TOOLS_HELP, short_help="What is read of an environment's tools.")(tools)
    app.add_typer(group, name="topology", short_help="Write how every task is worked and rewarded.")


_HELP = """Write how every task is worked and rewarded, without a word of its domain: what neighbours in other environments are found by.

Examples:

  envsched topology static --pool data/envscaler --out topologies.jsonl

  envsched topology llm --pool data/envscaler --model MODEL --out topologies.jsonl --max-requests 5200

  envsched topology show topologies.jsonl --task TASK
"""

_STATIC_HELP = """Topologies without a language model: environment code, tool schemas and checks are read, never run.

Examples:

  envsched topology static --pool bundled --out topologies.jsonl

  envsched topology static --pool data/envscaler --out topologies.jsonl --run-checks
"""

_LLM_HELP = """Topologies by a model behind any OpenAI-compatible endpoint (OPENAI_BASE_URL, OPENAI_API_KEY).

Answers are cached by content: a run that was interrupted goes on where it stopped and asks nothing twice. A task that the model
fails at gets the record of `topology static`, marked as a fallback, and is listed at the end. The caps count this run alone.

Examples:

  envsched topology llm --pool bundled --model MODEL --out topologies.jsonl --estimate

  OPENAI_BASE_URL=http://localhost:8000/v1 envsched topology llm --pool data/envscaler --model MODEL --out topologies.jsonl

  envsched topology llm --pool data/envscaler --model MODEL --out topologies.jsonl --max-tokens 20000000 --price 0.1 0.4
"""

_SHOW_HELP = """Print topologies, one line a task.

Examples:

  envsched topology show topologies.jsonl

  envsched topology show topologies.jsonl --task TASK
"""


_TOOLS_HELP = """Print what the static extractor reads of an environment's tools: kinds, collections read and written, and whose
output feeds their arguments.

Examples:

  envsched topology tools --pool bundled --environment bank
"""


def static(pool: PoolName, out: OutFile, run_checks: RunChecks = False) -> None:
    from envsched.pool.opening import open_pool
    from envsched.topology import extract_static, write_topologies

    opened = open_pool(pool)
    topologies = extract_static(opened, _shares(opened) if run_checks else None, _processes(opened))
    write_topologies(out, topologies)
    _summarise(topologies, out)


def _processes(pool) -> int:
    """As many as there are cores, where there is more to read than starting them takes."""
    return (os.cpu_count() or 1) if sum(len(task.checks) for task in pool.tasks) > CHECKS_FOR_PROCESSES else 1


def llm(
    pool: PoolName,
    out: OutFile,
    model: Annotated[str, typer.Option("--model", help="The model's name at the endpoint.")],
    cache: Annotated[
        Path, typer.Option("--cache", envvar="ENVSCHED_CACHE", help="Folder that keeps answers by content of the question.")
    ] = DEFAULT_CACHE,
    concurrency: Annotated[int, typer.Option("--concurrency", min=1, help="Requests under way at once.")] = 8,
    max_requests: Annotated[int | None, typer.Option("--max-requests", min=0, help="Hard cap of this run, retries included.")] = None,
    max_tokens: Annotated[int | None, typer.Option("--max-tokens", min=0, help="Hard cap of this run, in and out.")] = None,
    answer_tokens: Annotated[int, typer.Option("--answer-tokens", min=64, help="Room for one answer.")] = 1024,
    timeout: Annotated[float, typer.Option("--timeout", min=1, help="Seconds for one request.")] = 120.0,
    price: Annotated[
        tuple[float, float] | None, typer.Option("--price", metavar="IN OUT", help="Of a million tokens, for the estimate of cost.")
    ] = None,
    estimate: Annotated[bool, typer.Option("--estimate", help="Print what a run would ask, and ask nothing.")] = False,
    run_checks: RunChecks = False,
) -> None:
    from envsched.pool.opening import open_pool
    from envsched.topology import write_topologies
    from envsched.topology.llm import LLMConfig, estimate_llm, extract_llm

    opened = open_pool(pool)
    base_url = os.environ.get("OPENAI_BASE_URL") or None
    config = LLMConfig(
        model=model,
        cache=cache_folder(cache) / "topology",
        base_url=base_url,
        concurrency=concurrency,
        max_requests=max_requests,
        max_tokens=max_tokens,
        answer_tokens=answer_tokens,
        timeout=timeout,
    )
    _say_estimate(estimate_llm(opened, config), price, max_requests, max_tokens)
    if estimate:
        return
    topologies, report = extract_llm(opened, config, _key(base_url), _shares(opened) if run_checks else None)
    write_topologies(out, topologies)
    _say_report(report)
    _summarise(topologies, out)


def show(
    file: Annotated[Path, typer.Argument(help="What `topology static` or `topology llm` wrote.")],
    task: Annotated[str | None, typer.Option("--task", help="Only this task.", metavar="KEY")] = None,
) -> None:
    from envsched.topology import read_topologies

    topologies = read_topologies(file)
    if task is not None and task not in topologies:
        raise ConfigError(f"--task {task!r}: {file} has no such task; its first is {next(iter(topologies), None)!r}")
    for key, topology in topologies.items():
        if task in (None, key):
            print(f"{key}: {topology.line()}")


def tools(pool: PoolName, environment: Annotated[str, typer.Option("--environment", help="Whose tools.", metavar="KEY")]) -> None:
    from envsched.pool.opening import open_pool
    from envsched.topology import read_tools, tool_flows

    opened = open_pool(pool)
    known = [one.key for one in opened.environments]
    if environment not in known:
        raise ConfigError(f"--environment {environment!r}: pool {pool} has no such environment; its first is {known[0]!r}")
    found = opened.environment(environment)
    feeds: dict[str, dict[str, list[str]]] = {}
    for taker, argument, giver in tool_flows(found):
        feeds.setdefault(taker, {}).setdefault(argument, []).append(giver)
    for tool in read_tools(found):
        writes = ", ".join(f"{kind} {key}" for key, kind in sorted(tool.effects)) or "nothing"
        kinds, reads = " + ".join(sorted(tool.kinds)) or "unread", ", ".join(sorted(tool.reads)) or "nothing"
        print(f"{tool.name}: {kinds}; reads {reads}; writes {writes}{'; loops' if tool.loops else ''}")
        for argument, givers in feeds.get(tool.name, {}).items():
            print(f"  {argument} from {', '.join(givers)}")


def _key(base_url: str | None) -> str:
    key = os.environ.get("OPENAI_API_KEY", "")
    if not key and base_url is None:
        raise ConfigError("OPENAI_API_KEY is not set; set it, or set OPENAI_BASE_URL to an endpoint that needs none")
    return key or "none"


def _shares(pool) -> dict[str, float]:
    """Share of each task's checks that pass on its start state; a task whose environment can't start is left out and said."""
    from envsched.errors import WorkerError
    from envsched.progress import track
    from envsched.runtime import EnvironmentRuntime, replay_actions

    shares: dict[str, float] = {}
    with EnvironmentRuntime(pool) as runtime:
        for task in track(pool.tasks, "checks at the start"):
            try:
                share = replay_actions(runtime, task.key, [])[0]
            except WorkerError as error:
                _say(f"warning: {task.key}: checks could not be run at the start: {error}")
                continue
            if share is not None:
                shares[task.key] = share
    return shares


def _say_estimate(estimate, price: tuple[float, float] | None, max_requests: int | None, max_tokens: int | None) -> None:
    total = 0.0 if price is None else (estimate.input_tokens * price[0] + estimate.output_tokens * price[1]) / 1e6
    cost = "" if price is None else f", about {total:.2f} at the prices given"
    _say(
        f"estimate: {counted(estimate.tasks, 'task')} to ask ({estimate.cached} answered before), about {estimate.input_tokens:,} tokens "
        f"in and {estimate.output_tokens:,} out{cost}; cap: {max_requests or 'no'} requests, {max_tokens or 'no'} tokens"
    )


def _say_report(report) -> None:
    usage = report.usage
    _say(
        f"{counted(report.asked, 'task')} answered now, {report.cached} before; {counted(usage.requests, 'request')}, "
        f"{usage.input_tokens:,} tokens in, {usage.output_tokens:,} out"
    )
    for key, reason in report.failures.items():
        _say(f"fallback {key}: {reason}")


def _summarise(topologies, out: Path) -> None:
    sources = [topology.source for topology in topologies.values()]
    counts = ", ".join(f"{sources.count(source)} {source}" for source in ("static", "llm", "fallback") if source in sources)
    unread = sum(bool(topology.unread) for topology in topologies.values())
    _say(f"{out}: {counted(len(topologies), 'topology')} ({counts}), {unread} with a part that could not be read")


def _say(text: str) -> None:
    print(text, file=sys.stderr)
