"""The calibrated worlds and learners: read from the file that ``scripts/calibrate_simulator.py`` wrote.

The file holds targets, fitted numbers, residuals, and SHA-256 of the modules it was fitted with: a test refuses a learner
that was changed without a new calibration.
"""

import json
from dataclasses import dataclass
from pathlib import Path

from envsched.errors import ConfigError
from envsched.files import digest
from envsched.simulate.learner import Tempo
from envsched.simulate.world import Traits

FILE = Path(__file__).with_name("calibration.json")
FROZEN_MODULES = ("world.py", "learner.py")


@dataclass(frozen=True)
class Kind:
    """A calibrated kind of learner: the traits of its worlds and its tempo."""

    name: str
    traits: Traits
    tempo: Tempo


def load_kind(name: str, path: Path = FILE) -> Kind:
    """The calibrated learner ``name`` (slow or fast).

    Raises:
        ConfigError: no learner of that name; lists those there are.
    """
    kinds = json.loads(path.read_text(encoding="utf-8"))["learners"]
    if name not in kinds:
        raise ConfigError(f"unknown learner {name!r}; known: {', '.join(kinds)}")
    return Kind(name, Traits(**kinds[name]["traits"]), Tempo(**kinds[name]["tempo"]))


def module_digests() -> dict[str, str]:
    """SHA-256 of the frozen modules, line ends normalised."""
    folder = Path(__file__).parent
    return {name: digest((folder / name).read_text(encoding="utf-8")) for name in FROZEN_MODULES}
