"""TRL's tool loop on several ranks with one vLLM server.

Every turn of the server mode is a collective (rank 0 sends all prompts), but ranks leave TRL's loop when their own rollouts have no
more tool call: the others would then wait for ever. Here a rank that is done goes on taking part with no prompts until all are done.
"""

from typing import Any

from accelerate.utils import gather_object

from envsched.train.collectives import from_rank_0


class LockstepToolLoop:
    """Mix in before ``trl.GRPOTrainer``; does nothing outside server mode or on one rank."""

    _in_tool_loop = False

    def _tool_call_loop(self, *args: Any, **kwargs: Any) -> tuple:
        self._in_tool_loop = True
        try:
            made = super()._tool_call_loop(*args, **kwargs)
        finally:
            self._in_tool_loop = False
        if self._is_shared_server():
            while any(gather_object([False])):
                self._generate_ragged([])
        return made

    def _generate_single_turn(self, prompt_ids: list[list[int]], *args: Any, **kwargs: Any) -> tuple:
        if not (self._in_tool_loop and self._is_shared_server()):
            return super()._generate_single_turn(prompt_ids, *args, **kwargs)
        gather_object([True])
        return self._generate_ragged(prompt_ids)

    def _is_shared_server(self) -> bool:
        return self.use_vllm and self.vllm_mode == "server" and self.accelerator.num_processes > 1

    def _generate_ragged(self, prompt_ids: list[list[int]]) -> tuple[list[list[int]], list[list[float]]]:
        """One turn for ranks with any number of prompts: rank 0 asks the server, each rank takes its own part."""
        counts = gather_object([len(prompt_ids)])
        prompts = gather_object(list(prompt_ids))
        completions, logprobs = from_rank_0(lambda: self._ask_server(prompts))
        first = sum(counts[: self.accelerator.process_index])
        mine = slice(first, first + len(prompt_ids))
        return completions[mine], logprobs[mine]

    def _ask_server(self, prompts: list[list[int]]) -> tuple[list[list[int]], list[list[float]]]:
        if not prompts:
            return [], []
        engine = self.vllm_generation
        made = engine.vllm_client.generate(
            prompts=prompts,
            n=1,
            repetition_penalty=engine.repetition_penalty,
            temperature=engine.temperature,
            top_p=engine.top_p,
            top_k=engine.top_k,
            min_p=0.0 if engine.min_p is None else engine.min_p,
            max_tokens=engine.max_completion_length,
            logprobs=engine.logprobs,
            structured_outputs_regex=engine.structured_outputs_regex,
            generation_kwargs=engine.generation_kwargs,
        )
        return made["completion_ids"], [[token[0] for token in tokens] for tokens in made["logprobs"]]
