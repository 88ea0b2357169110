"""A model's answer: its schema, and the way from text to a record."""

import json
import re
from itertools import groupby
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from envsched.topology.schema import MAX_PHASES, CheckKind, Execution, Phase, Reward, Topology
from envsched.topology.store import problems

MOST = 999  # of reads, writes and the like: bounds end an untrained model's endless digits


def answer_schema(num_checks: int) -> dict[str, Any]:
    """JSON Schema of the answer for a task with ``num_checks`` checks: whatever fits it is a record.

    Written out rather than derived: endpoints differ in the parts of JSON Schema they know, and these are known to all.
    """
    kinds: dict[str, Any] = {"type": "array", "items": _one_of(CheckKind), "minItems": num_checks, "maxItems": num_checks}
    return _closed(
        execution=_closed(
            phases={"type": "array", "items": _one_of(Phase), "maxItems": MAX_PHASES},
            **{name: _number(MOST) for name in ("reads", "writes", "depth", "entities")},
            discovery={"type": "string", "enum": ["none", "some", "all"]},
        ),
        reward=_closed(
            checks=kinds,
            negative=_number(num_checks),
            initial=_number(num_checks),
            grading={"type": "string", "enum": ["all_or_nothing", "partial"]},
        ),
    )


def _closed(**properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _one_of(kinds: type[Phase] | type[CheckKind]) -> dict[str, Any]:
    return {"type": "string", "enum": [kind.value for kind in kinds]}


def _number(most: int) -> dict[str, Any]:
    return {"type": "integer", "minimum": 0, "maximum": most}


class AnswerError(ValueError):
    """An answer that is no record; the message goes back to the model."""


class _Rewarded(BaseModel):
    """The reward part as asked for: kinds check by check, and not what only running the checks can tell."""

    model_config = ConfigDict(extra="forbid", strict=True)
    checks: list[CheckKind]
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
        AnswerError: no JSON object, a field that does not fit, or another number of kinds than ``num_checks``.
    """
    content = _object(text)
    execution = content.get("execution")
    if isinstance(execution, dict) and isinstance(execution.get("phases"), list):
        execution["phases"] = [phase for phase, _ in groupby(execution["phases"])]
    try:
        answer = _Answer.model_validate_json(json.dumps(content))
        named = answer.reward
        if len(named.checks) != num_checks:
            raise AnswerError(f"reward.checks holds {len(named.checks)} kinds, but there are {num_checks} checks")
        counts = {kind.value: named.checks.count(kind) for kind in CheckKind}
        rest = named.model_dump(exclude={"checks"})
        return Topology(execution=answer.execution, reward=Reward(**counts, **rest, true_at_start=true_at_start), source="llm")
    except ValidationError as error:
        raise AnswerError(problems(error)) from None


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
