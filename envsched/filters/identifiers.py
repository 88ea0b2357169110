"""Identifier guard: was a reward earned with an identifier that nobody had shown? (METHOD 10)

A rewarded rollout that used an identifier which neither the prompt nor an earlier observation had shown is *suspect*.
It is *proven* by two replays on a fresh environment in which these identifiers bear other names: the *control*, whose
actions use the new names throughout, must earn what the rollout earned (so that the renaming itself harms nothing); the
*trial* uses a new name only once it has been shown, and else the old one, as the policy would have. Where the trial earns
less than the control, the reward came from a guess.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from envsched.files import canonical_json
from envsched.filters.evidence import GuessCase
from envsched.filters.provenance import identifiers_of, is_shown, uses
from envsched.filters.renaming import new_names, rename, rename_task
from envsched.runtime import EnvironmentRuntime
from envsched.types import RolloutRecord, Task

Action = Mapping[str, Any]  # name, arguments, observation


@dataclass(frozen=True, slots=True)
class Suspicion:
    """Identifiers that a rollout used out of nowhere, each with the position of the action that did so first."""

    identifiers: Mapping[str, int]


class IdentifierGuard:
    """Holds one runtime for the replays.

    Args:
        runtime: of the pool whose rollouts are judged.
        seed: of the episodes and of the new names.
    """

    def __init__(self, runtime: EnvironmentRuntime, seed: int = 0) -> None:
        self._runtime = runtime
        self._seed = seed

    def suspect(self, task: Task, actions: Sequence[Action]) -> Suspicion | None:
        """Identifiers of the initial state that were used before anything showed them; None when there are none.

        Args:
            actions: ``name``, ``arguments`` and the ``observation`` that followed, in their order.
        """
        identifiers = identifiers_of(task.initial_state)
        shown, found = [task.prompt], {}
        for position, action in enumerate(actions):
            for identifier in uses(action.get("arguments") or {}, identifiers):
                if identifier not in found and not is_shown(identifier, shown):
                    found[identifier] = position
            shown.append(str(action.get("observation", "")))
        return Suspicion(found) if found else None

    def prove(self, task: Task, actions: Sequence[Action], suspicion: Suspicion) -> tuple[float, float] | None:
        """Rewards of control and trial where the reward came from the guess; None where it did not, or where that can't be told."""
        everything = canonical_json([task.initial_state, [check.source for check in task.checks], [a.get("arguments") for a in actions]])
        names = new_names(set(suspicion.identifiers), everything, self._seed)
        original = self._replay(task, actions, {}, waits=False)
        renamed = rename_task(task, names, f"{task.key} (identifiers renamed)")
        control = self._replay(renamed, actions, names, waits=False)
        if original is None or control is None or control != original:
            return None
        trial = self._replay(renamed, actions, names, waits=True)
        return (control, trial) if trial is not None and trial < control else None

    def judge(self, record: RolloutRecord, floor: float = 0.0) -> list[GuessCase]:
        """The proven cases of one record, whose ``trace`` holds the actions of each rollout.

        Args:
            floor: reward of doing nothing; a rollout that earned no more got nothing from a guess.
        """
        task, cases = self._runtime.pool.task(record.task), []
        for rollout, (reward, actions) in enumerate(zip(record.rewards, record.trace or (), strict=False)):
            if reward is None or reward <= floor:
                continue
            suspicion = self.suspect(task, actions)
            rewards = self.prove(task, actions, suspicion) if suspicion else None
            if suspicion and rewards:
                cases.append(GuessCase(record.task, record.step, rollout, tuple(sorted(suspicion.identifiers)), *rewards))
        return cases

    def annotate(self, records: Iterable[RolloutRecord], floors: Mapping[str, float] | None = None) -> list[RolloutRecord]:
        """The records with their proven cases under ``extra["guesses"]``, where ``cases_before`` finds them.

        Args:
            floors: reward of doing nothing by task key, 0 where absent.
        """
        annotated = []
        for record in records:
            cases = self.judge(record, (floors or {}).get(record.task, 0.0))
            extra = {**record.extra, "guesses": [case.to_json() for case in cases]} if cases else record.extra
            annotated.append(replace(record, extra=extra))
        return annotated

    def _replay(self, task: Task, actions: Sequence[Action], names: Mapping[str, str], waits: bool) -> float | None:
        """Reward of the actions with ``names`` put in; with ``waits``, each only after a text has shown the new name."""
        shown = [rename(task.prompt, names)]
        with self._runtime.start_variant(task, self._seed) as episode:
            for action in actions:
                usable = {old: new for old, new in names.items() if not waits or is_shown(new, shown)}
                observation = episode.call(action["name"], rename(action.get("arguments") or {}, usable), validate=False)
                shown.append(observation.text)
            return episode.score().reward
