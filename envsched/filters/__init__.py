"""Filters: which tasks rest, and why. A filter masks and gives a reason; it never scores (METHOD 10)."""

from envsched.filters.evidence import GuessCase, cases_before, mask_guessed
from envsched.filters.findings import Findings
from envsched.filters.identifiers import IdentifierGuard, Suspicion
from envsched.filters.mask import Mask
from envsched.filters.progress import mask_resting

__all__ = [
    "Findings",
    "GuessCase",
    "IdentifierGuard",
    "Mask",
    "Suspicion",
    "cases_before",
    "mask_guessed",
    "mask_resting",
]
