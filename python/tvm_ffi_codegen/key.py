"""The keys of a dispatch: expressions over its arguments, and the values of these."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Union

import tvm_ffi

from . import _check
from .signature import Signature

#: Keys as a user states them: expressions, or expressions by names.
StatedKeys = Union[Sequence[str], Mapping[str, str]]
#: A key as a user writes it: a :class:`Key`, values in order, values by names, or the value of an only key.
KeyLike = Union["Key", Mapping[str, Any], Sequence[Any], Any]


class Key(Mapping[str, Any]):
    """The values of a dispatch's keys, by the keys' names: ``key["x.dtype"]``, or ``key.BLOCK`` if the name is an
    identifier.

    A dispatch makes the keys that its callback gets. To test a callback, make one of ``names`` and their ``values``.
    ``arguments`` are the arguments of the call that needs the variant, for example to measure candidates. It is None
    where there is no call, as in :meth:`Dispatch.prewarm`.
    """

    __slots__ = ("_names", "_values", "arguments")

    def __init__(
        self, names: tuple[str, ...], values: tuple[Any, ...], arguments: tuple[Any, ...] | None = None
    ) -> None:
        self._names, self._values, self.arguments = names, values, arguments

    def __getitem__(self, name: str) -> Any:
        try:
            return self._values[self._names.index(name)]
        except ValueError:
            raise KeyError(name) from None

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"no key has the name `{name}`; the keys are {', '.join(self._names)}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def _identity(self) -> tuple[Any, ...]:
        """The values, such that values that a table tells apart differ: True is not 1, and floats go by their bits."""
        return tuple((type(of), struct.pack("d", of) if isinstance(of, float) else str(of)) for of in self._values)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Key):
            return NotImplemented
        return self._names == other._names and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def __repr__(self) -> str:
        return f"Key({', '.join(f'{name}: {_shown(value)}' for name, value in self.items())})"


class Keys:
    """The keys of a dispatch over a signature: their names, expressions, and the kinds of their values."""

    def __init__(self, keys: StatedKeys, signature: Signature) -> None:
        if isinstance(keys, Mapping):
            named = [(_check.text("keys", name), _check.text(f"keys[{name!r}]", of)) for name, of in keys.items()]
        else:
            named = [(of.strip(), of) for of in _check.texts("keys", keys)]
        if not named:
            raise ValueError("keys: expected at least one expression, got none")
        self.names = tuple(name for name, _ in named)
        if len(set(self.names)) < len(self.names):
            twice = next(name for name in self.names if self.names.count(name) > 1)
            raise ValueError(f"keys: `{twice}` is stated twice")
        self.expressions = tuple(of for _, of in named)
        self.kinds = tuple(_kind(of.strip(), signature) for of in self.expressions)

    def __len__(self) -> int:
        return len(self.names)

    def of_call(self, values: tuple[Any, ...]) -> Key:
        """The key of a miss. ``values`` are the keys' values, then the arguments; or the keys' values alone."""
        count = len(self)
        return Key(self.names, values[:count], values[count:] if len(values) > count else None)

    def read(self, what: str, key: KeyLike) -> Key:
        """Accepts a key as a user writes it."""
        if isinstance(key, Mapping):
            stray = sorted(set(key) - set(self.names))
            missing = [name for name in self.names if name not in key]
            if stray or missing:
                problem = f"it has no `{missing[0]}`" if missing else f"there is no key `{stray[0]}`"
                raise ValueError(f"{what}: expected values for {', '.join(self.names)}, and {problem}")
            values = [key[name] for name in self.names]
        elif isinstance(key, (tuple, list)):
            values = list(key)
        else:
            values = [key]
        if len(values) != len(self):
            raise ValueError(f"{what}: expected {len(self)} values ({', '.join(self.names)}), got {len(values)}")
        parts = zip(self.names, self.kinds, values)
        return Key(self.names, tuple(_value(f"{what}[{name!r}]", kind, of) for name, kind, of in parts))

    def read_all(self, what: str, keys: Iterable[KeyLike]) -> list[Key]:
        """Accepts several keys."""
        return _check.listed(what, keys, "keys", self.read)


def _shown(value: object) -> str:
    return str(value) if isinstance(value, (tvm_ffi.dtype, tvm_ffi.Device)) else repr(value)


_KINDS = {"scalar": "int", "bool": "bool", "int": "int", "str": "str", "dtype": "dtype", "device": "device"}
#: Kinds of expressions that are one question.
_QUESTIONS = [
    (re.compile(r"\w+\.dtype"), "dtype"),
    (re.compile(r"\w+\.device"), "device"),
    (re.compile(r"\w+\.given"), "bool"),
    (re.compile(r"\w+\.(ndim|size|device\.(id|capability))"), "int"),
    (re.compile(r"\w+\.(shape|strides)\[\d+\]"), "int"),
    (re.compile(r"is_(contiguous|aligned|object)"), "bool"),
]
_IN_BRACKETS = re.compile(r'"(?:\\.|[^"\\])*"|\([^()\[\]]*\)|\[[^()\[\]]*\]|<<|>>')
_COMPARISON = re.compile(r"[=!]=|[<>]|\b(and|or|not|is)\b")


def _kind(expression: str, signature: Signature) -> str:
    """The kind of an expression's values as far as its text tells: ``any`` is a kind that isn't known."""
    types = {of["name"]: of["type"] for of in signature.structure["parameters"]}
    if expression in types:
        type = types[expression]
        if type["kind"] == "scalar" and not type["name"].lstrip("u").startswith("int"):
            return "bool" if type["name"] == "bool" else "float" if "float" in type["name"] else "any"
        return _KINDS.get(type["kind"], "any")
    if expression in signature.dim_vars:
        return "int"
    # what stands in brackets doesn't decide the kind
    outside, inside = expression, None
    while inside != outside:
        inside, outside = outside, _IN_BRACKETS.sub("", outside)
    if _COMPARISON.search(outside) and not outside.startswith("if "):
        return "bool"
    for question, kind in _QUESTIONS:
        if question.fullmatch(expression) or question.fullmatch(outside):
            return kind
    return "any"


def _value(what: str, kind: str, value: object) -> Any:
    """Accepts a value of a key, as the table compares it."""
    name = _check.dtype_name(value)
    if name is None and kind == "dtype" and isinstance(value, str):
        name = value
    if name is not None:
        value = tvm_ffi.dtype(name)
    elif isinstance(value, (str, bytes)) or value is None:
        value = tvm_ffi.device(value) if kind == "device" and isinstance(value, str) else value
    elif not isinstance(value, (bool, int, float, tvm_ffi.Device)):
        plain: Any = _check.default(what, value)
        value = tvm_ffi.device(plain) if kind == "device" else plain
    if kind == "float" and isinstance(value, int):
        value = float(value)
    expected = {"dtype": tvm_ffi.dtype, "device": tvm_ffi.Device, "bool": bool, "int": int, "float": float, "str": str}
    if kind in expected:
        if not isinstance(value, expected[kind]) or (kind == "int" and isinstance(value, bool)):
            raise TypeError(f"{what}: expected a value of type {kind}, got {_shown(value)}")
    return value
