"""Signatures: the parameters, result and constraints of functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from . import _check
from ._native import decode, encode, function
from ._text import ESCAPES
from .prototype import Call, Prototype, prototype_of, symbol_kernel

_signature = function("signature")
_signature_json = function("signature_json")


@dataclass(frozen=True)
class SourceLocation:
    """A line of the compiler's own source. The function's errors show it at their end."""

    #: The file's name, as the error shows it.
    file: str
    #: The line, from 1.
    line: int
    #: The name of the function in that file.
    function: str


@dataclass(frozen=True)
class Parameter:
    """A parameter that callers pass."""

    #: The name.
    name: str
    #: The type in the text form.
    type: str
    #: The default in the text form (``None``, ``True``, ``1.5``, ``"text"``); None if the parameter has no default.
    default: str | None
    #: True if callers pass the parameter by name only.
    keyword_only: bool = False
    #: How the function uses the parameter's tensors: ``"in"``, ``"out"`` or ``"inout"``. None if the type has
    #: no tensor, or if no tensor of the signature is marked ``out=True`` or ``inout=True``.
    access: str | None = None


class Signature:
    """A function's name, parameters, result and constraints.

    The text form is described in ``docs/reference/signatures.md``: ``saxpy(a: float32, x: Tensor([n], float32), y:
    Tensor([n], float32))``. ``locations`` are the source locations of its parts: of ``"signature"``, ``"result"``, the
    parameters by their names, and ``"where[0]"``. Errors are raised together as one :class:`SignatureError`.
    """

    __slots__ = ("_info", "_native", "_locations")

    def __init__(self, text: str, *, locations: Mapping[str, SourceLocation] | None = None) -> None:
        self._locations = {
            _check.text("locations", part): _check.instance(f"locations[{part!r}]", location, SourceLocation, "a tvm_ffi_codegen.SourceLocation")
            for part, location in _check.mapping("locations", locations, "Locations by parts").items()
        }
        stated = [
            {"part": part, "file": location.file, "line": location.line, "function": location.function}
            for part, location in self._locations.items()
        ]
        self._native = _signature(_check.text("text", text), encode(stated) if stated else "")
        self._info: dict[str, Any] | None = None

    @staticmethod
    def build(
        name: str,
        parameters: Mapping[str, Any],
        *,
        defaults: Mapping[str, object] | None = None,
        keyword_only: str | None = None,
        returns: Any = None,
        where: Iterable[str] = (),
        locations: Mapping[str, SourceLocation] | None = None,
    ) -> Signature:
        """A signature from its parts. ``parameters`` maps the parameters' names to types in the text form, in order.

        A dtype of NumPy, PyTorch, JAX or ``tvm_ffi`` stands for the scalar of its name. ``defaults`` are None, bools,
        numbers (including NumPy's), strings, dtypes and devices. A string names a dtype or device if the parameter has
        that type. ``keyword_only`` is the first parameter that callers pass by name only. ``returns`` is the result's
        type, like those of parameters; None if the function returns nothing. ``where`` are constraints in the text
        form, and ``locations`` are those of :class:`Signature`.
        """
        name = _check.text("name", name)
        types = {
            _check.text("parameters", of): _check.type_text(f"parameters[{of!r}]", type)
            for of, type in _check.mapping("parameters", parameters, "types by names").items()
        }
        defaults = _check.mapping("defaults", defaults, "values by names")
        unknown = [of for of in defaults if of not in types]
        if unknown:
            raise ValueError(f"unknown parameter `{unknown[0]}` with a default")
        if keyword_only is not None and keyword_only not in types:
            raise ValueError(f"unknown keyword-only parameter `{keyword_only}`")
        listed = [
            ("*, " if of == keyword_only else "")
            + f"{of}: {type}"
            + (f" = {_text(_check.default(f'defaults[{of!r}]', defaults[of]))}" if of in defaults else "")
            for of, type in types.items()
        ]
        text = f"{name}({', '.join(listed)})"
        if returns is not None:
            text += f" -> {_check.type_text('returns', returns)}"
        constraints = ", ".join(_check.texts("where", where))
        if constraints:
            text += f" where {constraints}"
        return Signature(text, locations=locations)

    def _parts(self) -> dict[str, Any]:
        if self._info is None:
            parts: dict[str, Any] = decode(_signature_json(self._native))
            self._info = parts
        return self._info

    @property
    def text(self) -> str:
        """The text form. Parsing it gives the same signature."""
        text: str = self._parts()["text"]
        return text

    @property
    def name(self) -> str:
        """The function's name."""
        name: str = self._parts()["name"]
        return name

    @property
    def symbol(self) -> str:
        """The C symbol of the function: ``__tvm_ffi_<name>``."""
        symbol: str = self._parts()["symbol"]
        return symbol

    @property
    def dim_vars(self) -> list[str]:
        """The variables of the dimensions, in order of appearance."""
        names: list[str] = self._parts()["dim_vars"]
        return names

    @property
    def parameters(self) -> list[Parameter]:
        """The parameters that callers pass, in order."""
        return [
            Parameter(
                of["name"],
                of["type"],
                _text(of["default"]) if "default" in of else None,
                of.get("keyword_only", False),
                of.get("access"),
            )
            for of in self._parts()["parameters"]
        ]

    @property
    def arity(self) -> tuple[int, int]:
        """The minimum and maximum number of arguments."""
        least, most = self._parts()["arity"]
        return least, most

    @property
    def returns(self) -> str | None:
        """The result's type in the text form; None if the function returns nothing."""
        returns: str | None = self._parts()["returns"]
        return returns

    @property
    def where(self) -> list[str]:
        """The constraints in the text form."""
        constraints: list[str] = self._parts()["where"]
        return constraints

    @property
    def structure(self) -> dict[str, Any]:
        """The types, dimensions and constraints as data to compute with: ``parameters``, ``result`` and ``where``.

        A dimension is a number, a name, or an operation with its operands, such as ``["//", "n", 2]``;
        ``clib/src/structure.rs`` lists the types.
        """
        structure: dict[str, Any] = self._parts()["structure"]
        return structure

    def prototype(self, convention: str = "flat", *, returns: str | None = None) -> Prototype:
        """The prototype that a kernel's C function must have, if its name is the signature's. See
        :meth:`Kernel.prototype`. ``convention`` and ``returns`` are those of :class:`Kernel`.
        """
        kernel = symbol_kernel(self.name, *Call(convention, returns).native)
        return prototype_of(self._native, kernel)

    def __reduce__(self) -> tuple[Any, ...]:
        return _read, (self.text, self._locations)

    def __copy__(self) -> Signature:
        return self

    def __deepcopy__(self, memo: object) -> Signature:
        return self

    def __eq__(self, other: object) -> bool:
        return self.text == other.text if isinstance(other, Signature) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.text)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Signature({self.text!r})"


def _text(value: None | bool | int | float | str) -> str:
    """A default in the text form."""
    return f'"{value.translate(ESCAPES)}"' if isinstance(value, str) else str(value)


def _read(text: str, locations: dict[str, SourceLocation]) -> Signature:
    """Restores a signature from its pickled form."""
    return Signature(text, locations=locations)


def as_signature(signature: Signature | str) -> Signature:
    """Accepts a signature or its text, and returns a signature."""
    if isinstance(signature, str):
        return Signature(signature)
    return _check.instance("signature", signature, Signature, "a Signature, or its text as a str")
