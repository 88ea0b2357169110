"""The error tree. Each error is also a standard type, so a caller needs no envsched import to catch it.

A message names the thing, what was allowed, what came, and the remedy.
"""


class EnvschedError(Exception):
    """Root of every error that envsched raises on purpose."""


class ConfigError(EnvschedError, ValueError):
    """A setting is unknown, has the wrong type, or contradicts another."""


class PoolError(EnvschedError, ValueError):
    """A pool file or its content is unusable; names file and key."""


class RecordError(EnvschedError, ValueError):
    """A rollout record is unusable; names task, step and value."""


class UnknownTaskError(EnvschedError, KeyError):
    """A task key is not in the pool."""

    def __str__(self) -> str:  # KeyError would print the repr of the message
        return str(self.args[0]) if self.args else ""


class StateError(EnvschedError, ValueError):
    """A saved state or artefact does not belong to this pool, graph or config."""


class SelectionError(EnvschedError, ValueError):
    """No batch can be chosen, whatever is relaxed."""


class AuditError(EnvschedError, ValueError):
    """A manifest can't be re-derived from its inputs."""


class MissingExtraError(EnvschedError, ImportError):
    """An optional dependency is absent; names the extra that brings it."""


class WorkerError(EnvschedError, RuntimeError):
    """An environment worker died, hung or broke its protocol."""


class RankError(EnvschedError, RuntimeError):
    """The ranks that share a pool are not there, died, hung or contradict each other."""


class ServerError(EnvschedError, ConnectionError):
    """A model server can't be reached, went away, or refuses what it is asked."""
