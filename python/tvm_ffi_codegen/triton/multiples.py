"""The factors that an expression of sizes always has, as a signature states."""

from __future__ import annotations

from math import gcd
from typing import Any

from ..signature import Signature

#: An expression as a signature's ``structure`` has it: a number, a name, or an operator with its operands.
Dim = Any


def factor(of: Dim, signature: Signature) -> int:
    """A number that an expression is a multiple of, or 1; 0 for an expression that is always 0."""
    return _factor(of, signature.structure["where"])


def _factor(of: Dim, where: list[Any]) -> int:
    if isinstance(of, int):
        return abs(of)
    known = 1
    if isinstance(of, list):
        operator, left, right = of
        first, second = _factor(left, where), _factor(right, where)
        if operator == "*":
            known = first * second
        elif operator in ("+", "-", "%", "min", "max"):
            known = gcd(first, second)
        # the quotient of a multiple has no remainder
        elif operator in ("//", "ceil_div") and isinstance(right, int) and right > 0 and first % right == 0:
            known = first // right
    for relation, left, right in where:
        if relation != "==":
            continue
        for stated, value in ((left, right), (right, left)):
            if stated == of and isinstance(value, int):
                known = _both(known, abs(value))
            if value == 0 and isinstance(stated, list) and stated[:2] == ["%", of] and isinstance(stated[2], int):
                known = _both(known, abs(stated[2]))
    return known


def _both(first: int, second: int) -> int:
    """The least common multiple."""
    return first // gcd(first, second) * second if first and second else 0
