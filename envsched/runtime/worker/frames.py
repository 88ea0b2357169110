"""Length-prefixed JSON over sockets: four bytes, big-endian, then that many bytes of UTF-8 JSON. Never pickle."""

import json
import socket
import struct
from typing import Any

HEADER = struct.Struct(">I")
_CHUNK = 1 << 16
_encode = json.JSONEncoder(separators=(",", ":")).encode  # made once: json.dumps would make one per frame


class FrameError(Exception):
    """The other side broke the protocol: a frame too long, cut short, or not a JSON object."""


def pack(value: dict[str, Any]) -> bytes:
    """One frame."""
    body = _encode(value).encode()
    return HEADER.pack(len(body)) + body


def unpack(body: bytes | bytearray) -> dict[str, Any]:
    """The object of a frame's body; deep nesting and giant numbers are a broken protocol like any other."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise FrameError(f"not JSON: {error}") from None
    if not isinstance(value, dict):
        raise FrameError(f"expected an object, came {type(value).__name__}")
    return value


class Inbox:
    """Bytes of a stream on their way to whole frames: a short one takes a single read.

    Args:
        limit: bytes of the longest body; none: any.
    """

    def __init__(self, limit: int | None = None) -> None:
        self._limit = limit
        self._bytes = bytearray()

    def take(self) -> dict[str, Any] | None:
        """The next frame, None while it is not whole.

        Raises:
            FrameError: a body longer than the limit, or not an object.
        """
        if len(self._bytes) < HEADER.size:
            return None
        (length,) = HEADER.unpack_from(self._bytes)
        if self._limit is not None and length > self._limit:
            raise FrameError(f"a frame of {length} bytes; the limit is {self._limit}")
        end = HEADER.size + length
        if len(self._bytes) < end:
            return None
        body = self._bytes[HEADER.size : end]
        del self._bytes[:end]
        return unpack(body)

    def read(self, stream: socket.socket) -> bool:
        """Take in what has come; False where the stream ended. Raises what ``recv`` raises."""
        part = stream.recv(_CHUNK)
        self._bytes += part
        return bool(part)


def receive(stream: socket.socket, limit: int | None = None) -> dict[str, Any] | None:
    """The next frame; None when the other side is gone.

    Raises:
        FrameError: a frame longer than ``limit`` bytes, or not an object.
        TimeoutError: the socket's own time limit passed.
    """
    header = receive_exactly(stream, HEADER.size)
    if header is None:
        return None
    (length,) = HEADER.unpack(header)
    if limit is not None and length > limit:
        raise FrameError(f"a frame of {length} bytes; the limit is {limit}")
    body = receive_exactly(stream, length)
    return None if body is None else unpack(body)


def receive_exactly(stream: socket.socket, length: int) -> bytes | bytearray | None:
    """``length`` bytes, or None when the stream ends first."""
    first = stream.recv(length) if length else b""
    if len(first) == length:
        return first
    if not first:
        return None
    whole = bytearray(first)
    while len(whole) < length:
        part = stream.recv(length - len(whole))
        if not part:
            return None
        whole += part
    return whole
