"""BFCL's multi-turn subsets: dialogues whose calls are executed and compared with reference calls, turn by turn."""

from envsched.evaluate.bfcl.dialogue import Dialogue, Verdict
from envsched.evaluate.bfcl.files import SUBSETS, DialogueTask, Protocol, has_bfcl, read_dialogues
from envsched.evaluate.bfcl.suite import BfclSuite

__all__ = ["SUBSETS", "BfclSuite", "Dialogue", "DialogueTask", "Protocol", "Verdict", "has_bfcl", "read_dialogues"]
