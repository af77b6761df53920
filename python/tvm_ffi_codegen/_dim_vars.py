"""Values of a signature's dim_vars. Matches sizes and computes expressions as wrappers do (docs/reference/contract.md,
C10.9 to C10.15).

Numbers may be of any type with Python's arithmetic operators, such as PyTorch's ``SymInt``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Union

#: A dimension of ``Signature.structure``: a number, a name, or an operation with its operands.
Dim = Union[int, str, list[Any]]


class Numbers:
    """Arithmetic of 64-bit integers."""

    def minimum(self, x: Any, y: Any) -> Any:
        return min(x, y)

    def maximum(self, x: Any, y: Any) -> Any:
        return max(x, y)

    def require(self, condition: Any, message: Callable[[], str]) -> None:
        """Raises an error with the message unless the condition holds."""
        if not condition:
            raise ValueError(message())

    def fits(self, value: Any) -> None:
        """Raises an error unless the number fits in 64 bits."""
        self.require(-(2**63) <= value < 2**63, lambda: f"{value} doesn't fit in 64 bits")


#: Infix operators; the other operations are written as functions.
_SIGNS = frozenset({"+", "-", "*", "//", "%"})

_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "==": lambda x, y: x == y,
    "!=": lambda x, y: x != y,
    "<": lambda x, y: x < y,
    "<=": lambda x, y: x <= y,
    ">": lambda x, y: x > y,
    ">=": lambda x, y: x >= y,
}


def names(dim: Dim) -> Iterator[str]:
    """The names in a dimension, from left to right, with repetitions."""
    if isinstance(dim, str):
        yield dim
    elif isinstance(dim, list):
        for operand in dim[1:]:
            yield from names(operand)


def show(dim: Dim) -> str:
    """A dimension as a string."""
    if not isinstance(dim, list):
        return str(dim)
    sign, x, y = dim[0], *map(show, dim[1:])
    if sign not in _SIGNS:
        return f"{sign}({x}, {y})"
    x, y = (f"({text})" if isinstance(of, list) and of[0] in _SIGNS else text for of, text in zip(dim[1:], (x, y)))
    return f"{x} {sign} {y}"


class DimVars:
    """The dim_vars of one call. Pass all sizes to :meth:`match` in the order of the parameters, then :meth:`settle`."""

    def __init__(self, numbers: Numbers, values: dict[str, Any]) -> None:
        self._numbers = numbers
        #: The known values, which at first are those of the integer parameters.
        self.values = dict(values)
        self._deferred: list[tuple[Dim, Any, str, bool]] = []

    def compute(self, dim: Dim) -> Any:
        """The value of a dimension; None if one of its dim_vars has none."""
        if isinstance(dim, int):
            return dim
        if isinstance(dim, str):
            return self.values.get(dim)
        x, y = self.compute(dim[1]), self.compute(dim[2])
        if x is None or y is None:
            return None
        value = self._apply(dim[0], x, y, dim)
        self._numbers.fits(value)
        return value

    def _apply(self, sign: str, x: Any, y: Any, dim: Dim) -> Any:
        if sign == "+":
            return x + y
        if sign == "-":
            return x - y
        if sign == "*":
            return x * y
        if sign == "min":
            return self._numbers.minimum(x, y)
        if sign == "max":
            return self._numbers.maximum(x, y)
        self._numbers.require(y != 0, lambda: f"{show(dim)} divides by 0")
        if sign == "//":
            return x // y
        if sign == "%":
            return x % y
        if sign == "ceil_div":
            return -(-x // y)
        raise ValueError(f"`{sign}` isn't an operation of dimensions in this version")

    def match(self, dim: Dim, size: Any, path: str, *, is_stride: bool = False, may_defer: bool = True) -> None:
        """Compares a size or stride with the dimension in the signature, or solves for the dimension's variable."""
        if not self._decide(dim, size, path, is_stride) and may_defer:
            self._deferred.append((dim, size, path, is_stride))

    def _decide(self, dim: Dim, size: Any, path: str, is_stride: bool) -> bool:
        open_names = [name for name in names(dim) if name not in self.values]
        if not open_names:
            self._require_equal(dim, size, path)
            return True
        if len(open_names) != 1:
            return False
        value = self._solved(dim, open_names[0], size)
        if value is None:
            return False
        self.values[open_names[0]] = value
        if dim != open_names[0]:
            if not is_stride:
                self._numbers.require(
                    value >= 0, lambda: f"no value of `{open_names[0]}` makes `{path}`, {show(dim)}, {size}"
                )
            self._require_equal(dim, size, path)
        return True

    def _require_equal(self, dim: Dim, size: Any, path: str) -> None:
        value = self.compute(dim)
        self._numbers.require(value == size, lambda: f"expected {value} for `{path}`, {show(dim)}, got {size}")

    def _solved(self, dim: Dim, name: str, target: Any) -> Any:
        """Solves ``dim == target`` for a name; None if this can't be solved.

        The result may be inexact, so the caller compares the dimension with the target again.
        """
        if isinstance(dim, str):
            return target
        sign, x, y = dim  # type: ignore[misc]
        is_left = name in names(x)
        inner, other = (x, self.compute(y)) if is_left else (y, self.compute(x))
        if sign == "+":
            return self._solved(inner, name, target - other)
        if sign == "-":
            return self._solved(inner, name, target + other if is_left else other - target)
        if sign == "*" and other != 0:
            return self._solved(inner, name, target // other)
        return None

    def settle(self) -> None:
        """Retries deferred dimensions until no more dim_vars get values."""
        while True:
            rest = [of for of in self._deferred if not self._decide(*of)]
            if len(rest) == len(self._deferred):
                break
            self._deferred = rest

    def constrain(self, constraints: list[list[Any]]) -> None:
        """Checks a signature's constraints, except those with unknown dim_vars."""
        for sign, left, right in constraints:
            x, y = self.compute(left), self.compute(right)
            if x is not None and y is not None:
                text = f"{show(left)} {sign} {show(right)}"
                self._numbers.require(_COMPARISONS[sign](x, y), lambda: f"expected {text}, got {x} and {y}")
