"""Grids as functions: Triton's ``lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]),)`` becomes expressions."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, Union

from .. import _check
from .._check import Extents
from .._structure import with_numbers
from ..errors import KernelError

#: A grid: extents as numbers or expressions, or a function that computes them from symbols.
Grid = Union[Extents, Callable[..., Any]]


class Symbol:
    """An integer that only a call knows. Arithmetic with it records an expression."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __add__(self, other: object) -> Symbol:
        return _joined(self, "+", other)

    def __radd__(self, other: object) -> Symbol:
        return _joined(other, "+", self)

    def __sub__(self, other: object) -> Symbol:
        return _joined(self, "-", other)

    def __rsub__(self, other: object) -> Symbol:
        return _joined(other, "-", self)

    def __mul__(self, other: object) -> Symbol:
        return _joined(self, "*", other)

    def __rmul__(self, other: object) -> Symbol:
        return _joined(other, "*", self)

    def __floordiv__(self, other: object) -> Symbol:
        return _joined(self, "//", other)

    def __rfloordiv__(self, other: object) -> Symbol:
        return _joined(other, "//", self)

    def __mod__(self, other: object) -> Symbol:
        return _joined(self, "%", other)

    def __rmod__(self, other: object) -> Symbol:
        return _joined(other, "%", self)

    def __neg__(self) -> Symbol:
        return _joined(0, "-", self)

    def __pos__(self) -> Symbol:
        return self

    def _refuse(self, *others: object) -> NoReturn:
        raise TypeError(
            f"grid: expected + - * // % and triton.cdiv with `{self.text}`, which only a call knows; write other "
            f'expressions as text, such as f"min({{n}}, 4)"'
        )

    __truediv__ = __rtruediv__ = __pow__ = __rpow__ = __divmod__ = __rdivmod__ = _refuse
    __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = _refuse
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = __invert__ = _refuse
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __bool__ = __int__ = __index__ = __float__ = __round__ = __ceil__ = __floor__ = __trunc__ = __abs__ = _refuse
    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<symbol {self.text}>"


def _joined(left: object, operator: str, right: object) -> Symbol:
    """The expression of an operator and its operands."""
    operands = []
    for of in (left, right):
        if isinstance(of, Symbol):
            operands.append(of.text if re.fullmatch(r"[\w.\[\]]+", of.text) else f"({of.text})")
        else:
            number = _check.integer("grid", of)
            operands.append(str(number) if number >= 0 else f"({number})")
    return Symbol(f"{operands[0]} {operator} {operands[1]}")


class TensorSymbol:
    """A tensor of the signature, for the function of a grid: its sizes and strides are symbols."""

    def __init__(self, name: str, rank: int | None) -> None:
        self._name, self._rank = name, rank

    @property
    def ndim(self) -> int:
        if self._rank is None:
            raise KernelError(f"grid: expected a tensor with a stated number of dimensions, got `{self._name}`")
        return self._rank

    @property
    def shape(self) -> tuple[Symbol, ...]:
        return tuple(Symbol(f"{self._name}.shape[{axis}]") for axis in range(self.ndim))

    def size(self, axis: int | None = None) -> Any:
        return self.shape if axis is None else self.shape[axis]

    def stride(self, axis: int | None = None) -> Any:
        strides = tuple(Symbol(f"{self._name}.strides[{axis}]") for axis in range(self.ndim))
        return strides if axis is None else strides[axis]

    def numel(self) -> Any:
        total: Any = None
        for size in self.shape:
            total = size if total is None else total * size
        return 1 if total is None else total


class Meta(Mapping[str, Any]):
    """The mapping that Triton passes to the function of a grid: the kernel's arguments and constants, by name."""

    def __init__(self, values: dict[str, Any]) -> None:
        self._values = values

    def __getitem__(self, name: str) -> Any:
        if name not in self._values:
            raise KernelError(f"grid: expected one of {', '.join(self._values)}, got {name!r}")
        return self._values[name]

    def __iter__(self) -> Any:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


def extents(grid: Grid, meta: dict[str, Any], names: Mapping[str, Any]) -> list[str]:
    """A grid as expressions.

    A function gets ``meta``, and after that those of ``names`` that its further parameters have. In the expressions of
    other grids the integers in ``meta`` stand for their names, unless ``names`` has the name too.
    """
    if not callable(grid):
        return with_numbers(_check.extents("grid", grid), meta, names)
    _, *parameters = inspect.signature(grid).parameters
    for name in parameters:
        if name not in names:
            raise KernelError(f"grid: expected names of the signature ({', '.join(names)}), got `{name}`")
    made = grid(Meta(meta), *[names[name] for name in parameters])
    listed = made if isinstance(made, (tuple, list)) else [made]
    return _check.extents("grid", [str(of) if isinstance(of, Symbol) else of for of in listed])
