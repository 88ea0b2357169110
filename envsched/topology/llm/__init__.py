"""Topologies by a language model behind any OpenAI-compatible endpoint; nothing here is imported by ``envsched.topology``."""

from envsched.topology.llm.extract import Estimate, LLMConfig, Report, estimate_llm, extract_llm
from envsched.topology.llm.prompt import PROMPT_DIGEST

__all__ = ["Estimate", "LLMConfig", "PROMPT_DIGEST", "Report", "estimate_llm", "extract_llm"]
