"""The rules for using a run's directory twice, and its files beside those that ``audit.layout`` lists:

```
checkpoint/checkpoint-K/                  after K steps: policy, optimizer, trainer, scheduler
logs/metrics.jsonl                        one line per step
logs/environments.csv                     one line per environment, over all steps
validation/after_K.json                   scores and verdicts on BFCL's dialogues after K steps
superseded/R/...                          what resume R set aside
```
"""

import json
import os
import re
from pathlib import Path
from typing import Any

import yaml

from envsched.audit import RunLayout, read_epochs, write_epochs
from envsched.config import Config, load_config
from envsched.errors import ConfigError, StateError
from envsched.files import digest, read_lines, write_atomically
from envsched.pool.opening import pool_seen_from
from envsched.pool.outline import Outline
from envsched.train.checkpoints import sealed_checkpoints, unsealed_checkpoints

STEP_FILES = {  # by the first number that a checkpoint after K steps does not know, less K: it vouches for its own inputs
    "selector/task_manifest.step_{}.json": 0,
    "selector/input_audit.step_{}.json": 1,
    "rollouts/step_{}.jsonl": 0,
    "selector/features.step_{}.npz": 0,
    "selector/findings.step_{}.json": 0,
    "validation/after_{}.json": 1,
}
MAY_CHANGE = frozenset(  # what a resumed run may set otherwise: how long, how often, where; never what is learned from
    (
        *("max_steps", "max_device_batch", "gradient_checkpointing", "device", "checkpoint_every", "keep_checkpoints", "trackers"),
        *("graph_device", "shared_graph", "overlap", "eval_every", "eval_data", "eval_tasks", "eval_tokens"),
    )
)
OF_THE_POOL = frozenset(("pool", "findings"))  # these too, where a changed pool is accepted
WHERE_THE_SERVER_IS = frozenset(("host", "port", "server_seconds", "silent_seconds"))  # of section vllm


