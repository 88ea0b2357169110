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


@pytest.mark.parametrize("words", [(), ("pool",), ("topology",), ("graph",)])
def test_a_command_alone_shows_what_it_can_be_followed_by(capsys, words):
    status, out, err = run_command(capsys, *words)
    commands = (out + err).partition("Commands:\n")[2].splitlines()
    assert status == 2
    assert len(commands) >= 2
    assert not [line for line in commands if line.endswith("...")]


def test_version_and_module_entry():
    made = subprocess.run([sys.executable, "-m", "envsched", "--version"], capture_output=True, text=True, check=True)
    assert made.stdout.strip() == envsched.__version__


def test_an_unknown_command_is_a_usage_error(capsys):
    status, _, err = run_command(capsys, "selekt")
    assert status == 2
    assert "selekt" in err
