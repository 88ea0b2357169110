"""What BFCL's ``MathAPI.logarithm`` uses of mpmath, for workers that see no installed package: ``log``, division, ``mp.dps``.

A result equals mpmath's to the last digit: rounded to the nearest binary fraction of as many bits as mpmath takes for ``dps``
decimal places, and written as mpmath writes it. Standard library only; the text of this file becomes the module ``mpmath`` there.
"""

import math
from decimal import ROUND_HALF_UP, Context, Decimal, localcontext
from fractions import Fraction

BITS_PER_DIGIT = math.log2(10)


class Precision:
    """``mp``: decimal places of all that follows."""

    dps = 15


mp = Precision()


class Real:
    """A binary fraction."""

    def __init__(self, value: Fraction) -> None:
        self.value = value

    def __truediv__(self, other: "Real") -> "Real":
        return Real(_rounded(self.value / other.value))

    def __repr__(self) -> str:
        return f"mpf('{_written(self.value, _digits())}')"

    def __str__(self) -> str:
        return _written(self.value, max(int(mp.dps), 1))


def log(value: float) -> Real:
    """Natural logarithm of a positive number."""
    if value <= 0:
        raise ValueError("math domain error")
    exact = Fraction(value)
    digits = 2 * int(mp.dps) + 50
    with localcontext(Context(prec=digits)):
        natural = (Decimal(exact.numerator) / Decimal(exact.denominator)).ln()
    return Real(_rounded(Fraction(natural)))


def _bits() -> int:
    return max(1, round((int(mp.dps) + 1) * BITS_PER_DIGIT))


def _digits() -> int:
    """Decimal digits that tell any two numbers of this precision apart."""
    digits = max(1, round(_bits() / BITS_PER_DIGIT) - 1)
    return 17 if digits == 15 else digits + 3


def _rounded(value: Fraction) -> Fraction:
    """To the nearest number of ``_bits()`` bits, ties to even."""
    if not value:
        return value
    exponent = abs(value.numerator).bit_length() - value.denominator.bit_length() - _bits()
    while abs(value) / Fraction(2) ** exponent >= 2 ** _bits():
        exponent += 1
    return round(value / Fraction(2) ** exponent) * Fraction(2) ** exponent


def _written(value: Fraction, digits: int) -> str:
    """Like ``repr`` of a float, with ``digits`` significant ones: fixed point from 10^min(-digits // 3, -5) to 10^digits."""
    if not value:
        return "0.0"
    with localcontext(Context(prec=digits, rounding=ROUND_HALF_UP)):
        number = Decimal(value.numerator) / Decimal(value.denominator)
    sign, figures, exponent = number.as_tuple()
    text = "".join(map(str, figures)).rstrip("0") or "0"
    point = len(figures) + int(exponent)  # digits before the decimal point
    minus = "-" if sign else ""
    if min(-(digits // 3), -5) < point - 1 < digits:
        if point <= 0:
            return f"{minus}0.{'0' * -point}{text}"
        text = text.ljust(point, "0")
        return f"{minus}{text[:point]}.{text[point:] or '0'}"
    return f"{minus}{text[0]}.{text[1:] or '0'}e{point - 1:+d}"
