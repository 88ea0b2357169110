import subprocess
import sys

import pytest

import envsched
from envsched.cli import COMMANDS
from tests.cli.commands import run_command


def test_help_names_every_command_and_loads_nothing_heavy():
    code = (
        "import sys\nfrom envsched.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "sys.exit(any(name in sys.modules for name in ('torch', 'numpy', 'pydantic')))"
    )
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    assert all(command in made.stdout for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_every_command_shows_examples(capsys, command):
    status, out, _ = run_command(capsys, command, "--help")
    assert status == 0
    assert f"envsched {command} " in out.split("Examples:")[1]


def test_version_and_module_entry():
    made = subprocess.run([sys.executable, "-m", "envsched", "--version"], capture_output=True, text=True, check=True)
    assert made.stdout.strip() == envsched.__version__


def test_an_unknown_command_is_a_usage_error(capsys):
    status, _, err = run_command(capsys, "selekt")
    assert status == 2
    assert "selekt" in err
