"""Each attack twice: behind the walls, where nothing gets out, and without walls, where it wins."""

import os
import select
import socket
import subprocess
import textwrap
import time
import uuid
from pathlib import Path

import pytest

import envsched
from envsched.runtime import EnvironmentRuntime, Outcome
from envsched.types import Status
from tests.runtime.hostile import ATTACKS, FLOOD, HANG, NETWORK, PROCESS, Attack
from tests.runtime.pools import one_task_pool, tool

LIMIT, PATIENCE = 0.5, 30.0  # seconds: for calls that never end, for all others
TREASURE = "treasure-4711"
WALLS = {"clean_environment", "limits", "namespaces", "chroot", "setuid", "landlock", "seccomp"}
ENDINGS = {HANG: {(Outcome.TIMEOUT, Status.TIMEOUT)}, FLOOD: {(Outcome.DIED, Status.INFRA_ERROR)}}
OTHER_ENDINGS = {(Outcome.RAISED, Status.OK), (Outcome.OK, Status.OK), (Outcome.DIED, Status.INFRA_ERROR)}


def pool_of(attacks):
    methods = "".join(f"\n    def {attack.name}(self, **world):\n{textwrap.indent(_body(attack), ' ' * 8)}" for attack in attacks)
    keep = "\n    def keep(self):\n        open('diary', 'w').write('treasure-4711')\n        return 'kept'\n"
    names = ["keep", *(attack.name for attack in attacks)]
    source = f"class Box:\n    def __init__(self, config):\n        self.count = 0\n{keep}{methods}"
    return one_task_pool(source, [tool(name) for name in names], ["def check_func(s):\n    return True"])


def _body(attack: Attack) -> str:
    port = "world['port'] = tuple(world['port']); got = None\n"
    return f"{port}{attack.body.strip()}\nreturn f'won: {{got}}' if got is not None else 'nothing'\n"


POOL = pool_of(ATTACKS)


@pytest.fixture(scope="module")
def treasure(tmp_path_factory):
    """A secret in the trainer's environment, in a file, and behind an open descriptor."""
    secret = tmp_path_factory.mktemp("trainer") / "secret"
    secret.write_text(TREASURE)
    descriptor = os.open(secret, os.O_RDONLY)
    os.set_inheritable(descriptor, True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRAINER_TOKEN", TREASURE)
        yield {"variable": "TRAINER_TOKEN", "secret": str(secret), "descriptor": descriptor, "trainer": os.getpid()}
    os.close(descriptor)


@pytest.fixture(scope="module")
def guarded(treasure):
    with EnvironmentRuntime(POOL, num_workers=1, call_seconds=PATIENCE, memory_mb=256) as runtime:
        yield runtime


@pytest.fixture(scope="module")
def impatient(treasure):
    with EnvironmentRuntime(POOL, num_workers=1, call_seconds=LIMIT) as runtime:
        yield runtime


@pytest.fixture(scope="module")
def naked(treasure):
    with EnvironmentRuntime(POOL, num_workers=1, call_seconds=PATIENCE, sandbox="off") as runtime:
        assert runtime.protections.standing == ()
        yield runtime


@pytest.fixture
def world(treasure, tmp_path):
    """What there is to steal, break and call."""
    token = f"envsched-{uuid.uuid4().hex}"
    tcp, udp, abstract = socket.create_server(("127.0.0.1", 0)), socket.socket(type=socket.SOCK_DGRAM), socket.socket(socket.AF_UNIX)
    udp.bind(tcp.getsockname())
    abstract.bind(f"\0{token}")
    abstract.listen()
    victim = subprocess.Popen(["sleep", "60"])
    yield treasure | {
        "beside": str(tmp_path / "beside"),
        "target": str(tmp_path / "target"),
        "packages": str(Path(envsched.__file__).parent.parent),
        "port": tcp.getsockname(),
        "abstract": f"\0{token}",
        "token": token,
        "victim": victim.pid,
        "_listeners": (tcp, udp, abstract),
        "_victim": victim,
    }
    for listener in (tcp, udp, abstract):
        listener.close()
    victim.kill()
    victim.wait()
    Path("/dev/shm", token).unlink(missing_ok=True)


def won(attack: Attack, text: str, world) -> bool:
    """Whether anything got out, by any of the ways there are."""
    if attack.kind == NETWORK:
        return bool(select.select(world["_listeners"], [], [], 0.05)[0])
    if attack.kind == PROCESS:
        time.sleep(0.05)
        return world["_victim"].poll() is not None
    return "won" in text or TREASURE in text or os.path.exists(world["target"])


def arguments(world):
    return {name: value for name, value in world.items() if not name.startswith("_")}


def by_name(attack: Attack) -> str:
    return attack.name


@pytest.mark.parametrize("attack", ATTACKS, ids=by_name)
def test_hostile_code_gets_nothing_behind_the_walls(guarded, impatient, world, attack):
    runtime = impatient if attack.kind == HANG else guarded
    with runtime.start("task") as neighbour, runtime.start("task") as episode:
        neighbour.call("keep", {})
        observation = episode.call(attack.name, arguments(world), validate=False)
        assert not won(attack, observation.text, world), observation.text
        assert (observation.outcome, episode.status) in ENDINGS.get(attack.kind, OTHER_ENDINGS)
        assert neighbour.call("keep", {}).text == "kept"
        assert neighbour.score().reward == 1.0


@pytest.mark.parametrize("attack", ATTACKS, ids=by_name)
def test_hostile_code_wins_without_walls(naked, world, attack):
    if attack.needs_root and os.geteuid() != 0:
        pytest.skip("without walls this takes root, which the tests do not have here")
    with naked.start("task") as neighbour, naked.start("task") as episode:
        neighbour.call("keep", {})
        if attack.kind == HANG:
            assert episode.post_call(attack.name, arguments(world), validate=False) is None
            assert not select.select([episode.process], [], [], 1.3 * LIMIT)[0], "it ended by itself"
            episode.kill()
            return
        observation = episode.call(attack.name, arguments(world), validate=False)
        assert won(attack, observation.text, world), observation.text


def test_every_wall_stands_where_root_runs_the_tests(guarded):
    if os.geteuid() == 0:
        assert set(guarded.protections.standing) == WALLS, str(guarded.protections)
    else:
        assert {"clean_environment", "limits"} <= set(guarded.protections.standing)
