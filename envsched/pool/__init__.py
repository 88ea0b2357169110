"""What can be trained on: environments and tasks, read from files or made here."""

from envsched.pool.pool import Pool

__all__ = ["Pool"]
