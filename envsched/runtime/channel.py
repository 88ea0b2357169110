"""The trainer's end of a socket to code that is not trusted: every wait and every length has a limit."""

import contextlib
import select
import socket
import time
from typing import Any

from envsched.runtime.worker import frames


class ProcessEnded(OSError):
    """The other side closed the stream, most likely by ending."""


class Channel:
    """A stream of frames with a wall-clock deadline on each (``time.monotonic`` seconds).

    Raises, from ``send`` and ``receive``:
        TimeoutError: the deadline passed.
        FrameError: the other side broke the protocol.
        ProcessEnded, OSError: it is gone.
    """

    def __init__(self, stream: socket.socket, limit: int | None) -> None:
        self._stream = stream
        self._inbox = frames.Inbox(limit)
        stream.setblocking(False)

    def fileno(self) -> int:
        return self._stream.fileno()

    def send(self, value: dict[str, Any], deadline: float, descriptors: tuple[int, ...] = ()) -> None:
        frame = memoryview(frames.pack(value))
        while frame:
            try:
                sent = socket.send_fds(self._stream, [frame], descriptors) if descriptors else self._stream.send(frame)
            except BlockingIOError:
                self._wait(select.POLLOUT, deadline)
                continue
            except (BrokenPipeError, ConnectionResetError):
                raise ProcessEnded from None
            frame, descriptors = frame[sent:], ()

    def receive(self, deadline: float) -> dict[str, Any]:
        while (frame := self._inbox.take()) is None:
            try:
                if not self._inbox.read(self._stream):
                    raise ProcessEnded
            except BlockingIOError:
                self._wait(select.POLLIN, deadline)
            except ConnectionResetError:
                raise ProcessEnded from None
        return frame

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._stream.close()

    def _wait(self, event: int, deadline: float) -> None:
        poll = select.poll()
        poll.register(self._stream, event)
        left = deadline - time.monotonic()
        if left <= 0 or not poll.poll(left * 1000):
            raise TimeoutError
