"""A policy that reads and writes tokens: a tokenizer's chat template on one side, its response template on the other."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from envsched.evaluate.policy import Request

Generate = Callable[[list[list[int]]], Sequence[Sequence[int]]]


class TokenPolicy:
    """``policy.Policy`` over a function from prompts to completions.

    Args:
        tokenizer: a transformers tokenizer whose chat template takes tools.
        generate: completions of a batch of prompts, in token ids, ends of turn included.
        max_prompt_tokens: a longer prompt is not generated for: its dialogue gets an empty message, which ends the turn.
        template: further arguments of the chat template (``enable_thinking``).

    ``num_too_long`` counts prompts that were not generated for.
    """

    def __init__(self, tokenizer: Any, generate: Generate, max_prompt_tokens: int, template: Mapping[str, Any] | None = None) -> None:
        self._tokenizer, self._generate = tokenizer, generate
        self._max_prompt_tokens, self._template = max_prompt_tokens, dict(template or {})
        self.num_too_long = 0

    def reply(self, requests: Sequence[Request]) -> list[Mapping[str, Any]]:
        """See ``policy.Policy``."""
        prompts = [self._encode(request) for request in requests]
        fitting = [i for i, prompt in enumerate(prompts) if len(prompt) <= self._max_prompt_tokens]
        self.num_too_long += len(prompts) - len(fitting)
        messages: list[Mapping[str, Any]] = [{"content": ""}] * len(prompts)
        completions = self._generate([prompts[i] for i in fitting]) if fitting else []
        for i, completion in zip(fitting, completions, strict=True):
            messages[i] = self._decode(list(completion), prompts[i], requests[i])
        return messages

    def _encode(self, request: Request) -> list[int]:
        return list(
            self._tokenizer.apply_chat_template(
                [dict(message) for message in request.messages],
                tools=[dict(tool) for tool in request.tools],
                add_generation_prompt=True,
                tokenize=True,
                return_dict=False,
                **self._template,
            )
        )

    def _decode(self, completion: list[int], prompt: list[int], request: Request) -> Mapping[str, Any]:
        if getattr(self._tokenizer, "response_template", None) is not None:
            try:
                return self._tokenizer.parse_response(completion, prefix=prompt, tools=[dict(tool) for tool in request.tools]) or {}
            except (ValueError, TypeError):  # a call that is not well formed: the text stands for itself
                pass
        return {"content": self._tokenizer.decode(completion, skip_special_tokens=True)}
