"""A small mutating fuzzer: bytes near the valid, cut, spliced, repeated, nested, spoilt."""

import random
from collections.abc import Iterator

TOKENS = (
    b"{", b"}", b"[", b"]", b'"', b",", b":", b"null", b"NaN", b"-Infinity", b"1e999", b"\\u0000", b"\\ud800", b"\xff", b"\x00", b"\n",
    b"<tool_call>", b"</tool_call>", b"<think>", b"</think>", b'"name"', b'"arguments"', b'"rewards"', b'"step"', b"9" * 50, b"-0", b"true",
)  # fmt: skip


def mutants(corpus: list[bytes], number: int, seed: int) -> Iterator[bytes]:
    """``number`` inputs that grow from ``corpus``; the same for the same seed."""
    generator = random.Random(seed)
    for _ in range(number):
        text = generator.choice(corpus)
        for _ in range(generator.randrange(1, 6)):
            text = generator.choice(CHANGES)(text, generator, corpus)
        yield text[:20_000]


def _place(text: bytes, generator: random.Random) -> int:
    return generator.randrange(len(text) + 1)


def _cut(text, generator, _):
    first, second = sorted((_place(text, generator), _place(text, generator)))
    return text[:first] + text[second:]


def _insert(text, generator, _):
    at = _place(text, generator)
    return text[:at] + generator.choice(TOKENS) + text[at:]


def _spoil(text, generator, _):
    at = _place(text, generator)
    return text[:at] + bytes([generator.randrange(256)]) + text[at + 1 :]


def _splice(text, generator, corpus):
    other = generator.choice(corpus)
    return text[: _place(text, generator)] + other[_place(other, generator) :]


def _repeat(text, generator, _):
    first, second = sorted((_place(text, generator), _place(text, generator)))
    return text[:second] + text[first:second] * generator.randrange(1, 4) + text[second:]


def _nest(text, generator, _):
    at, depth = _place(text, generator), generator.choice((3, 50, 1500))
    return text[:at] + generator.choice((b"[", b'{"a":', b"(")) * depth + text[at:]


def _truncate(text, generator, _):
    return text[: _place(text, generator)]


CHANGES = (_cut, _insert, _insert, _spoil, _splice, _repeat, _nest, _truncate)
