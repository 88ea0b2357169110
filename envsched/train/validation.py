"""Scores of the policy in training on tasks that it is not trained on; what the tasks are is the validation's own affair."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

Generate = Callable[[list[list[int]]], Sequence[Sequence[int]]]


class Validation(Protocol):
    """Made by the caller of ``train``; each rank has one.

    ``every``: optimizer steps between scores.
    """

    every: int

    def verdicts(self, generate: Generate, tokenizer: Any, max_prompt_tokens: int, rank: int, world_size: int) -> list[Mapping[str, Any]]:
        """Verdicts on this rank's share of the tasks: each has ``task``, ``subset``, ``score`` (1, 0; none where none could be given).

        Args:
            generate: greedy completions of a batch of prompts, in token ids.
            max_prompt_tokens: longer prompts can't be generated for.
        """
        ...

    def metrics(self, verdicts: Sequence[Mapping[str, Any]]) -> dict[str, float]:
        """Figures over the verdicts of all ranks, under namespaced keys."""
        ...
