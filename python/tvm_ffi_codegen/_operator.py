"""A function as frameworks see it: its parameters, the tensors that it writes, and the sizes of its outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tvm_ffi

from . import _check
from ._dim_vars import Numbers, DimVars, names
from ._structure import contiguous_strides
from .compiled import CompiledFunction
from .functions import of_module
from .signature import Signature, as_signature

#: Stands for the default of a parameter without one.
REQUIRED: Any = object()

_INTEGERS = frozenset(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
_FLOATS = frozenset({"float16", "bfloat16", "float32", "float64"})


@dataclass(frozen=True)
class OperatorParameter:
    """A parameter that callers pass."""

    #: The name.
    name: str
    #: The type, as in ``Signature.structure``.
    type: dict[str, Any]
    #: The default, as in the metadata, or :data:`REQUIRED`.
    default: Any
    #: How the function uses the parameter's tensors: ``in``, ``out`` or ``inout``.
    access: str

    @property
    def is_written(self) -> bool:
        return self.access != "in"

    @property
    def plain(self) -> dict[str, Any]:
        """The type, without the ``Optional`` around it."""
        return self.type["of"][0] if self.type["kind"] == "optional" else self.type


def group(type: Mapping[str, Any]) -> str:
    """The kind of a type. Scalars are ``int``, ``float``, ``bool`` or ``handle``."""
    if type["kind"] != "scalar":
        kind: str = type["kind"]
        return kind
    name = type["name"]
    return "int" if name in _INTEGERS else "float" if name in _FLOATS else name


class Operator:
    """A function with its signature, ready to become an operator of a framework."""

    def __init__(
        self,
        function: tvm_ffi.Function,
        signature: Signature,
        outputs: Iterable[str] | None,
        inouts: Iterable[str] | None,
    ) -> None:
        self.function = function
        self.signature = signature
        outputs, inouts = (
            None if of is None else _check.texts(what, of) for what, of in (("outputs", outputs), ("inouts", inouts))
        )
        self.name = signature.name
        structure = signature.structure
        self.result: dict[str, Any] | None = structure["result"]
        self.where: list[list[Any]] = structure["where"]
        if self.result is not None and self.result["kind"] == "none":
            self.result = None
        parts = signature._parts()["parameters"]
        access = _access(signature, structure["parameters"], parts, outputs, inouts)
        self.parameters = [
            OperatorParameter(of["name"], of["type"], part.get("default", REQUIRED), access[of["name"]])
            for of, part in zip(structure["parameters"], parts)
        ]

    @staticmethod
    def of(
        source: tvm_ffi.Function | tvm_ffi.Module,
        name: str,
        signature: Signature | str | None,
        outputs: Iterable[str] | None,
        inouts: Iterable[str] | None,
    ) -> Operator:
        """The operator for a function, or for a module's function by name.

        The default signature is that of the module's metadata or of the :class:`CompiledFunction`.
        """
        if isinstance(source, tvm_ffi.Module):
            if signature is None:
                signature = of_module(source, name).signature
            source = source.get_function(name)
        if signature is None and isinstance(source, CompiledFunction):
            signature = source.signature
        if signature is None:
            raise ValueError(
                f"a bare tvm_ffi.Function has no signature: pass signature= for `{name}`, or the module that defines it"
            )
        return Operator(source, as_signature(signature), outputs, inouts)

    @property
    def outputs(self) -> list[OperatorParameter]:
        """The parameters with tensors that the function writes without reading."""
        return [of for of in self.parameters if of.access == "out"]

    @property
    def written(self) -> list[OperatorParameter]:
        """The parameters with tensors that the function writes."""
        return [of for of in self.parameters if of.is_written]

    def why_outputs_are_open(self) -> str | None:
        """The reason why the inputs don't determine the outputs' tensors; None if they do."""
        known = {name for of in self.parameters if of.access != "out" for name in _names_of(of.type)}
        known |= {of.name for of in self.parameters if group(of.type) == "int"}
        for of in self.outputs:
            if of.type["kind"] != "tensor":
                return f"`{of.name}` isn't a plain tensor"
            unknown = sorted(_names_of(of.type) - known)
            if of.type["shape"] is None:
                return f"the rank of `{of.name}` is open"
            if of.type["dtype"] == "any":
                return f"the dtype of `{of.name}` is open"
            if unknown:
                return f"no input has `{unknown[0]}`, a size of `{of.name}`"
        return None

    def dim_vars(
        self,
        numbers: Numbers,
        values: Mapping[str, Any],
        strides_of: Callable[[Any], Sequence[Any]] | None = None,
    ) -> DimVars:
        """The dim_vars of a call. ``values`` are the values of parameters by name; outputs may be missing.

        Without ``strides_of``, all tensors are contiguous.
        """
        integers = {of.name: values[of.name] for of in self.parameters if group(of.type) == "int" and of.name in values}
        dim_vars = DimVars(numbers, integers)
        for of in self.parameters:
            if of.name in values:
                _match(dim_vars, of.type, values[of.name], of.name, strides_of, may_defer=True)
        dim_vars.settle()
        dim_vars.constrain(self.where)
        return dim_vars

    def sizes(self, dim_vars: DimVars, type: Mapping[str, Any], path: str) -> list[Any]:
        """The sizes of a tensor that is allocated for a call."""
        sizes = [dim_vars.compute(dim) for dim in type["shape"]]
        if None in sizes:
            raise ValueError(f"the arguments of `{self.name}` don't determine the sizes of `{path}`")
        return sizes

    def place(self, values: Mapping[str, Any], device: Any) -> Any:
        """The first tensor among the arguments with this device in its type; None if there is none."""
        for of in self.parameters:
            value = values.get(of.name)
            if of.plain["kind"] == "tensor" and value is not None and of.plain["device"] == device:
                return value
        return None


def _access(
    signature: Signature,
    parameters: list[dict[str, Any]],
    parts: list[dict[str, Any]],
    outputs: Iterable[str] | None,
    inouts: Iterable[str] | None,
) -> dict[str, str]:
    """How the function uses each parameter, as stated, or as marked in the signature."""
    have_tensors = [of["name"] for of in parameters if _has_tensor(of["type"])]
    access = {of["name"]: "in" for of in parameters}
    if outputs is None and inouts is None:
        marks = {of["name"]: of["access"] for of in parts if "access" in of}
        if not marks and have_tensors:
            raise ValueError(
                f"nothing says which tensors `{signature.name}` writes: mark them in the signature (`out=True`, "
                "`inout=True`), or give `outputs` and `inouts`, which may be empty"
            )
        return {**access, **marks}
    for stated, value in ((outputs, "out"), (inouts, "inout")):
        if isinstance(stated, str):
            raise TypeError(f"expected a list of names, got {stated!r}")
        for name in stated or ():
            if name not in have_tensors:
                raise ValueError(
                    f"`{name}` isn't a tensor of `{signature.name}`; its tensors are {', '.join(have_tensors) or 'none'}"
                )
            if access[name] != "in":
                raise ValueError(f"`{name}` is named twice among the tensors that are written")
            access[name] = value
    return access


def _has_tensor(type: Mapping[str, Any]) -> bool:
    return type["kind"] == "tensor" or any(_has_tensor(inner) for inner in type.get("of", ()))


def _names_of(type: Mapping[str, Any]) -> set[str]:
    """The names in a type's dimensions."""
    strides = type.get("strides")
    dims = [*(type.get("shape") or ()), *(strides if isinstance(strides, list) else ())]
    return {name for dim in dims for name in names(dim)}.union(*(_names_of(inner) for inner in type.get("of", ())))


