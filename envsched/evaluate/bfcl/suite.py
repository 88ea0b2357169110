"""Many dialogues with one policy: some at a time, each answer asked for in one batch with the others'."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from envsched.config import RuntimeConfig
from envsched.evaluate.bfcl.dialogue import Dialogue, Verdict
from envsched.evaluate.bfcl.files import SUBSETS, DialogueTask, read_dialogues, read_modules, read_protocol, read_tools
from envsched.evaluate.bfcl.source import pool_of
from envsched.evaluate.policy import Policy
from envsched.files import digest
from envsched.runtime import EnvironmentRuntime

LONGEST_RESPONSE = 4 << 20  # characters; what the long-context subset answers with is the point of it
SEED = 0


class BfclSuite:
    """The tasks of some subsets and the workers that run their classes; a context manager.

    Args:
        folder: see ``files``.
        subsets: of ``SUBSETS``.
        num_tasks: evenly spread tasks of each subset; none: all.
        num_workers: environment worker processes.

    Raises:
        PoolError: the folder was not prepared, or does not fit.
    """

    def __init__(self, folder: Path | str, subsets: Sequence[str] = SUBSETS, num_tasks: int | None = None, num_workers: int = 1) -> None:
        folder = Path(folder)
        chosen = [_spread(read_dialogues(folder, subset), num_tasks) for subset in subsets]
        self.tasks: list[DialogueTask] = [task for subset in chosen for task in subset]
        modules = read_modules(folder)
        self._tools, self._protocol = read_tools(folder), read_protocol(folder)
        pool = pool_of(self.tasks, modules)
        self.fingerprint = digest(pool.fingerprint, repr(self._tools), repr(self._protocol), *(repr(task.turns) for task in self.tasks))
        self._runtime = EnvironmentRuntime(pool, RuntimeConfig(num_workers=num_workers, result_chars=LONGEST_RESPONSE))

    def run(self, policy: Policy, tasks: Iterable[DialogueTask] | None = None, at_once: int = 16) -> Iterator[Verdict]:
        """Verdicts as dialogues end.

        Args:
            tasks: some of ``tasks``; none: all.
            at_once: dialogues under way together.
        """
        waiting = iter(self.tasks if tasks is None else tasks)
        live: list[Dialogue] = []
        while True:
            while len(live) < at_once and (task := next(waiting, None)) is not None:
                live.append(self.begin(task))
            if not live:
                return
            asked = [dialogue for dialogue in live if dialogue.verdict is None]
            for dialogue, message in zip(asked, policy.reply([dialogue.request for dialogue in asked]), strict=True):
                dialogue.take(message)
            yield from (dialogue.verdict for dialogue in live if dialogue.verdict is not None)
            live = [dialogue for dialogue in live if dialogue.verdict is None]

    def begin(self, task: DialogueTask) -> Dialogue:
        """A dialogue of one of ``tasks``, at the user's first message."""
        return Dialogue(task, self._tools, self._protocol, self._runtime.start(task.key, SEED))

    def close(self) -> None:
        """End the workers."""
        self._runtime.close()

    def __enter__(self) -> "BfclSuite":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _spread(tasks: list[DialogueTask], number: int | None) -> list[DialogueTask]:
    """Every k-th: neighbours in the files share their classes."""
    if number is None or number >= len(tasks):
        return tasks
    return [tasks[i * len(tasks) // number] for i in range(number)]
