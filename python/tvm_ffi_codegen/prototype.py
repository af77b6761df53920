"""C functions of native kernels: how a wrapper calls them, and their prototypes."""

from __future__ import annotations

from dataclasses import dataclass

from . import _check
from ._native import decode, function

_prototype = function("kernel_prototype")

#: The native library's kernel for a symbol, from its name and :attr:`Call.native`.
symbol_kernel = function("kernel_symbol")


@dataclass(frozen=True)
class CParameter:
    """A parameter of a kernel's C function."""

    #: The name in the prototype.
    name: str
    #: The type in C.
    type: str
    #: The value that is passed, in words: ``x.data``, or ``n, from x.shape[0]``.
    source: str
    #: Identifies the parameter, independently of its name in C: ``a.value``, ``x.data``, ``s.size``, ``->.data`` of the
    #: result, ``n`` for a symbol of dimensions.
    key: str


@dataclass(frozen=True)
class Prototype:
    """The prototype of a kernel's C function."""

    #: The prototype in C.
    text: str
    #: The parameters, in order.
    parameters: tuple[CParameter, ...]
    #: The C type that it returns; None is ``void``.
    returns: str | None

    def __str__(self) -> str:
        return self.text


class Call:
    """How a wrapper calls a native kernel."""

    def __init__(self, convention: object, returns: object, args: object = None) -> None:
        listed = None if args is None else _check.texts("args", args)
        stated = {
            "convention": _check.optional_text("convention", convention),
            "returns": _check.optional_text("returns", returns),
            "args": listed,
        }
        #: The arguments for the native library.
        self.native = (stated["convention"], stated["returns"], None if listed is None else ", ".join(listed))
        #: The stated parts, by the names of the options of :class:`Kernel`'s constructors.
        self.stated = {name: value for name, value in stated.items() if value is not None}


def prototype_of(signature: object, kernel: object) -> Prototype:
    """The prototype that a kernel's C function must have for a signature. Both are the native library's objects."""
    parts = decode(_prototype(signature, kernel))
    parameters = tuple(CParameter(**parameter) for parameter in parts["params"])
    return Prototype(parts["text"], parameters, parts["returns"])