def _match(
    dim_vars: DimVars,
    type: Mapping[str, Any],
    value: Any,
    path: str,
    strides_of: Callable[[Any], Sequence[Any]] | None,
    may_defer: bool,
) -> None:
    """Matches a value's sizes and strides with its type."""
    kind = type["kind"]
    if kind == "optional":
        if value is not None:
            _match(dim_vars, type["of"][0], value, path, strides_of, may_defer)
    elif kind == "tuple":
        for number, (inner, item) in enumerate(zip(type["of"], value)):
            _match(dim_vars, inner, item, f"{path}[{number}]", strides_of, may_defer)
    elif kind in ("array", "list"):
        for number, item in enumerate(value):
            _match(dim_vars, type["of"][0], item, f"{path}[{number}]", strides_of, may_defer=False)
    elif kind in ("tensor", "shape") and type["shape"] is not None:
        sizes = value.shape if kind == "tensor" else value
        if len(sizes) != len(type["shape"]):
            raise ValueError(f"expected {len(type['shape'])} dimensions for `{path}`, got {len(sizes)}")
        entry = f"{path}.shape" if kind == "tensor" else path
        for number, (dim, size) in enumerate(zip(type["shape"], sizes)):
            dim_vars.match(dim, size, f"{entry}[{number}]", may_defer=may_defer)
        if kind == "tensor" and isinstance(type["strides"], list):
            strides = contiguous_strides(sizes) if strides_of is None else strides_of(value)
            for number, (dim, stride) in enumerate(zip(type["strides"], strides)):
                _match_stride(dim_vars, dim, sizes, stride, f"{path}.strides[{number}]", number, may_defer)


def _match_stride(
    dim_vars: DimVars, dim: Any, sizes: Sequence[Any], stride: Any, path: str, number: int, may_defer: bool
) -> None:
    # a dimension of size 1 may have any stride, and still gives a bare variable its value (C10.18)
    is_excused = sizes[number] == 1 or any(size == 0 for size in sizes)
    is_first = isinstance(dim, str) and dim not in dim_vars.values
    if is_first or not is_excused:
        dim_vars.match(dim, stride, path, is_stride=True, may_defer=may_defer)
