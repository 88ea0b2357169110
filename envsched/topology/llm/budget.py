"""A hard cap on requests and tokens: what a request may cost is set aside before it is sent."""

import threading
from dataclasses import dataclass

CHARACTERS_PER_TOKEN = 3.5  # on the safe side for English and code


class BudgetError(Exception):
    """The next request could exceed the cap; it was not sent."""


def tokens_of(text: str) -> int:
    """An upper guess of the tokens of a text."""
    return int(len(text) / CHARACTERS_PER_TOKEN) + 1


@dataclass
class Usage:
    """What has been spent: requests sent (retries too), tokens in and out as the endpoint counted them, else as guessed."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens


class Budget:
    """Spending of one run, safe to share among threads."""

    def __init__(self, max_requests: int | None, max_tokens: int | None) -> None:
        self.max_requests, self.max_tokens = max_requests, max_tokens
        self.usage = Usage()
        self._reserved = 0
        self._changed = threading.Condition()

    def reserve(self, input_tokens: int, output_tokens: int) -> int:
        """Set aside one request; the reservation goes back to ``settle``. Waits where requests under way may leave room.

        Raises:
            BudgetError: with this request the cap could be exceeded.
        """
        amount = input_tokens + output_tokens
        with self._changed:
            while self._is_full(amount) and self._reserved:
                self._changed.wait()
            if self.max_requests is not None and self.usage.requests >= self.max_requests:
                raise BudgetError(f"the cap of {self.max_requests} requests is reached")
            if self._is_full(amount):
                raise BudgetError(f"the cap of {self.max_tokens} tokens is reached ({self.usage.tokens} spent)")
            self.usage.requests += 1
            self._reserved += amount
        return amount

    def settle(self, reserved: int, input_tokens: int, output_tokens: int) -> None:
        """Replace a reservation by what the request took."""
        with self._changed:
            self._reserved -= reserved
            self.usage.input_tokens += input_tokens
            self.usage.output_tokens += output_tokens
            self._changed.notify_all()

    def _is_full(self, amount: int) -> bool:
        return self.max_tokens is not None and self.usage.tokens + self._reserved + amount > self.max_tokens
