"""Functions as PyTorch operators: derives ``torch.library``'s schema, implementation and fake function from a
signature.

:func:`register` makes an operator that ``torch.compile`` keeps in the graph. Importing this module imports PyTorch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import tvm_ffi

from ._operator import REQUIRED, Operator, OperatorParameter, group
from ._dim_vars import Numbers, DimVars
from .signature import Signature

__all__ = ["TorchOperator", "register"]

#: Types in schemas by kind.
_TYPES = {
    "tensor": "Tensor", "int": "SymInt", "float": "float", "bool": "bool", "str": "str",
    "dtype": "ScalarType", "device": "Device", "shape": "SymInt[]",
}  # fmt: skip
#: Kinds that may be in a list.
_LISTED = frozenset({"tensor", "int", "float", "bool", "str"})
#: PyTorch's names of devices by kind.
_DEVICES = {"cpu": "cpu", "cuda": "cuda", "rocm": "cuda"}
#: Keeps the operators registered: each lives as long as its library.
_libraries: list[torch.library.Library] = []


class _Symbolic(Numbers):
    """Arithmetic of ``torch.SymInt``: conditions become guards, or checks at run time."""

    def minimum(self, x: Any, y: Any) -> Any:
        return torch.sym_min(x, y)

    def maximum(self, x: Any, y: Any) -> Any:
        return torch.sym_max(x, y)

    def require(self, condition: Any, message: Callable[[], str]) -> None:
        torch._check(condition, message)

    def fits(self, value: Any) -> None:
        if isinstance(value, int):
            super().fits(value)


@dataclass(frozen=True)
class TorchOperator:
    """The operators of a function. Calling it calls :attr:`mutating`."""

    #: The name, with its namespace.
    name: str
    #: ``ns::name``: the function as it is, which writes into the caller's tensors.
    mutating: torch._ops.OpOverload
    #: ``ns::name.functional``: allocates the outputs, and returns the written tensors. None if there is none.
    functional: torch._ops.OpOverload | None
    #: The reason why there is no functional operator.
    why_not_functional: str | None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.mutating(*args, **kwargs)


def register(
    source: tvm_ffi.Function | tvm_ffi.Module,
    name: str,
    signature: Signature | str | None = None,
    *,
    outputs: Iterable[str] | None = None,
    inouts: Iterable[str] | None = None,
    function: str | None = None,
) -> TorchOperator:
    """Registers a function as an operator ``namespace::name``, for as long as the process lives.

    ``source`` is a function with its ``signature``, or a module with the signature in its metadata. In a module,
    ``function`` names the function, by default the operator's name. ``outputs`` are the tensors that the function
    writes without reading, ``inouts`` those that it reads and writes. If neither is given, the signature's marks
    decide.

    The mutating operator has the function's parameters. If the function writes tensors, and the inputs determine its
    outputs, there is a functional operator. It omits ``outputs``, takes ``inouts`` as plain inputs, and returns the new
    tensors in the parameters' order, before the function's own result. Neither has a gradient: add one to the
    functional operator with ``torch.library.register_autograd``.

    Sizes are related as in the signature: under ``torch.compile`` the sizes of results are expressions of symbolic
    sizes.
    """
    namespace, separator, base = name.partition("::")
    if not separator or not namespace or not base or "." in base:
        raise ValueError(f"expected a name with its namespace, such as `mylib::saxpy`, got {name!r}")
    of = Operator.of(source, function or base, signature, outputs, inouts)
    library = torch.library.Library(namespace, "FRAGMENT")
    _libraries.append(library)
    mutating = _Mutating(of)
    mutating.define(library, name)
    packet = getattr(getattr(torch.ops, namespace), base)
    why_not = "the function writes no tensors" if not of.written else of.why_outputs_are_open()
    if why_not is None:
        _Functional(of).define(library, f"{name}.functional")
    return TorchOperator(name, packet.default, packet.functional if why_not is None else None, why_not)


class _Form:
    """One of a function's two operators."""

    def __init__(self, of: Operator) -> None:
        self.of = of
        self.results = [] if of.result is None else of.result["of"] if of.result["kind"] == "tuple" else [of.result]
        for number, result in enumerate(self.results):
            if result["kind"] == "tensor" and (result["shape"] is None or result["dtype"] == "any"):
                raise TypeError(f"`{of.name}` returns a tensor whose rank or dtype is open")
            if result["kind"] != "tensor":
                path = "result" if of.result is result else f"result[{number}]"
                raise TypeError(
                    f"`{of.name}` returns {self.described(result)} (`{path}`), which a graph of PyTorch can't know "
                    "before it runs: write it into a tensor"
                )

    @property
    def parameters(self) -> list[OperatorParameter]:
        """The operator's parameters."""
        return self.of.parameters

    def returns(self) -> list[str]:
        return ["Tensor"] * len(self.results)

    def run(self, values: dict[str, Any]) -> Any:
        raise NotImplementedError

    def fake(self, values: dict[str, Any]) -> Any:
        raise NotImplementedError

    @staticmethod
    def described(type: Mapping[str, Any]) -> str:
        name: str = type.get("name", type["kind"])
        return name

    def define(self, library: torch.library.Library, name: str) -> None:
        """Registers the operator: its schema, implementation and fake function."""
        base = name.partition("::")[2]
        parameters = [
            _schema(self.of.name, of, number, self.is_written(of)) for number, of in enumerate(self.parameters)
        ]
        returns = self.returns()
        returned = returns[0] if len(returns) == 1 else f"({', '.join(returns)})"
        tags = [torch.Tag.pt2_compliant_tag]
        if hasattr(torch.Tag, "needs_exact_strides"):
            tags.append(torch.Tag.needs_exact_strides)
        library.define(f"{base}({', '.join(parameters)}) -> {returned}", tags=tuple(tags))
        bind = self.binder()

        def run(*args: Any, **kwargs: Any) -> Any:
            return self.run(bind(args, kwargs))

        def fake(*args: Any, **kwargs: Any) -> Any:
            return self.fake(bind(args, kwargs))

        # PyTorch takes the implementation for a device from the tensors among the arguments
        has_tensor = any(of.plain["kind"] == "tensor" and of.default is REQUIRED for of in self.parameters)
        for key in ("CPU", "CUDA") if has_tensor else ("CompositeExplicitAutograd",):
            library.impl(base, run, key)
        torch.library.register_fake(name, fake, lib=library)

    def is_written(self, of: OperatorParameter) -> bool:
        raise NotImplementedError

    def binder(self) -> Callable[[Sequence[Any], Mapping[str, Any]], dict[str, Any]]:
        """Reads the parameters' values by name. PyTorch omits arguments that are equal to their defaults."""
        order = [of.name for of in self.parameters]
        defaults = {of.name: _default(self.of.name, of) for of in self.parameters if of.default is not REQUIRED}
        stand_for_none = [of.name for of in self.parameters if of.default is not REQUIRED and not _in_schema(of)]

        def bind(args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
            values = {**defaults, **dict(zip(order, args)), **kwargs}
            for name in stand_for_none:
                if values[name] is None:
                    values[name] = defaults[name]
            return values

        return bind

    def dim_vars(self, values: dict[str, Any], numbers: Numbers) -> DimVars:
        return self.of.dim_vars(numbers, values, lambda tensor: tensor.stride())

    def call(self, values: dict[str, Any]) -> list[Any]:
        """Calls the function with all its arguments, and returns its results."""
        result = self.of.function(*[_passed(values[of.name]) for of in self.of.parameters])
        if not self.results:
            return []
        several = result if self.of.result is not self.results[0] else [result]
        return [of if isinstance(of, torch.Tensor) else torch.from_dlpack(of) for of in several]

    def empty(self, dim_vars: DimVars, type: Mapping[str, Any], values: dict[str, Any], path: str) -> torch.Tensor:
        """An uninitialised tensor of a type."""
        sizes = self.of.sizes(dim_vars, type, path)
        dtype, device = type["dtype"], self.device(type["device"], values, path)
        dtype = values[dtype["parameter"]] if isinstance(dtype, dict) else _dtype(self.of.name, dtype)
        if isinstance(type["strides"], list):
            strides = [dim_vars.compute(dim) for dim in type["strides"]]
            if None not in strides:
                return torch.empty_strided(sizes, strides, dtype=dtype, device=device)
        return torch.empty(sizes, dtype=dtype, device=device)

    def device(self, stated: Any, values: dict[str, Any], path: str) -> torch.device:
        if isinstance(stated, dict) and "parameter" in stated:
            return torch.device(values[stated["parameter"]])
        if isinstance(stated, dict) and isinstance(stated["id"], int):
            return torch.device(_kind(self.of.name, stated), stated["id"])
        near = self.of.place(values, stated)
        if near is not None:
            return near.device
        if stated == "any":
            raise ValueError(f"no argument of `{self.of.name}` tells the device of `{path}`")
        return torch.device(_kind(self.of.name, stated))


class _Mutating(_Form):
    """The operator that calls the function as it is."""

    def is_written(self, of: OperatorParameter) -> bool:
        return of.is_written

    def run(self, values: dict[str, Any]) -> Any:
        results = self.call(values)
        for of in self.of.written:
            _touch(values[of.name])
        return _returned(results)

    def fake(self, values: dict[str, Any]) -> Any:
        dim_vars = self.dim_vars(values, _Symbolic())
        return _returned([self.empty(dim_vars, of, values, "result") for of in self.results])


class _Functional(_Form):
    """The operator that allocates the function's outputs."""

    @property
    def parameters(self) -> list[OperatorParameter]:
        return [of for of in self.of.parameters if of.access != "out"]

    def returns(self) -> list[str]:
        written = ["Tensor?" if of.type["kind"] == "optional" else "Tensor" for of in self.of.written]
        return [*written, *super().returns()]

    def is_written(self, of: OperatorParameter) -> bool:
        return False

    def run(self, values: dict[str, Any]) -> Any:
        self.prepare(values, self.dim_vars(values, Numbers()))
        results = self.call(values)
        return _returned([*(values[of.name] for of in self.of.written), *results])

    def fake(self, values: dict[str, Any]) -> Any:
        dim_vars = self.dim_vars(values, _Symbolic())
        self.prepare(values, dim_vars)
        results = [self.empty(dim_vars, of, values, "result") for of in self.results]
        return _returned([*(values[of.name] for of in self.of.written), *results])

    def prepare(self, values: dict[str, Any], dim_vars: DimVars) -> None:
        """Adds the outputs to the arguments, and replaces the caller's inouts with copies."""
        for of in self.of.written:
            if of.access == "out":
                values[of.name] = self.empty(dim_vars, of.type, values, of.name)
            elif values[of.name] is not None:
                values[of.name] = values[of.name].clone()


def _passed(value: Any) -> Any:
    """Converts PyTorch's devices, which the TVM FFI doesn't know."""
    return tvm_ffi.device(value.type, value.index or 0) if isinstance(value, torch.device) else value


def _returned(results: list[Any]) -> Any:
    """The results as PyTorch's operators return them."""
    return None if not results else results[0] if len(results) == 1 else tuple(results)


def _touch(value: Any) -> None:
    """Tells autograd that a tensor was written."""
    tensors = value if isinstance(value, (list, tuple)) else [value]
    for tensor in tensors:
        if isinstance(tensor, torch.Tensor) and not tensor.is_inference():
            torch.autograd.graph.increment_version(tensor)


def _schema(function: str, of: OperatorParameter, number: int, is_written: bool) -> str:
    """A parameter in the syntax of schemas."""
    type = _type(function, of, of.plain)
    if is_written:
        type = type.replace("Tensor", f"Tensor(a{number}!)", 1)
    if of.type["kind"] == "optional" or (of.default is not REQUIRED and not _in_schema(of)):
        type += "?"
    if of.default is REQUIRED:
        return f"{type} {of.name}"
    if of.type["kind"] == "optional" and not _in_schema(of):
        raise TypeError(
            f"the default of `{of.name}` of `{function}` has no form in PyTorch's schemas, where None stands for itself"
        )
    default = of.default if _in_schema(of) else None
    return f"{type} {of.name}={_text(default)}"


def _type(function: str, of: OperatorParameter, type: Mapping[str, Any]) -> str:
    kind = group(type)
    if kind in _TYPES:
        return _TYPES[kind]
    if kind == "array" and group(type["of"][0]) in _LISTED:
        return f"{_TYPES[group(type['of'][0])]}[]"
    raise TypeError(
        f"`{of.name}` of `{function}` is of a kind that PyTorch's schemas don't have: {_Form.described(type)}"
    )


def _in_schema(of: OperatorParameter) -> bool:
    """True if a schema can express the default. Otherwise the schema has None, and the operator fills in the value."""
    if of.default is None or isinstance(of.default, (bool, int)):
        return True
    if isinstance(of.default, float) or group(of.plain) == "float":
        return math.isfinite(float(of.default))
    return group(of.plain) == "str" and of.default.isprintable() and not set(of.default) & set('"\\')


def _text(default: Any) -> str:
    return f'"{default}"' if isinstance(default, str) else repr(default)


def _default(function: str, of: OperatorParameter) -> Any:
    """A default as a PyTorch value."""
    kind = group(of.plain)
    if of.default is None:
        return None
    if kind == "float":
        return float(of.default)
    if kind == "dtype":
        return _dtype(function, of.default)
    return torch.device(_device_text(of.default)) if kind == "device" else of.default


def _device_text(text: str) -> str:
    kind, separator, number = text.partition(":")
    return f"{_DEVICES.get(kind, kind)}{separator}{number}"


def _dtype(function: str, name: str) -> torch.dtype:
    dtype = getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype):
        raise TypeError(f"`{function}` uses {name}, which PyTorch has no dtype for")
    return dtype


def _kind(function: str, device: Mapping[str, Any]) -> str:
    if device["kind"] not in _DEVICES:
        raise TypeError(f"`{function}` has a tensor on {device['kind']}, where this module makes none")
    return _DEVICES[device["kind"]]
