"""Hostile environments: Python bodies of a tool ``attack(self, world)`` that ends with ``got = ...`` where it won.

``world`` tells where the trainer's treasures are: a secret in its environment and in a file, an open descriptor on that
file, a listening port, a file to write, a process to kill. An attack that returns the secret, or anything under
``got``, has won; so has one that leaves a mark outside (a written file, a dead victim, a word at the port).
"""

from dataclasses import dataclass

READ, WRITE, NETWORK, PROCESS, FLOOD, HANG = "read", "write", "network", "process", "flood", "hang"


@dataclass(frozen=True)
class Attack:
    name: str
    kind: str
    body: str
    needs_root: bool = False  # only root can do this without walls


ATTACKS = [
    # What the trainer holds.
    Attack("environment_variable", READ, "import os; got = os.environ[world['variable']]"),
    Attack("environment_bytes", READ, "import os; got = os.environb[world['variable'].encode()].decode()"),
    Attack("proc_self_environ", READ, "got = open('/proc/self/environ').read()"),
    Attack("proc_of_the_trainer", READ, "got = open(f\"/proc/{world['trainer']}/environ\").read()"),
    Attack("etc_passwd", READ, "got = open('/etc/passwd').read()"),
    Attack("secret_file", READ, "got = open(world['secret']).read()"),
    Attack("secret_by_pathlib", READ, "import pathlib; got = pathlib.Path(world['secret']).read_text()"),
    Attack("secret_by_loader", READ, "import linecache; got = linecache.getline(world['secret'], 1) or 1 / 0"),
    Attack("secret_by_symlink", READ, "import os; os.symlink(world['secret'], 'link'); got = open('link').read()"),
    Attack("secret_by_hard_link", READ, "import os; os.link(world['secret'], world['beside']); got = open(world['beside']).read()"),
    Attack("secret_by_climbing", READ, "got = open('../' * 40 + world['secret'][1:]).read()"),
    Attack(
        "secret_by_c_library",
        READ,
        "import ctypes, os; c = ctypes.CDLL(None); fd = c.open(world['secret'].encode(), 0)\ngot = os.read(fd, 99).decode()",
    ),
    Attack("folder_listing", READ, "import os; got = os.listdir(os.path.dirname(world['secret']))"),
    Attack("inherited_descriptor", READ, "import os; got = os.pread(world['descriptor'], 99, 0).decode()"),
    Attack(
        "all_descriptors",
        READ,
        """
import os
for fd in range(3, 256):
    try:
        words = os.pread(fd, 99, 0).decode()
    except (OSError, UnicodeDecodeError):
        continue
    if 'treasure' in words:
        got = words
""",
    ),
    Attack("trainers_packages", READ, "import sys; sys.path.insert(0, world['packages']); import envsched; got = envsched.__version__"),
    Attack(
        "neighbours_folder",
        READ,
        "import glob, os; mine = os.getcwd(); got = [open(p).read() for p in glob.glob('../*/diary') if os.path.dirname(p) != mine][0]",
    ),
    # Writes.
    Attack("absolute_path", WRITE, "open(world['target'], 'w').write('mark')"),
    Attack("through_a_link", WRITE, "import os; os.symlink(world['target'], 'way'); open('way', 'w').write('mark')"),
    Attack("by_climbing", WRITE, "open('../' * 40 + world['target'][1:], 'w').write('mark')"),
    Attack("rename_out", WRITE, "import os, shutil; open('mark', 'w').write('mark'); shutil.move('mark', world['target'])"),
    Attack("by_descriptor_flags", WRITE, "import os; os.write(os.open(world['target'], os.O_CREAT | os.O_WRONLY), b'mark')"),
    Attack("by_folder", WRITE, "import os; os.mkdir(world['target'])"),
    Attack("by_database", WRITE, "import sqlite3; sqlite3.connect(world['target']).execute('create table mark (x)')"),
    Attack("standard_library", READ, "import os; got = open(os.__file__, 'r+').name"),
    Attack("shared_memory", READ, "import os; fd = os.open('/dev/shm/' + world['token'], os.O_CREAT | os.O_RDWR); got = fd"),
    Attack("large_file", READ, "f = open('large', 'wb'); f.write(bytes(20 << 20)); f.close(); got = 'room for everything'"),
    Attack("no_temporary_folder", READ, "import os; os.chdir('/'); got = open(world['beside'], 'x').name"),
    # The network.
    Attack("tcp", NETWORK, "import socket; socket.create_connection(world['port'], 2).sendall(b'treasure')"),
    Attack("udp", NETWORK, "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'treasure', world['port'])"),
    Attack(
        "abstract_socket", NETWORK, "import socket; s = socket.socket(socket.AF_UNIX); s.connect(world['abstract']); s.sendall(b'treasure')"
    ),
    Attack("urllib", NETWORK, "import urllib.request; urllib.request.urlopen('http://%s:%d/treasure' % world['port'], timeout=0.2)"),
    Attack("listener", READ, "import socket; s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(); got = s.getsockname()"),
    Attack("netlink", READ, "import socket; got = socket.socket(16, socket.SOCK_RAW, 0).fileno()"),
    Attack("socket_by_c_library", READ, "import ctypes; got = ctypes.CDLL(None).socket(2, 1, 0); assert got >= 0"),
    Attack("raw_packets", READ, "import socket; got = socket.socket(17, 3, 3).fileno()", needs_root=True),
    # Programs, processes, threads.
    Attack("subprocess", READ, "import subprocess; got = subprocess.run(['/bin/sh', '-c', 'echo won'], capture_output=True).stdout"),
    Attack("shell", WRITE, "import os; os.system('echo mark > ' + world['target'])"),
    Attack("shell_by_c_library", WRITE, "import ctypes; ctypes.CDLL(None).system(b'echo mark > ' + world['target'].encode())"),
    Attack("exec", WRITE, "import os; os.execv('/bin/sh', ['sh', '-c', 'echo mark > ' + world['target']])"),
    Attack("spawn", WRITE, "import os; os.waitpid(os.posix_spawn('/bin/sh', ['sh', '-c', 'echo mark > ' + world['target']], {}), 0)"),
    Attack(
        "import_tricks",
        WRITE,
        """
for thing in ().__class__.__base__.__subclasses__():
    names = getattr(getattr(thing, '__init__', None), '__globals__', {})
    if 'system' in names:
        names['system']('echo mark > ' + world['target'])
""",
    ),
    Attack("import_by_name", WRITE, "__import__('o' + 's').__dict__['sys' + 'tem']('echo mark > ' + world['target'])"),
    Attack(
        "eval_in_strings",
        WRITE,
        "exec(compile('import os; os.system(\"echo mark > \" + world[\"target\"])', 'x', 'exec'), {'world': world})",
    ),
    Attack(
        "fork_bomb",
        READ,
        """
import os, time
born = 0
for _ in range(40):
    if os.fork() == 0:
        import select
        select.select([], [], [], 1)
        os._exit(0)
    born += 1
got = born
""",
    ),
    Attack("multiprocessing", READ, "import multiprocessing as m; p = m.get_context('fork').Process(target=print); p.start(); got = p.pid"),
    Attack("thread", READ, "import threading; t = threading.Thread(target=int); t.start(); t.join(); got = 'a thread'"),
    Attack(
        "thread_left_running",
        READ,
        "import _thread, select; _thread.start_new_thread(select.select, ([], [], [], 60)); got = 'still there'",
    ),
    Attack("kill_the_victim", PROCESS, "import os; os.kill(world['victim'], 9)"),
    Attack("kill_by_c_library", PROCESS, "import ctypes; ctypes.CDLL(None).kill(world['victim'], 9)"),
    Attack("kill_the_worker", READ, "import os; os.kill(os.getppid(), 0); got = os.getppid()"),
    Attack("namespaces", READ, "import ctypes; got = ctypes.CDLL(None).unshare(0x10000000) == 0 or 1 / 0"),
    Attack("chroot", READ, "import os; os.mkdir('deep'); os.chroot('deep'); got = os.listdir('/')", needs_root=True),
    Attack("become_root", READ, "import os; os.setuid(0); got = os.getuid()", needs_root=True),
    Attack(
        "mount",
        READ,
        "import ctypes; c = ctypes.CDLL(None); got = c.mount(b'x', b'.', b'tmpfs', 0, None) == 0 or 1 / 0\nc.umount2(b'.', 2)",
        needs_root=True,
    ),
    Attack(
        "trace_the_worker",
        READ,
        """
import ctypes, os
trace, worker = ctypes.CDLL(None).ptrace, os.getppid()
got = trace(16, worker, 0, 0) == 0 or 1 / 0
os.waitpid(worker, 0x40000000)
trace(17, worker, 0, 0)
""",
        needs_root=True,
    ),
    Attack("system_v_memory", READ, "import ctypes; got = ctypes.CDLL(None).shmget(0, 4096, 0o1600); assert got >= 0"),
    # Memory and output.
    Attack("memory", READ, "hoard = bytearray(300 << 20); got = len(hoard)"),
    Attack("memory_by_lists", READ, "hoard = [0] * (40 << 20); got = len(hoard)"),
    Attack("memory_by_text", READ, "hoard = 'x' * (300 << 20); got = len(hoard)"),
    Attack(
        "flood_of_the_answer_channel",
        FLOOD,
        """
import json, os, stat, struct
body = json.dumps({"ok": True, "number": 1, "length": 1, "text": "won" + "x" * (30 << 20)}).encode()
for fd in range(3, 30):
    try:
        if stat.S_ISSOCK(os.fstat(fd).st_mode):
            channel = fd
    except OSError:
        continue
os.set_blocking(channel, True)
frame = memoryview(struct.pack('>I', len(body)) + body)
while frame:
    frame = frame[os.write(channel, frame):]
""",
    ),
    # Calls that never end.
    Attack("loop", HANG, "while True: pass"),
    Attack("loop_in_c", HANG, "import collections, itertools; collections.deque(itertools.repeat(0), maxlen=0)"),
    Attack("huge_integer", HANG, "got = 10 ** 10 ** 8"),
    Attack("regular_expression", HANG, "import re; re.match('(a+)+$', 'a' * 64 + 'b')"),
    Attack("ignored_signals", HANG, "import signal\nfor s in (1, 2, 15, 24, 14): signal.signal(s, signal.SIG_IGN)\nwhile True: pass"),
    Attack("swallowed_exceptions", HANG, "while True:\n    try:\n        while True: pass\n    except BaseException: pass"),
    Attack("endless_text", HANG, "class Text:\n    def __format__(self, spec):\n        while True: pass\ngot = Text()\nreturn got"),
    Attack("lock", HANG, "import threading; lock = threading.Lock(); lock.acquire(); lock.acquire()"),
    Attack("waiting_for_nothing", HANG, "import select; select.select([], [], [])"),
    Attack("blocked_pipe", HANG, "import os; r, w = os.pipe(); os.read(r, 1)"),
]
