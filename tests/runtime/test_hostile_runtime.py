"""Attacks on the runtime itself, and on other rollouts: each in ours, and in a careless one where it wins."""

import json
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from envsched.runtime import EnvironmentRuntime, Outcome
from envsched.types import Status
from tests.runtime.pools import counter_pool, one_task_pool, tool

LIMIT = 10.0  # seconds; none of these calls hangs, but a busy machine is slow
# name, body of the attack, how the call ends in our runtime
ATTACKS = [
    ("exit_of_the_process", "import os; os._exit(0)", Outcome.DIED),
    ("system_exit", "import sys; sys.exit(0)", Outcome.RAISED),
    ("keyboard_interrupt", "raise KeyboardInterrupt", Outcome.RAISED),
    ("generator_exit", "raise GeneratorExit", Outcome.RAISED),
    ("null_pointer", "import ctypes; ctypes.string_at(0)", Outcome.DIED),
    ("abort", "import os; os.abort()", Outcome.DIED),
    (
        "deep_recursion",
        "import sys; sys.setrecursionlimit(10**9); nest = []\nfor _ in range(100_000): nest = [nest]\nreturn repr(nest)",
        Outcome.DIED,
    ),
    ("huge_integer", "return 10 ** 5000", Outcome.RAISED),
    ("lone_surrogate", "return 'never printable: \\ud800'", Outcome.OK),
    ("closed_descriptors", "import os; os.closerange(0, 256)", Outcome.DIED),
    ("alarm_left_behind", "import signal; signal.setitimer(signal.ITIMER_REAL, 0.05)", Outcome.OK),
    ("class_of_the_others", "type(self).keep = lambda self: 'spoilt'", Outcome.OK),
    ("builtins_of_the_others", "import builtins; builtins.len = lambda thing: 'spoilt'", Outcome.DIED),
    ("modules_of_the_others", "import json; json.dumps = lambda *_, **__: 'spoilt'", Outcome.OK),
    ("chance_of_the_others", "import random; random.random = lambda: 'spoilt'", Outcome.OK),
    ("environment_of_the_others", "import os; os.environ['PLACE'] = 'spoilt'", Outcome.OK),
    ("folder_of_the_others", "import os; os.chdir('/')", Outcome.OK),
    (
        "rewards_of_the_others",
        """
import sys
for module in list(sys.modules.values()):
    if hasattr(module, 'run_checks'):
        module.run_checks = lambda *_: ([True], [])
    if hasattr(module, 'score'):
        module.score = lambda box: 'spoilt 1.0'
""",
        Outcome.OK,
    ),
    (
        "pickle_that_runs",
        """
class Bomb:
    def __reduce__(self):
        return (exec, ("open('bomb', 'w').write('went off')",))
return Bomb()
""",
        Outcome.OK,
    ),
    ("forged_words", "print('neighbour: spoilt 1.0')", Outcome.OK),
    ("flood_of_words", "for _ in range(20): print('x' * 1_000_000)", Outcome.OK),
    ("deletion_of_the_folder", "import os, shutil; shutil.rmtree(os.getcwd())", Outcome.RAISED),
    ("end_of_the_interpreter", "import atexit; atexit.register(lambda: open('late', 'w').write('x'))", Outcome.OK),
    ("finalizer", "import sys; sys.modules['time'].sleep = None", Outcome.OK),
    (
        "forged_answer",
        """
import os, socket, stat, sys
frame = b'\\x00\\x00\\x00\\x2d' + b'{"ok":true,"number":99,"length":1,"text":"x"}'.ljust(45)
for fd in range(3, 30):
    try:
        if stat.S_ISSOCK(os.fstat(fd).st_mode):
            os.write(fd, frame)
    except OSError:
        continue
print('neighbour: spoilt 1.0')
""",
        Outcome.DIED,
    ),
    (
        "bottomless_answer",
        """
import os, stat
for fd in range(3, 30):
    try:
        if stat.S_ISSOCK(os.fstat(fd).st_mode):
            os.write(fd, b'\\x00\\x01\\x86\\xa0' + b'[' * 100_000)
    except OSError:
        continue
nest = []
for _ in range(10**5): nest = [nest]
return nest
""",
        Outcome.DIED,
    ),
]

SOURCE = """
import json, os, random

class Box:
    def __init__(self, config):
        self.count = 0
        json.dumps([random.random()])

    def keep(self):
        for _ in range(100):
            pass
        folder = 'spoilt' if os.getcwd() == '/' else 'folder'
        return [json.dumps({}), len([1]), type(random.random()).__name__, os.environ.get('PLACE'), folder].__repr__()

    def attack(self, **world):
"""
KEPT = "['{}', 1, 'float', None, 'folder']"


def source_of(body: str) -> str:
    return SOURCE + textwrap.indent(body.strip(), " " * 8) + "\n"