class RunDirectory:
    """Paths of one run."""

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)
        self.layout = RunLayout(self.folder)

    @property
    def checkpoints(self) -> Path:
        return self.folder / "checkpoint"

    @property
    def metrics_file(self) -> Path:
        return self.folder / "logs" / "metrics.jsonl"

    @property
    def environments_file(self) -> Path:
        return self.folder / "logs" / "environments.csv"

    def validation_file(self, num_steps: int) -> Path:
        """Of the policy after ``num_steps`` optimizer steps."""
        return self.folder / "validation" / f"after_{num_steps}.json"

    def begin(self, config: Config, resume: bool, accept_pool_change: bool = False) -> None:
        """Write the resolved config into a fresh directory, or check it against the one of the run to resume.

        Raises:
            ConfigError: the directory holds a run and ``resume`` is not set, or settings differ that decide the run.
        """
        config = self._seen_from_here(config)
        if self.layout.config.exists():
            if not resume:
                raise ConfigError(f"run directory {self.folder} holds a run; give another --run-dir, or --resume to go on with it")
            self._refuse_other_config(config, MAY_CHANGE | OF_THE_POOL if accept_pool_change else MAY_CHANGE)
        write_atomically(self.layout.config, yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False))

    def _seen_from_here(self, config: Config) -> Config:
        """The config with relative paths of pool and findings seen from the run directory, so that an audit finds them from anywhere."""
        seen = {name: pool_seen_from(self.folder, getattr(config.train, name)) for name in OF_THE_POOL if getattr(config.train, name)}
        return config.model_copy(update={"train": config.train.model_copy(update=seen)})

    def rewind(self) -> tuple[int, Path | None]:
        """Go back to the newest whole checkpoint: (its step, its folder), or (0, none).

        Files of later steps and checkpoints cut short move to ``superseded/R``, R counting up from 1.

        Raises:
            StateError: rollouts of a step before the checkpoint are missing.
        """
        sealed = sealed_checkpoints(self.checkpoints)
        step, checkpoint = max(sealed.items(), default=(0, None))
        for earlier in range(step):
            if not self.layout.rollouts(earlier).is_file():
                raise StateError(
                    f"{self.folder}: the checkpoint is after {step} steps, but {self.layout.rollouts(earlier).name} is missing; "
                    "restore it: the scheduler's history is made of the rollouts"
                )
        self._sweep()
        self._set_aside([*self._files_from(step), *unsealed_checkpoints(self.checkpoints)])
        write_epochs(self.layout, [(until, outline) for until, outline in read_epochs(self.layout) if until < step])
        self._cut_metrics(step)
        return step, checkpoint

    @property
    def pool_since(self) -> int:
        """The step at which the present pool came, 0 for the first."""
        return max((until for until, _ in read_epochs(self.layout)), default=0)

    def change_pool(self, step: int, gone: Outline | None) -> None:
        """Another pool takes the place of ``gone`` at ``step``; none: of one that no batch was kept of."""
        if gone is None:
            self._set_aside([path for path in (self.layout.features_since(0), self.layout.findings_since(0)) if path.exists()])
        else:
            write_epochs(self.layout, [*read_epochs(self.layout), (step, gone)])

    def rollouts_digest(self, before: int) -> str:
        """SHA-256 of the rollouts of steps 0 .. before - 1."""
        return digest(*(self.layout.rollouts(step).read_bytes() for step in range(before)))

    def _refuse_other_config(self, config: Config, may_change: frozenset[str]) -> None:
        old = load_config(self.layout.config).model_dump(mode="json")
        new = config.model_dump(mode="json")
        free = {"train": may_change, "vllm": WHERE_THE_SERVER_IS}
        changed = [
            f"{section}.{name} was {old[section][name]!r}, now {value!r}"
            for section, values in new.items()
            for name, value in values.items()
            if value != old[section][name] and name not in free.get(section, ()) and section != "runtime"
        ]
        if changed:
            raise ConfigError(f"--resume {self.folder}: {'; '.join(changed)}. Set them back, or start another run directory")

    def _files_from(self, step: int) -> list[Path]:
        found = []
        for pattern, offset in STEP_FILES.items():
            head, tail = pattern.split("{}")
            for path in self.folder.glob(pattern.format("*")):
                number = path.relative_to(self.folder).as_posix().removeprefix(head).removesuffix(tail)
                if number.isdigit() and int(number) >= step + (offset if step else 0):
                    found.append(path)
        return sorted(found)

    def _set_aside(self, paths: list[Path]) -> None:
        if not paths:
            return
        shelf = self.folder / "superseded"
        taken = [int(path.name) for path in shelf.glob("*") if path.name.isdigit()]
        for path in paths:
            target = shelf / str(max(taken, default=0) + 1) / path.relative_to(self.folder)
            target.parent.mkdir(parents=True, exist_ok=True)
            os.replace(path, target)

    def _sweep(self) -> None:
        """Remove what a killed ``write_atomically`` left beside its target: never whole, and known by its name."""
        for folder in (self.folder, self.folder / "selector", self.folder / "rollouts", self.folder / "logs"):
            for path in folder.glob(".*.*"):
                if path.is_file() and re.fullmatch(r"\..+\.\w{8}", path.name):
                    path.unlink()

    def _cut_metrics(self, step: int) -> None:
        if self.metrics_file.exists():
            kept = [line for line in read_metrics(self.metrics_file) if line["step"] < step]
            write_atomically(self.metrics_file, "".join(json.dumps(line) + "\n" for line in kept))


def read_metrics(metrics_file: Path) -> list[dict[str, Any]]:
    """Lines of a metrics file; the last one may be cut short (the run was killed) and is left out then."""
    lines = []
    for _, text in read_lines(metrics_file) if metrics_file.exists() else ():
        try:
            lines.append(json.loads(text))
        except ValueError:
            break
    return lines
