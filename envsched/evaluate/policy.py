"""Who answers: anything that turns chat messages and tools into assistant messages."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Request:
    """A conversation that waits for an assistant message: chat ``messages`` (arguments of calls are objects) and OpenAI ``tools``."""

    messages: tuple[Mapping[str, Any], ...]
    tools: tuple[Mapping[str, Any], ...]


class Policy(Protocol):
    """``reply`` answers requests of different conversations at once."""

    def reply(self, requests: Sequence[Request]) -> Sequence[Mapping[str, Any]]:
        """One assistant message per request, in their order: ``content`` and, where it calls, ``tool_calls`` in OpenAI's form."""
        ...
