"""Where the files of a run lie that an audit reads.

```
resolved_config.yaml                      every setting; section ``train`` names pool (a relative path: seen from here), seed and scheduler
selector/features.npz                     what the graph is made from, with its digest
selector/task_manifest.step_N.json        the batch of step N with its provenance
selector/input_audit.step_N.json          what the batch of step N follows from
rollouts/step_N.jsonl                     records that came in at step N
selector/findings.json                    what ``pool check`` found, where the run was given it
selector/pools.json                       outlines of pools that the run had before, and until when
selector/features.step_N.npz, findings.step_N.json   of the pool that came at step N
```
"""

import re
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class RunLayout:
    """Paths of one run, and the steps for which a kind of file exists."""

    folder: Path

    @property
    def config(self) -> Path:
        return self.folder / "resolved_config.yaml"

    @property
    def features(self) -> Path:
        return self.features_since(0)

    def features_since(self, since: int) -> Path:
        """Of the pool that is in force from step ``since`` on."""
        return self.folder / "selector" / (f"features.step_{since}.npz" if since else "features.npz")

    def findings_since(self, since: int) -> Path:
        return self.folder / "selector" / (f"findings.step_{since}.json" if since else "findings.json")

    @property
    def pools(self) -> Path:
        return self.folder / "selector" / "pools.json"

    def manifest(self, step: int) -> Path:
        return self.folder / "selector" / f"task_manifest.step_{step}.json"

    def input_audit(self, step: int) -> Path:
        return self.folder / "selector" / f"input_audit.step_{step}.json"

    def rollouts(self, step: int) -> Path:
        return self.folder / "rollouts" / f"step_{step}.jsonl"

    def manifest_steps(self) -> list[int]:
        return self._steps("selector", r"task_manifest\.step_(0|[1-9][0-9]*)\.json")

    def input_audit_steps(self) -> list[int]:
        return self._steps("selector", r"input_audit\.step_(0|[1-9][0-9]*)\.json")

    def rollout_steps(self) -> list[int]:
        return self._steps("rollouts", r"step_(0|[1-9][0-9]*)\.jsonl")

    def _steps(self, part: str, pattern: str) -> list[int]:
        found = (re.fullmatch(pattern, path.name) for path in (self.folder / part).glob("*"))
        return sorted(int(match[1]) for match in found if match)
