"""All tasks of a pool through a model: cached, concurrent, capped, and never a task without a record."""

from collections.abc import Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from envsched.pool import Pool
from envsched.progress import track
from envsched.topology.llm.answer import AnswerError, answer_schema, read_answer
from envsched.topology.llm.budget import Budget, BudgetError, Usage, tokens_of
from envsched.topology.llm.cache import AnswerCache
from envsched.topology.llm.endpoint import Endpoint, EndpointError, Reply, RequestError
from envsched.topology.llm.prompt import PROMPT_DIGEST, Messages, first_messages, messages_again
from envsched.topology.schema import Part, Topology
from envsched.topology.static import extract_static
from envsched.types import Task

MEAN_ANSWER_TOKENS, TOKENS_PER_CHECK = 120, 6  # for the estimate before the start


@dataclass(frozen=True)
class LLMConfig:
    """How a model is asked.

    ``max_requests`` and ``max_tokens`` cap this run (cached answers cost nothing); ``answer_tokens`` bounds one answer, and the
    second try after one that was cut off gets twice as many. ``timeout`` is in seconds and for one request.
    """

    model: str
    cache: Path
    base_url: str | None = None
    concurrency: int = 8
    max_requests: int | None = None
    max_tokens: int | None = None
    answer_tokens: int = 1024
    timeout: float = 120.0
    attempts: int = 6


@dataclass(frozen=True)
class Estimate:
    """Of a run before it starts: tasks whose first question is not cached, and the tokens that asking each once takes."""

    tasks: int
    cached: int
    input_tokens: int
    output_tokens: int


@dataclass
class Report:
    """Of a run: what was spent, tasks answered (``asked`` now, ``cached`` before), and why a task fell back, by task key."""

    usage: Usage = field(default_factory=Usage)
    asked: int = 0
    cached: int = 0
    failures: dict[str, str] = field(default_factory=dict)


def estimate_llm(pool: Pool, config: LLMConfig) -> Estimate:
    """What a run would ask; sends nothing."""
    cache = AnswerCache(config.cache)
    sizes, answers = [], 0
    for task in pool.tasks:
        messages = first_messages(task, pool.environment(task.environment))
        if cache.get(_key(cache, config, messages, config.answer_tokens)) is None:
            sizes.append(sum(tokens_of(message["content"]) for message in messages))
            answers += MEAN_ANSWER_TOKENS + TOKENS_PER_CHECK * len(task.checks)
    return Estimate(len(sizes), len(pool) - len(sizes), sum(sizes), answers)


def extract_llm(
    pool: Pool, config: LLMConfig, key: str, true_at_start: dict[str, float] | None = None
) -> tuple[dict[str, Topology], Report]:
    """A record for every task in the order of the pool; a task the model fails at has its static record, marked ``fallback``.

    Args:
        key: the endpoint's key; it is sent to the endpoint and neither stored nor shown.

    Raises:
        EndpointError: the endpoint can't be used at all. What was answered before is cached.
    """
    fallback = extract_static(pool, true_at_start)
    cache = AnswerCache(config.cache)
    budget = Budget(config.max_requests, config.max_tokens)
    endpoint = Endpoint(config.model, config.base_url, key, budget, cache, timeout=config.timeout, attempts=config.attempts)
    report = Report(usage=budget.usage)
    asker = _Asker(pool, config, cache, endpoint, true_at_start or {})
    found: dict[str, Topology] = {}
    try:
        for task, outcome in track(_outcomes(asker, pool.tasks, config.concurrency), "topologies", total=len(pool)):
            if isinstance(outcome, str):
                report.failures[task.key] = outcome
            else:
                found[task.key], was_cached = outcome
                report.cached += was_cached
                report.asked += not was_cached
    except EndpointError as error:
        rest = f"{len(found)} of {len(pool)} tasks are answered and kept; the same command asks only the rest"
        raise EndpointError(f"{error} ({rest})") from None
    report.failures = {task.key: report.failures[task.key] for task in pool.tasks if task.key in report.failures}
    return {task.key: found.get(task.key) or _marked(fallback[task.key]) for task in pool.tasks}, report


def _marked(topology: Topology) -> Topology:
    return topology.model_copy(update={"source": "fallback", "unread": tuple(sorted({*topology.unread, Part.ANSWER}))})


Outcome = tuple[Topology, bool] | str  # a record and whether it came from the cache, or why there is none


def _outcomes(asker: "_Asker", tasks: tuple[Task, ...], concurrency: int) -> Iterator[tuple[Task, Outcome]]:
    """Outcomes as they come. The first question goes alone: it finds the dialect, or that nothing works."""
    yield tasks[0], asker.outcome(tasks[0])
    rest = iter(tasks[1:])
    with ThreadPoolExecutor(concurrency) as threads:
        running: dict[Future[Outcome], Task] = {}
        try:
            while True:
                while len(running) < concurrency and (task := next(rest, None)) is not None:
                    running[threads.submit(asker.outcome, task)] = task
                if not running:
                    return
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    yield running.pop(future), future.result()
        except BaseException:
            threads.shutdown(wait=False, cancel_futures=True)
            raise


@dataclass(frozen=True)
class _Asker:
    pool: Pool
    config: LLMConfig
    cache: AnswerCache
    endpoint: Endpoint
    true_at_start: Mapping[str, float]

    def outcome(self, task: Task) -> Outcome:
        """Ask, and once more after an unusable answer."""
        messages = first_messages(task, self.pool.environment(task.environment))
        schema = answer_schema(len(task.checks))
        limit, problem, all_cached = self.config.answer_tokens, "", True
        try:
            for _ in range(2):
                reply, was_cached = self.reply(messages, limit, schema)
                all_cached &= was_cached
                try:
                    return self.record(task, reply), all_cached
                except AnswerError as error:
                    problem = str(error)
                limit *= 2 if reply.finish == "length" else 1
                messages = messages_again(messages, reply.text or reply.refusal or "(nothing)", problem)
        except (BudgetError, RequestError) as error:
            return str(error)
        return f"two answers could not be used, the last because {problem}"

    def record(self, task: Task, reply: Reply) -> Topology:
        if reply.refusal:
            raise AnswerError(f"the model refused: {reply.refusal[:200]}")
        if reply.finish == "length":
            raise AnswerError("it was cut off; be shorter")
        return read_answer(reply.text, len(task.checks), self.true_at_start.get(task.key))

    def reply(self, messages: Messages, limit: int, schema: Mapping[str, Any]) -> tuple[Reply, bool]:
        key = _key(self.cache, self.config, messages, limit)
        stored = self.cache.get(key)
        if stored is not None:
            return Reply(**stored), True
        reply = self.endpoint.ask(messages, limit, schema)
        self.cache.put(key, {"text": reply.text, "finish": reply.finish, "refusal": reply.refusal})
        return reply, False


def _key(cache: AnswerCache, config: LLMConfig, messages: Messages, limit: int) -> str:
    return cache.key("answer", PROMPT_DIGEST, config.model, config.base_url or "", limit, messages)
