"""Argument checks: each function returns the accepted value, or raises an error.

Native functions receive only values of the right types, so an error names the argument as it is written in Python.
"""

from __future__ import annotations

import ctypes
import operator
import os
import sys
from _ctypes import CFuncPtr
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar, Union

import tvm_ffi

T = TypeVar("T")

#: Extents of a launch: a number, an expression such as ``ceil_div(n, 128)``, or a sequence of up to three of them.
Extents = Union[int, str, Sequence[Union[int, str]]]


def _wrong(what: str, expected: str, value: object) -> TypeError:
    shown = repr(value)
    if len(shown) > 80:
        shown = f"{shown[:60]}... ({type(value).__name__})"
    return TypeError(f"{what}: expected {expected}, got {shown}")


def instance(what: str, value: object, of: type[T], expected: str) -> T:
    """Accepts an instance of a class."""
    if not isinstance(value, of):
        raise _wrong(what, expected, value)
    return value


def text(what: str, value: object) -> str:
    """Accepts a str."""
    return str(instance(what, value, str, "a str"))


def optional_text(what: str, value: object) -> str | None:
    """Accepts a str or None."""
    return None if value is None else text(what, value)


def integer(what: str, value: object) -> int:
    """Accepts an integer of any type except bool."""
    if not isinstance(value, bool):
        try:
            return operator.index(value)  # type: ignore[arg-type]
        except TypeError:
            pass
    raise _wrong(what, "an int", value)


def path(what: str, value: object) -> str:
    """Accepts a path."""
    try:
        return os.fsdecode(value)  # type: ignore[arg-type]
    except TypeError:
        raise _wrong(what, "a path", value) from None


def listed(what: str, values: object, items: str, check: Callable[[str, object], T]) -> list[T]:
    """Accepts several values. Refuses a str, because its characters would be taken for the values."""
    if isinstance(values, (str, bytes, bytearray, os.PathLike)) or not isinstance(values, Iterable):
        raise _wrong(what, f"a list of {items}", values)
    return [check(f"{what}[{number}]", value) for number, value in enumerate(values)]


def texts(what: str, values: object) -> list[str]:
    """Accepts several strings."""
    return listed(what, values, "str", text)


def paths(what: str, values: object) -> list[str]:
    """Accepts several paths."""
    return listed(what, values, "paths", path)


def data(what: str, value: object) -> bytes:
    """Accepts bytes."""
    if not isinstance(value, (bytes, bytearray, memoryview)):
        is_path = isinstance(value, (str, os.PathLike))
        raise _wrong(what, "bytes, as `pathlib.Path(...).read_bytes()` gives them" if is_path else "bytes", value)
    return bytes(value)


def several_data(what: str, parts: object) -> list[bytes]:
    """Accepts bytes or several of them, and returns a list."""
    if isinstance(parts, (str, os.PathLike, bytes, bytearray, memoryview)):
        return [data(what, parts)]
    return listed(what, parts, "bytes", data)


def mapping(what: str, value: object, of: str) -> Mapping[Any, Any]:
    """Accepts a mapping; None is an empty one."""
    return {} if value is None else instance(what, value, Mapping, f"a mapping of {of}")  # type: ignore[type-abstract]


def images(what: str, value: object) -> dict[str, bytes]:
    """Accepts images by names."""
    given = mapping(what, value, "bytes by names")
    return {text(what, name): data(f"{what}[{name!r}]", of) for name, of in given.items()}


def dtype_name(value: object) -> str | None:
    """The name of a dtype of ``tvm_ffi``, PyTorch, NumPy or JAX; None for other values. Imports no framework."""
    if isinstance(value, tvm_ffi.dtype):
        return str(value)
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if torch is not None and isinstance(value, torch.dtype):
        return str(value).rpartition(".")[2]
    if numpy is not None:
        # scalar classes of NumPy and JAX
        is_class = isinstance(value, type) and (
            issubclass(value, numpy.generic) or isinstance(getattr(value, "dtype", None), numpy.dtype)
        )
        if is_class or isinstance(value, numpy.dtype):
            return str(numpy.dtype(value).name)
    return None


def type_text(what: str, value: object) -> str:
    """Accepts a type in the text form, or a dtype."""
    name = dtype_name(value)
    if name is None and not isinstance(value, str):
        raise _wrong(what, 'a type as a str, such as "Tensor([n], float32)", or a dtype', value)
    return str(value) if name is None else name


def default(what: str, value: Any) -> None | bool | int | float | str:
    """Accepts a default. Converts NumPy scalars, and dtypes and devices of frameworks, to plain Python values."""
    if value is None:
        return None
    for plain in (bool, int, float, str):
        if isinstance(value, plain):
            # the `repr` of a subclass, such as `numpy.float64` or `numpy.str_`, may differ
            return plain(value)
    name = dtype_name(value)
    if name is not None:
        return name
    torch = sys.modules.get("torch")
    if isinstance(value, tvm_ffi.Device) or (torch is not None and isinstance(value, torch.device)):
        return str(value)
    if getattr(value, "shape", None) == () and hasattr(value, "item"):
        item = value.item()
        if isinstance(item, (bool, int, float, str)):
            return item
    raise _wrong(what, "None, a bool, a number, a str, a dtype or a device", value)


def extents(what: str, value: object) -> list[str]:
    """Accepts one to three extents, and returns them as strings."""
    if callable(value) and not isinstance(value, (int, str)):
        raise _wrong(
            what, "numbers or expressions such as `ceil_div(n, 1024)`, which are computed without Python", value
        )
    if isinstance(value, str) or not isinstance(value, Iterable):
        return [extent(what, value)]
    all = [extent(f"{what}[{number}]", of) for number, of in enumerate(value)]
    if not 1 <= len(all) <= 3:
        raise ValueError(f"{what}: expected one to three extents, got {len(all)}")
    return all


def extent(what: str, value: object) -> str:
    """Accepts a number or an expression, and returns it as a string."""
    if isinstance(value, str):
        if not value.strip():
            raise ValueError(f"{what}: expected a number or an expression, got an empty str")
        return value
    try:
        return str(integer(what, value))
    except TypeError:
        raise _wrong(what, "an int, or an expression as a str such as `ceil_div(n, 1024)`", value) from None


#: The number of 64-bit addresses.
_ADDRESSES = 1 << 64


def address(what: str, value: object) -> int:
    """Accepts a number or a ``ctypes`` function as an address, and returns a signed 64-bit number."""
    if isinstance(value, (CFuncPtr, ctypes.c_void_p)):
        number = ctypes.cast(value, ctypes.c_void_p).value or 0
    else:
        try:
            number = integer(what, value)
        except TypeError:
            raise _wrong(what, "an address, which is an int or a function of ctypes", value) from None
    if not -(_ADDRESSES >> 1) <= number < _ADDRESSES:
        raise ValueError(f"{what}: expected an address of 64 bits, got {number:#x}")
    return number - _ADDRESSES if number >= _ADDRESSES >> 1 else number
