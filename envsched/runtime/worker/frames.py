"""Length-prefixed JSON over sockets: four bytes, big-endian, then that many bytes of UTF-8 JSON. Never pickle."""

import json
import socket
import struct
from typing import Any

HEADER = struct.Struct(">I")


class FrameError(Exception):
    """The other side broke the protocol: a frame too long, cut short, or not a JSON object."""


def pack(value: dict[str, Any]) -> bytes:
    """One frame."""
    body = json.dumps(value, separators=(",", ":")).encode()
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
