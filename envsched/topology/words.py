"""Words that tell a kind of step in any domain; used where there is no code to read, and to settle what code leaves open."""

import re
from collections.abc import Iterable
from functools import lru_cache

from envsched.topology.schema import Phase

_VERBS = {
    Phase.LOOK_UP: "find get look search locate list fetch read retrieve identify view show query browse lookup describe inspect",
    Phase.VALIDATE: "verify validate check ensure confirm authenticate test",
    Phase.CREATE: "create add new register insert upload log record book schedule launch post send place onboard append submit",
    Phase.UPDATE: "update set change edit modify rename move assign reassign mark replace correct restore activate deactivate approve "
    "reject adjust increase decrease transfer convert standardize reschedule complete finalize merge apply enable disable",
    Phase.DELETE: "delete remove cancel clear drop archive discard unassign revoke close",
    Phase.AGGREGATE: "count sum average compute calculate aggregate recompute compare",
    Phase.BRANCH: "if unless otherwise except whether depending else",
    Phase.LOOP: "each every all",
}
PHASE_OF = {word: phase for phase, words in _VERBS.items() for word in words.split()}
_SUFFIXES = ("ing", "ed", "es", "s", "d")


def phases_in(text: str) -> list[Phase]:
    """Kinds of step that the words of a text name, in order, with repeats."""
    return [phase for word in re.findall(r"[a-z]+", text.lower()) if (phase := phase_of(word)) is not None]


@lru_cache(maxsize=65_536)
def phase_of(word: str) -> Phase | None:
    """The kind of step of one word, by itself or without its ending."""
    if word in PHASE_OF:
        return PHASE_OF[word]
    stems = (word[: -len(suffix)] for suffix in _SUFFIXES if word.endswith(suffix))
    return next((PHASE_OF[stem + e] for stem in stems for e in ("", "e") if stem + e in PHASE_OF), None)


def tool_phase(name: str) -> Phase | None:
    """The kind of a tool by the first word of its name that tells one: ``cancel_order`` deletes."""
    words: Iterable[str] = re.findall(r"[a-z]+", re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower())
    return next((phase for word in words if (phase := phase_of(word)) is not None), None)