@pytest.mark.parametrize(("name", "body", "outcome"), ATTACKS, ids=[name for name, _, _ in ATTACKS])
def test_hostile_code_harms_its_own_rollout_alone(name, body, outcome):
    check = "def check_func(s):\n    return s['count'] > 0"
    pool = one_task_pool(source_of(body), [tool("keep"), tool("attack")], [check])
    with EnvironmentRuntime(pool, num_workers=1, call_seconds=LIMIT) as runtime:
        worker = runtime._launcher.workers[0].process_id
        with runtime.start("task") as neighbour, runtime.start("task") as hostile:
            observation = hostile.call("attack", {})
            assert observation.outcome is outcome
            observation.text.encode()
            time.sleep(0.1)
            for episode in (neighbour, runtime.start("task")):
                assert episode.call("keep", {}).text == KEPT
                assert episode.score().reward == 0.0
        assert hostile.status is (Status.INFRA_ERROR if outcome is Outcome.DIED else Status.OK)
        assert runtime._launcher.workers[0].process_id == worker
        assert runtime._launcher.workers[0].alive


@pytest.mark.parametrize(("name", "body"), [attack[:2] for attack in ATTACKS], ids=[name for name, _, _ in ATTACKS])
def test_hostile_code_wins_in_a_careless_runtime(name, body, tmp_path):
    order = json.dumps({"source": source_of(body), "world": {}})
    place = tmp_path / "place"
    place.mkdir()
    command = [sys.executable, str(Path(__file__).with_name("careless.py")), order]
    ended = subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=60, check=False)
    fine = "the trainer goes on" in ended.stdout and ended.returncode == 0
    unharmed = f"neighbour: {KEPT} 0.0" in ended.stdout and "spoilt" not in ended.stdout and len(ended.stdout) < 10_000
    traces = {path.name for path in place.iterdir()} - {"note"} if place.exists() else {"no folder"}
    assert not (fine and unharmed and not traces), "the attack did nothing even there"


def report_of(checks, **settings):
    with EnvironmentRuntime(counter_pool(checks), num_workers=1, **settings) as runtime, runtime.start("task", 3) as episode:
        episode.call("add", {"amount": 2})
        before = time.monotonic()
        report = episode.score()
        return report, time.monotonic() - before, episode.call("add", {"amount": 1}).text


GOOD = "def check_func(s):\n    return s['count'] == 3"


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("def check_func(s):\n    while True: pass", "never_ends"),
        ("def check_func(s):\n    return 10 ** 10 ** 8 > 1", "never_ends"),
        ("while True: pass", "never_ends"),
        ("def check_func(s):\n    import os; os._exit(0)", "kills_process"),
        ("def check_func(s):\n    import ctypes; ctypes.string_at(0)", "kills_process"),
        ("def check_func(s):\n    raise SystemExit", "raised"),
        ("def check_func(s):\n    return open('/etc/passwd').read() != ''", "raised"),
        ("def check_func(s):\n    import subprocess; return subprocess.run(['true']).returncode == 0", "raised"),
        ("def check_func(s):\n    return bytearray(1 << 40) is not None", "raised"),
        ("def check_func(s):\n    class Yes:\n        def __bool__(self): return True\n    return Yes()", "not_boolean"),
        ("def check_func(s):\n    return 1", "not_boolean"),
        ("def check_func(s):\n    return None", "not_boolean"),
        ("def other(s): return True", "no_check_func"),
        ("def check_func(s: return True", "does_not_compile"),
        ("x = " + "(" * 5000 + ")" * 5000, "does_not_compile"),
    ],
)
def test_hostile_check_is_not_passed_is_named_and_spares_the_others(source, kind):
    report, seconds, after = report_of([GOOD, source, GOOD], score_seconds=0.5, check_seconds=0.5)
    assert report.passed == (True, False, True)
    assert [(problem.check, problem.kind) for problem in report.problems] == [(1, kind)]
    if kind == "never_ends":
        assert (report.reward, report.status) == (None, Status.VERIFIER_ERROR), "it may be slow: no evidence about the policy"
    else:
        assert (report.reward, report.status) == (2 / 3, Status.OK)
    assert seconds < 4
    assert after == "{'count': 4}"


def test_hostile_verifier_that_hangs_throughout_gives_no_reward():
    report, seconds, _ = report_of(["def check_func(s):\n    while True: pass"] * 20, score_seconds=0.2, check_seconds=0.2)
    assert report.reward is None
    assert report.status is Status.VERIFIER_ERROR
    assert seconds < 5


def test_hostile_hang_leaves_the_reward_of_what_was_done_before():
    with EnvironmentRuntime(counter_pool(), num_workers=1, call_seconds=0.5) as runtime, runtime.start("task") as episode:
        episode.call("add", {"amount": 2})
        assert episode.call("spin", {}).outcome is Outcome.TIMEOUT
        report = episode.score()
        assert (report.reward, report.status) == (0.5, Status.TIMEOUT)
