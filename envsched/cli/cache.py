"""Where commands keep what can be computed again."""

from pathlib import Path

from envsched.errors import ConfigError

DEFAULT_CACHE = Path("~/.cache/envsched")  # looked up when it is needed: a container's user may have no home


def cache_folder(given: Path) -> Path:
    """The folder that ``--cache`` names.

    Raises:
        ConfigError: it is in the home directory, and none is known.
    """
    try:
        return given.expanduser()
    except RuntimeError:
        raise ConfigError(f"--cache {given}: this user has no home directory; give --cache FOLDER, or set ENVSCHED_CACHE") from None
