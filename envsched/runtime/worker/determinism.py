"""Clock, ``uuid``, ``random`` and ``os.urandom`` as pure functions of (seed, start), so that a replay gives the same state.

The clock starts at ``start`` and moves by one millisecond per reading; ``time.sleep`` moves it on and returns at once.
``datetime.now`` and ``utcnow`` are replaced inside the C type itself: a subclass would change ``type(x)`` and ``repr(x)``.
"""

import ctypes
import datetime
import gc
import os
import random
import time
import uuid

TICK_NS = 1_000_000


class VirtualClock:
    """Nanoseconds since the epoch that only reading and sleeping move."""

    now_ns = 0

    def read_ns(self) -> int:
        self.now_ns += TICK_NS
        return self.now_ns

    def read(self) -> float:
        return self.read_ns() / 1e9

    def sleep(self, seconds: float) -> None:
        if seconds < 0:
            raise ValueError("sleep length must be non-negative")
        self.now_ns += round(seconds * 1e9)


class Determinism:
    """Takes the place of every source of time and chance in this process, for good; ``begin`` sets them for an episode.

    The worker makes it once and its forks inherit it.
    """

    def __init__(self) -> None:
        self._clock = VirtualClock()
        self._entropy = random.Random()
        _replace_time(self._clock)
        _replace_datetime(self._clock)
        _replace_entropy(self._entropy)

    def begin(self, seed: int, start: float) -> None:
        """Time starts at ``start`` (seconds since the epoch), chance follows from ``seed``."""
        self._clock.now_ns = round(start * 1e9)
        self._entropy.seed(seed)
        random.seed(seed)


def _replace_time(clock: VirtualClock) -> None:
    for name in ("time", "monotonic", "perf_counter", "process_time", "thread_time"):
        setattr(time, name, clock.read)
        setattr(time, f"{name}_ns", clock.read_ns)
    time.sleep = clock.sleep
    localtime, gmtime, ctime, asctime, strftime = time.localtime, time.gmtime, time.ctime, time.asctime, time.strftime
    time.localtime = lambda seconds=None: localtime(clock.read() if seconds is None else seconds)
    time.gmtime = lambda seconds=None: gmtime(clock.read() if seconds is None else seconds)
    time.ctime = lambda seconds=None: ctime(clock.read() if seconds is None else seconds)
    time.asctime = lambda parts=None: asctime(time.localtime() if parts is None else parts)
    time.strftime = lambda layout, parts=None: strftime(layout, time.localtime() if parts is None else parts)


def _replace_datetime(clock: VirtualClock) -> None:
    def now(cls, tz=None):
        return cls.fromtimestamp(clock.read(), tz)

    def utcnow(cls):
        return cls.fromtimestamp(clock.read(), datetime.UTC).replace(tzinfo=None)

    methods = gc.get_referents(datetime.datetime.__dict__)[0]
    methods["now"] = classmethod(now)
    methods["utcnow"] = classmethod(utcnow)
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(datetime.datetime))


def _replace_entropy(source: random.Random) -> None:
    os.urandom = source.randbytes
    random._urandom = source.randbytes  # what SystemRandom, and so ``secrets``, reads
    uuid._generate_time_safe = uuid._UuidCreate = None  # uuid1 in plain Python, from the clock above
    uuid._node = 0x02_00_00_00_00_01
    uuid._last_timestamp = None
