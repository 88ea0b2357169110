"""A policy behind an OpenAI-compatible endpoint."""

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from envsched.errors import EnvschedError, MissingExtraError
from envsched.evaluate.policy import Request

try:
    import openai
except ImportError as error:
    raise MissingExtraError("an endpoint needs the package openai; install the extra: pip install 'envsched[topology]'") from error


class EndpointError(EnvschedError, RuntimeError):
    """The endpoint can't be used; what was scored before stays."""


class EndpointPolicy:
    """Sends each request as a chat completion, all of a batch side by side.

    Args:
        model: name at the endpoint.
        base_url: of the endpoint; none: OPENAI_BASE_URL or OpenAI's own.
        key: sent there and nowhere else, and cut out of every message.
        max_tokens: of one message.
        attempts: the client's, with its own back-off.

    Raises:
        EndpointError: from ``reply``, where an answer can't be had; a prompt that is too long gets an empty message instead.
    """

    def __init__(self, model: str, base_url: str | None, key: str, max_tokens: int, timeout: float = 600.0, attempts: int = 5) -> None:
        self._model, self._key, self._max_tokens = model, key, max_tokens
        self._client = openai.OpenAI(api_key=key, base_url=base_url, timeout=timeout, max_retries=attempts - 1)
        self.num_too_long = 0

    def reply(self, requests: Sequence[Request]) -> list[Mapping[str, Any]]:
        """See ``policy.Policy``."""
        with ThreadPoolExecutor(max_workers=max(1, len(requests))) as threads:
            return list(threads.map(self._ask, requests))

    def _ask(self, request: Request) -> Mapping[str, Any]:
        try:
            answer = self._client.chat.completions.create(
                model=self._model,
                messages=[_as_sent(message) for message in request.messages],  # type: ignore[arg-type]
                tools=[dict(tool) for tool in request.tools],  # type: ignore[arg-type]
                temperature=0,
                max_tokens=self._max_tokens,
            )
        except openai.BadRequestError as error:
            if "context" not in str(error).lower():
                raise EndpointError(self._clean(error)) from None
            self.num_too_long += 1
            return {"content": ""}
        except openai.OpenAIError as error:
            raise EndpointError(f"{self._clean(error)}; check --base-url, --model and OPENAI_API_KEY, then run again to go on") from None
        return answer.choices[0].message.model_dump(exclude_none=True) if answer.choices else {"content": ""}

    def _clean(self, error: Exception) -> str:
        text = str(error).replace(self._key, "***") if self._key else str(error)
        return f"the endpoint {self._client.base_url} with model {self._model!r}: {text[:500]}"


def _as_sent(message: Mapping[str, Any]) -> dict[str, Any]:
    """Over the wire the arguments of a call are JSON text."""
    if "tool_calls" not in message:
        return dict(message)
    calls = [
        {**call, "function": {**call["function"], "arguments": json.dumps(call["function"]["arguments"])}} for call in message["tool_calls"]
    ]
    return {**message, "tool_calls": calls}
