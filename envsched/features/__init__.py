"""Tasks as vectors whose inner products are the documented similarities."""

from envsched.features.build import build_features
from envsched.features.features import Features

__all__ = ["Features", "build_features"]
