"""Run ``envsched`` in this process."""

import pytest

from envsched.cli import main


def run_command(capsys, *arguments):
    """Exit status, standard output, standard error."""
    with pytest.raises(SystemExit) as stop:
        main([str(argument) for argument in arguments])
    written = capsys.readouterr()
    return stop.value.code, written.out, written.err
