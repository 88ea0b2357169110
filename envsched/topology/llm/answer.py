"""A model's answer: its schema, and the way from text to a record."""

import json
import re
from itertools import groupby
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from envsched.topology.schema import CheckKind, Execution, Phase, Reward, Topology
from envsched.topology.store import problems

_NUMBER = {"type": "integer", "minimum": 0}
_COUNTS = [*(kind.value for kind in CheckKind), "negative", "initial"]


def _closed(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


# Written out rather than derived: endpoints differ in the parts of JSON Schema they know, and these are known to all.
ANSWER_SCHEMA: dict[str, Any] = _closed(
    {
        "execution": _closed(
            {
                "phases": {"type": "array", "items": {"type": "string", "enum": [phase.value for phase in Phase]}},
                **dict.fromkeys(("reads", "writes", "depth", "entities"), _NUMBER),
                "discovery": {"type": "string", "enum": ["none", "some", "all"]},
            }
        ),
        "reward": _closed(
            {**dict.fromkeys(_COUNTS, _NUMBER), "grading": {"type": "string", "enum": ["all_or_nothing", "partial"]}},
        ),
    }
)


class AnswerError(ValueError):
    """An answer that is no record; the message goes back to the model."""


class _Rewarded(BaseModel):
    """The reward part as asked for: what only running the checks can tell is not asked."""

    model_config = ConfigDict(extra="forbid", strict=True)
    presence: int
    absence: int
    equality: int
    count: int
    relation: int
    other: int
    negative: int
    initial: int
    grading: Literal["all_or_nothing", "partial"]


class _Answer(BaseModel):
    model_config = ConfigDict(extra="forbid")
    execution: Execution
    reward: _Rewarded


def read_answer(text: str, num_checks: int, true_at_start: float | None) -> Topology:
    """The record in a model's text.

    Raises:
        AnswerError: no JSON object, a field that does not fit, or counts that do not add up to ``num_checks``.
    """
    content = _object(text)
    execution = content.get("execution")
    if isinstance(execution, dict) and isinstance(execution.get("phases"), list):
        execution["phases"] = [phase for phase, _ in groupby(execution["phases"])]
    try:
        answer = _Answer.model_validate_json(json.dumps(content))
        reward = Reward(**answer.reward.model_dump(), true_at_start=true_at_start)
        topology = Topology(execution=answer.execution, reward=reward, source="llm")
    except ValidationError as error:
        raise AnswerError(problems(error)) from None
    if topology.reward.checks != num_checks:
        raise AnswerError(f"the counts of check kinds add up to {topology.reward.checks}, but there are {num_checks} checks")
    return topology


def _object(text: str) -> dict[str, Any]:
    """The outermost JSON object in a text, with fences and words around it dropped and trailing commas mended."""
    start, end = text.find("{"), text.rfind("}")
    if start < 0 or end < start:
        raise AnswerError("it holds no complete JSON object")
    body, problem = text[start : end + 1], "it is a JSON value of another kind"
    for candidate in (body, re.sub(r",\s*([}\]])", r"\1", body)):
        try:
            content = json.loads(candidate)
        except json.JSONDecodeError as error:
            problem = f"it is not valid JSON ({error.msg} at character {error.pos})"
            continue
        if isinstance(content, dict):
            return content
    raise AnswerError(problem)
