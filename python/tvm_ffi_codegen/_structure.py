"""Functions for adapters, which read a signature and state more in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def dim_text(dim: Any) -> str:
    """A size or stride of a signature's structure, as text."""
    if not isinstance(dim, list):
        # a text has no negative numbers
        return str(dim) if not isinstance(dim, int) or dim >= 0 else f"(0 - {-dim})"
    operator, left, right = dim[0], dim_text(dim[1]), dim_text(dim[2])
    return f"{operator}({left}, {right})" if operator.isidentifier() else f"({left} {operator} {right})"


def contiguous_strides(sizes: Sequence[Any]) -> list[Any]:
    """The strides of a contiguous tensor. Sizes may be symbols that multiply."""
    strides, stride = [], 1
    for size in reversed(sizes):
        strides.append(stride)
        stride *= size
    return strides[::-1]


def align_of(tensor: str) -> int:
    """The alignment in a tensor's type, or 1."""
    found = re.search(r"\balign=(\d+)", tensor)
    return int(found.group(1)) if found else 1


def type_at(types: Mapping[str, Any], path: str) -> Any:
    """The type of a parameter, of an item of a tuple or of a field of a record; None for an expression.

    ``types`` are those of a signature's structure, by the parameters' names.
    """
    if not re.fullmatch(r"\w+(\.\w+|\[\d+\])*", path):
        return None
    name, *steps = re.findall(r"\w+", path)
    type = types.get(name)
    for step in steps:
        if type is None or type["kind"] not in ("tuple", "record"):
            return None
        type = type["of"][int(step) if type["kind"] == "tuple" else type["fields"].index(step)]
    return type


def with_parameter(text: str, stated: str, own: str) -> str:
    """A signature's text with another parameter, such as ``x: Tensor([n], float32)``, in place of the stated one."""
    return re.sub(rf"(?<![\w.$]){re.escape(stated)}", lambda _: own, text, count=1)


def with_numbers(extents: Iterable[str], values: Mapping[str, Any], own: Iterable[str]) -> list[str]:
    """Extents with the integers among these values in the place of their names. A name of the signature's own stays."""
    own = set(own)
    numbers = {name: str(of) for name, of in values.items() if type(of) is int and name not in own}
    return [re.sub(r"(?<![\w.])[A-Za-z_]\w*\b", lambda name: numbers.get(name[0], name[0]), of) for of in extents]
