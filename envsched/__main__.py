"""``python -m envsched`` is the ``envsched`` command."""

from envsched.cli import main

main()
