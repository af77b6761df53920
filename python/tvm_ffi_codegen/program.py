"""Files of host text: several functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from . import _check
from ._native import decode, function
from .compiled import CompiledFunction
from .library import Library
from .signature import Signature, SourceLocation

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._options import LibraryOptions

_program = function("program")
_program_text = function("program_text")
_program_json = function("program_json")
_program_compile = function("program_compile")


class Program:
    """The functions of a host text, made by :func:`program`. Compile them in this process, or make a library."""

    __slots__ = ("_docs", "_given", "_native", "c_functions", "globals", "signatures")

    def __init__(self, _native: object, _given: tuple[str, dict[str, bytes], list[bytes]]) -> None:
        parts = decode(_program_json(_native))
        self._native, self._given = _native, _given
        #: The signatures of the functions, in order.
        self.signatures: tuple[Signature, ...] = tuple(map(_signature, parts["functions"]))
        self._docs: list[str | None] = [of["doc"] for of in parts["functions"]]
        #: The signatures of the C functions, which a library exports under their own names.
        self.c_functions: tuple[Signature, ...] = tuple(map(_signature, parts["c_functions"]))
        #: The functions that a library registers as global functions: pairs of the function and its global name.
        self.globals: tuple[tuple[str, str], ...] = tuple((of, name) for of, name in parts["globals"])

    def compile(self, *, backend: str | None = None, opt_level: str | None = None) -> dict[str, CompiledFunction]:
        """Compiles the functions together in this process, and returns them by their names.

        The symbols of kernels and callees are looked up in the text, in the program's objects, and in the process. Each
        function keeps the code of all. C functions aren't compiled, and no global function is registered.

        Mistakes of names, types and ownership are raised together as one :class:`KernelError`. ``backend`` and
        ``opt_level`` are those of :class:`Library`.
        """
        backend, opt_level = _check.optional_text("backend", backend), _check.optional_text("opt_level", opt_level)
        compiled = _program_compile(self._native, self._given[2], backend, opt_level)
        functions = zip(compiled, self.signatures, self._docs)
        return {of.name: CompiledFunction._of(function, of, doc) for function, of, doc in functions}

    def library(self, **options: Unpack[LibraryOptions]) -> Library:
        """A library of the functions, with the program's objects. ``options`` are those of :class:`Library`."""
        names = [of.name for of in (*self.signatures, *self.c_functions)]
        return Library(**options)._add_program(self._native, names, self._given[2])

    def __str__(self) -> str:
        """The text in its canonical form, with its comments."""
        return str(_program_text(self._native))

    def __reduce__(self) -> tuple[Any, ...]:
        return _read, self._given

    def __copy__(self) -> Program:
        return self

    def __deepcopy__(self, memo: object) -> Program:
        return self

    def __repr__(self) -> str:
        return f"<Program of {', '.join(of.name for of in self.signatures) or 'no functions'}>"


def program(text: str, *, images: Mapping[str, bytes] | None = None, objects: bytes | Iterable[bytes] = ()) -> Program:
    """Parses a host text with several functions (``docs/reference/host-text.md``).

    ``images`` are those that its launches may use, by names. ``objects`` are relocatable objects and archives with the
    C functions of its kernels, and with functions that its bodies call by symbol.

    Mistakes of the text's grammar and signatures are raised together as one :class:`KernelError`. Its ``errors`` have
    line, column and span.
    """
    return _read(_check.text("text", text), _check.images("images", images), _check.several_data("objects", objects))


def _read(text: str, images: dict[str, bytes], objects: list[bytes]) -> Program:
    return Program(_program(text, list(images), list(images.values())), (text, images, objects))


def _signature(of: dict[str, Any]) -> Signature:
    locations = {at["part"]: SourceLocation(at["file"], at["line"], at["function"]) for at in of["locations"]}
    return Signature(of["text"], locations=locations)
