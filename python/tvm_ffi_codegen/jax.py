"""Functions in JAX: derives XLA custom calls from a signature, with ``jax_tvm_ffi``.

:func:`register` makes a function of arrays, for use under ``jax.jit``. Importing this module imports JAX and
``jax_tvm_ffi``.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import jax_tvm_ffi
import numpy as np
import tvm_ffi

from ._native import function as native
from ._operator import REQUIRED, Operator, OperatorParameter, group
from ._dim_vars import Numbers, DimVars
from .signature import Signature

__all__ = ["register"]

_rearranged = native("rearranged")

#: The types of attributes by kind. XLA passes 64 bits, even if JAX's default is 32.
_ATTRIBUTES: dict[str, Callable[[Any], Any]] = {"int": np.int64, "float": np.float64, "bool": np.bool_, "str": str}
#: The alignment of ``jax_tvm_ffi``'s allocations in a workspace.
_ALIGNMENT = 128


def register(
    source: tvm_ffi.Function | tvm_ffi.Module,
    name: str,
    signature: Signature | str | None = None,
    *,
    outputs: Iterable[str] | None = None,
    inouts: Iterable[str] | None = None,
    function: str | None = None,
    platform: str = "cpu",
    allow_cuda_graph: bool = False,
    **options: Any,
) -> Callable[..., Any]:
    """Turns a function into a Python function of arrays. Its calls are XLA custom calls with the target ``name``.

    ``source`` is a function with its ``signature``, or a module with the signature in its metadata. In a module,
    ``function`` names the function, by default ``name``. ``outputs`` are the tensors that the function writes without
    reading, ``inouts`` those that it reads and writes. If neither is given, the signature's marks decide.

    The Python function has the signature's parameters without the outputs, with keywords and defaults. Tensors are
    arrays. All other arguments are static, and part of the compiled call. It returns the written tensors in the
    parameters' order, then the function's own tensors: an array, or a tuple of several. An array that is read and
    written is the caller's own memory if XLA may use that (``jax.jit(donate_argnums=...)``), and otherwise a copy.

    ``platform`` is ``cpu`` or ``gpu``. ``options`` are those of ``jax.ffi.ffi_call``, such as
    ``vmap_method="sequential"``. ``allow_cuda_graph=True`` lets XLA capture the call in a CUDA graph.
    """
    of = Operator.of(source, function or name, signature, outputs, inouts)
    why = of.why_outputs_are_open()
    if why is not None:
        raise ValueError(f"XLA allocates what `{of.name}` writes, and {why}")
    return _Target(of, name, platform, allow_cuda_graph, options).callable()


class _Target:
    """The custom calls of a function.

    A target contains the arguments that XLA can't pass, so each combination of them has its own target.
    """

    def __init__(
        self, of: Operator, name: str, platform: str, allow_cuda_graph: bool, options: Mapping[str, Any]
    ) -> None:
        self.of = of
        self.name = name
        self.platform = platform
        self.allow_cuda_graph = allow_cuda_graph
        self.options = {"vmap_method": None, **options}
        self.inputs = [of for of in of.parameters if of.access != "out"]
        result = of.result
        self.results = [] if result is None else result["of"] if result["kind"] == "tuple" else [result]
        for result in self.results:
            if result["kind"] != "tensor" or result["shape"] is None or result["dtype"] == "any":
                raise TypeError(
                    f"`{of.name}` doesn't return a tensor of known rank and dtype, as XLA requires"
                )
        for parameter in of.parameters:
            if parameter.plain["kind"] != "tensor" and parameter.is_written:
                raise TypeError(f"`{parameter.name}` of `{of.name}` holds tensors, and XLA writes into arrays alone")
        self._names: dict[Any, str] = {}
        self._lock = threading.Lock()

    def callable(self) -> Callable[..., Any]:
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        signature = inspect.Signature(
            [
                inspect.Parameter(
                    of.name, kind, default=inspect.Parameter.empty if of.default is REQUIRED else _default(of)
                )
                for of in self.inputs
            ]
        )

        def call(*args: Any, **kwargs: Any) -> Any:
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            return self.call(bound.arguments)

        call.__name__ = call.__qualname__ = self.of.name
        call.__doc__ = self.of.signature.text
        call.__signature__ = signature  # type: ignore[attr-defined]
        return call

    def call(self, values: dict[str, Any]) -> Any:
        arrays: list[Any] = []
        attributes: dict[str, Any] = {}
        constants: dict[str, Any] = {}
        places: dict[str, int] = {}
        for of in self.inputs:
            value, kind = values[of.name], group(of.plain)
            if kind == "tensor" and value is not None:
                places[of.name] = len(arrays)
                values[of.name] = jnp.asarray(value)
                arrays.append(values[of.name])
                continue
            if isinstance(value, jax.core.Tracer):
                raise TypeError(
                    f"`{of.name}` of `{self.of.name}` isn't a tensor, so it has to be known when the call is "
                    "compiled"
                )
            if kind in _ATTRIBUTES and value is not None:
                attributes[of.name] = _ATTRIBUTES[kind](value)
            else:
                constants[of.name] = _constant(self.of.name, of, value)
        dim_vars = self.of.dim_vars(Numbers(), values)
        shapes = []
        aliases = {}
        written = [of for of in self.of.written if of.access == "out" or of.name in places]
        for number, of in enumerate(written):
            if of.access == "inout":
                aliases[places[of.name]] = number
                shapes.append(jax.ShapeDtypeStruct(values[of.name].shape, values[of.name].dtype))
            else:
                shapes.append(self.shape(dim_vars, of.type, of.name, constants))
        results = [self.shape(dim_vars, of, "result", constants) for of in self.results]
        workspace = _Workspace(results)
        if results:
            shapes.append(workspace.shape)
        target = self.target(list(places), [of.name for of in written], list(attributes), constants)
        returned = jax.ffi.ffi_call(target, shapes, input_output_aliases=aliases, **self.options)(*arrays, **attributes)
        returned = list(returned)
        if results:
            returned += workspace.results(returned.pop())
        return None if not returned else returned[0] if len(returned) == 1 else tuple(returned)

    def shape(
        self, dim_vars: DimVars, type: Mapping[str, Any], path: str, constants: Mapping[str, Any]
    ) -> jax.ShapeDtypeStruct:
        dtype = type["dtype"]
        name = constants[dtype["parameter"]] if isinstance(dtype, dict) else dtype
        return jax.ShapeDtypeStruct(tuple(self.of.sizes(dim_vars, type, path)), _dtype(self.of.name, name))

    def target(self, arrays: list[str], written: list[str], attributes: list[str], constants: dict[str, Any]) -> str:
        """The name of the target for a call with these arguments. Registers the target on first use."""
        key = (tuple(arrays), tuple(attributes), tuple((name, repr(value)) for name, value in constants.items()))
        with self._lock:
            if key not in self._names:
                name = f"{self.name}#{len(self._names)}" if self._names else self.name
                self.register(name, arrays, written, attributes, constants)
                self._names[key] = name
            return self._names[key]

    def register(
        self, name: str, arrays: list[str], written: list[str], attributes: list[str], constants: dict[str, Any]
    ) -> None:
        order = [of.name for of in self.of.parameters]
        spec = _spec(order, arrays, written, attributes)
        function = self.of.function
        if spec is None or self.results:
            # XLA passes all inputs, then all outputs. An array that is read and written is an input and an output in
            # the same memory; the function gets the output.
            spec = ["args", "rets", *(f"attrs.{name}" for name in attributes)]
            at = {
                of: number
                for number, of in enumerate([*arrays, *written, *attributes])
                if number >= len(arrays) or of not in written
            }
            sources = [at.get(of, -1) for of in order]
            # a returned tensor lies in XLA's memory, and must not outlive the call
            function = _rearranged(
                function, sources, [constants[of] for of in order if of not in at], bool(self.results)
            )
        jax_tvm_ffi.register_ffi_target(
            name,
            function,
            spec,
            platform=self.platform,
            allow_cuda_graph=self.allow_cuda_graph,
            use_last_output_for_alloc_workspace=bool(self.results),
        )


def _spec(order: list[str], arrays: list[str], written: list[str], attributes: list[str]) -> list[str] | None:
    """The ``arg_spec`` that passes the arguments in the function's order.

    None if inputs and outputs are mixed, or if an argument is neither an array nor an attribute.
    """
    spec: list[str] = []
    for name in order:
        if name in arrays and name in written:
            return None
        item = (
            "args" if name in arrays else "rets" if name in written else f"attrs.{name}" if name in attributes else None
        )
        if item is None:
            return None
        if not (spec and spec[-1] == item):
            spec.append(item)
    # a repeated item would pass all arrays twice
    return spec if len(set(spec)) == len(spec) else None


class _Workspace:
    """The memory of returned tensors. The function allocates them one after the other in an extra last output."""

    def __init__(self, results: list[jax.ShapeDtypeStruct]) -> None:
        self._results = results
        self._offsets = []
        end = 0
        for result in results:
            start = -(-end // _ALIGNMENT) * _ALIGNMENT
            self._offsets.append(start)
            end = start + result.size * result.dtype.itemsize
        self.shape = jax.ShapeDtypeStruct((end,), np.uint8)

    def results(self, memory: jax.Array) -> list[jax.Array]:
        """The tensors as arrays."""

        def result(start: int, of: jax.ShapeDtypeStruct) -> jax.Array:
            size = of.dtype.itemsize
            of_bytes = memory[start : start + of.size * size]
            if of.dtype == np.bool_:
                return of_bytes.astype(np.bool_).reshape(of.shape)
            if size > 1:
                of_bytes = of_bytes.reshape((of.size, size))
            return jax.lax.bitcast_convert_type(of_bytes, of.dtype).reshape(of.shape)

        return [result(start, of) for start, of in zip(self._offsets, self._results)]


def _dtype(function: str, name: str) -> np.dtype:
    try:
        dtype: np.dtype = jnp.dtype(name)
    except TypeError:
        raise TypeError(f"`{function}` has a tensor of {name}, which JAX has no dtype for") from None
    if jax.dtypes.canonicalize_dtype(dtype) != dtype:
        raise TypeError(f"`{function}` has a tensor of {name}, which JAX has with `jax_enable_x64` alone")
    return dtype


def _default(of: OperatorParameter) -> Any:
    """A default as a value; dtypes and devices stay strings."""
    return float(of.default) if group(of.plain) == "float" and of.default is not None else of.default


def _constant(function: str, of: OperatorParameter, value: Any) -> Any:
    """An argument as a part of the target, for values that can't be attributes of the call."""
    kind = group(of.plain)
    if value is None:
        return None
    if kind == "dtype":
        return str(tvm_ffi.dtype(value if isinstance(value, str) else jnp.dtype(value).name))
    if kind == "device":
        return tvm_ffi.device(value) if isinstance(value, str) else value
    if kind == "shape" or (kind == "array" and group(of.plain["of"][0]) in _ATTRIBUTES):
        return list(value)
    if kind == "bytes":
        return value.encode() if isinstance(value, str) else bytes(value)
    raise TypeError(
        f"`{of.name}` of `{function}` is of a kind that XLA's calls don't have: {of.plain.get('name', kind)}"
    )
