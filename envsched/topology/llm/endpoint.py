"""One OpenAI-compatible endpoint: its dialect, retries with back-off, and no key in any message.

Endpoints differ in what they take (a JSON schema, a JSON mode, neither; ``max_tokens`` or ``max_completion_tokens``; a temperature
or none). The dialect is found by the first request and kept with the cache, so that a resumed run does not probe again.
"""

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from envsched.errors import EnvschedError, MissingExtraError
from envsched.topology.llm.budget import Budget, tokens_of
from envsched.topology.llm.cache import AnswerCache
from envsched.topology.llm.prompt import Messages

try:
    import openai
except ImportError as error:
    remedy = "install the extra: pip install 'envsched[topology]'"
    raise MissingExtraError(f"the language-model extractor needs the package openai; {remedy}") from error


FORMATS = ("json_schema", "json_object", "none")
MAX_WAIT_SECONDS = 60.0


class EndpointError(EnvschedError, RuntimeError):
    """The endpoint can't be used at all: wrong key, unknown model, unreachable."""


class RequestError(EnvschedError, RuntimeError):
    """One request failed for good; the others go on."""


@dataclass(frozen=True)
class Dialect:
    """What the endpoint takes."""

    response_format: str = FORMATS[0]
    limit_name: str = "max_tokens"
    has_temperature: bool = True

    def after(self, complaint: str) -> "Dialect | None":
        """The next dialect to try after a 400 with this text; none where nothing is left to change."""
        if self.limit_name in complaint and self.limit_name == "max_tokens":
            return replace(self, limit_name="max_completion_tokens")
        if "temperature" in complaint and self.has_temperature:
            return replace(self, has_temperature=False)
        position = FORMATS.index(self.response_format) + 1
        return replace(self, response_format=FORMATS[position]) if position < len(FORMATS) else None


@dataclass(frozen=True)
class Reply:
    """What came back: text (empty where refused), and why it ended."""

    text: str
    finish: str
    refusal: str = ""


class Endpoint:
    """Sends conversations to one model.

    Args:
        key: sent to the endpoint and nowhere else; it is cut out of every message that is raised.
        sleep: waits between attempts, in seconds.

    Raises:
        EndpointError: from ``ask``, where no request can succeed.
        RequestError: from ``ask``, where this one did not after ``attempts``.
        BudgetError: from ``ask``, where the cap would be exceeded.
    """

    def __init__(
        self,
        model: str,
        base_url: str | None,
        key: str,
        budget: Budget,
        cache: AnswerCache,
        *,
        timeout: float,
        attempts: int,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.model, self.budget, self.cache, self.attempts, self.sleep = model, budget, cache, attempts, sleep
        self._key = key
        self._client = openai.OpenAI(api_key=key, base_url=base_url, timeout=timeout, max_retries=0)
        self._dialect_key = cache.key("dialect", model, str(self._client.base_url))
        stored = cache.get(self._dialect_key)
        self.dialect = Dialect(**stored) if stored else Dialect()
        self._is_settled = stored is not None  # some request has been answered in this dialect
        self._jitter = random.Random(0)

    def ask(self, messages: Messages, limit: int, schema: Mapping[str, Any]) -> Reply:
        """One reply of at most ``limit`` tokens, held to ``schema`` where the endpoint can do that."""
        attempt = 1
        while True:
            try:
                return self._send(messages, limit, schema)
            except (openai.RateLimitError, openai.InternalServerError, openai.APIConnectionError) as error:
                if attempt >= self.attempts:
                    raise self._given_up(error) from None
                self.sleep(self._wait(attempt, error))
                attempt += 1
            except (openai.AuthenticationError, openai.PermissionDeniedError, openai.NotFoundError) as error:
                remedy = "check OPENAI_API_KEY, OPENAI_BASE_URL and --model"
                raise EndpointError(f"{self._where()} refuses: {self._clean(error)}; {remedy}") from None
            except openai.APIError as error:
                raise RequestError(self._clean(error)) from None

    def _given_up(self, error: openai.APIError) -> EnvschedError:
        """Out of attempts: nobody answers there at all, or this one request was not answered (a timeout is of that kind)."""
        told = f"{self.attempts} attempts failed, the last with: {self._clean(error)}"
        if isinstance(error, openai.APIConnectionError) and not isinstance(error, openai.APITimeoutError):
            return EndpointError(f"{self._where()} can't be reached: {told}; is it up?")
        return RequestError(told)

    def _send(self, messages: Messages, limit: int, schema: Mapping[str, Any]) -> Reply:
        """One request, or several while the dialect is being found."""
        while True:
            asked = sum(tokens_of(message["content"]) for message in messages)
            reserved = self.budget.reserve(asked, limit)
            used = (0, 0)
            dialect = self.dialect
            try:
                options = self._options(dialect, limit, schema)
                answer = self._client.chat.completions.create(model=self.model, messages=messages, **options)
                used = (answer.usage.prompt_tokens, answer.usage.completion_tokens) if answer.usage else (asked, limit)
                break
            except openai.BadRequestError as error:
                following = None if self._is_settled else dialect.after(str(error))
                self.dialect = following or (dialect if self._is_settled else Dialect())
                if following is None:
                    raise
            finally:
                self.budget.settle(reserved, *used)
        if not self._is_settled:
            self.cache.put(self._dialect_key, asdict(dialect))
            self._is_settled = True
        if not answer.choices:
            return Reply("", "empty")
        choice = answer.choices[0]
        return Reply(choice.message.content or "", choice.finish_reason or "", getattr(choice.message, "refusal", None) or "")

    def _options(self, dialect: Dialect, limit: int, schema: Mapping[str, Any]) -> dict[str, Any]:
        options: dict[str, Any] = {dialect.limit_name: limit}
        if dialect.has_temperature:
            options["temperature"] = 0
        if dialect.response_format == "json_schema":
            options["response_format"] = {"type": "json_schema", "json_schema": {"name": "topology", "strict": True, "schema": schema}}
        elif dialect.response_format == "json_object":
            options["response_format"] = {"type": "json_object"}
        return options

    def _wait(self, attempt: int, error: openai.APIError) -> float:
        """Seconds before the next attempt: what the endpoint asks for, else doubling with jitter."""
        headers = error.response.headers if isinstance(error, openai.APIStatusError) else {}
        try:
            asked = float(headers.get("retry-after", ""))
        except ValueError:
            asked = 0.0
        return min(max(asked, 2.0 ** (attempt - 1) * self._jitter.uniform(0.5, 1.0)), MAX_WAIT_SECONDS)

    def _where(self) -> str:
        return f"the endpoint {self._client.base_url} with model {self.model!r}"

    def _clean(self, error: Exception) -> str:
        return (str(error).replace(self._key, "***") if self._key else str(error))[:500]
