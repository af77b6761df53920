"""Kernels of the CuTe DSL (``nvidia-cutlass-dsl``): launches of the cubins that ``cute.compile`` makes.

Importing this module doesn't import the CuTe DSL. Compiling needs no device.
"""

from __future__ import annotations

import re
import shlex
import tempfile
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Union

from . import _check
from ._check import Extents
from .errors import KernelError
from .kernel import Kernel
from .signature import Signature, as_signature

__all__ = ["arguments", "compile", "kernel"]

#: The DSL's types by dtypes.
_TYPES = {
    **{f"int{bits}": f"Int{bits}" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": f"Uint{bits}" for bits in (8, 16, 32, 64)},
    "bool": "Boolean", "float16": "Float16", "bfloat16": "BFloat16", "float32": "Float32", "float64": "Float64",
    "float8_e4m3fn": "Float8E4M3FN", "float8_e5m2": "Float8E5M2", "float8_e4m3b11fnuz": "Float8E4M3B11FNUZ",
}  # fmt: skip
_INTEGERS = re.compile(r"u?int\d+")


def arguments(signature: Signature | str) -> dict[str, Any]:
    """Arguments for ``cute.compile``, by the names of a signature's parameters: fake tensors, and numbers.

    A size or stride that is a number in the signature is one for the DSL. Any other is known when the kernel runs, and
    equal ones are one symbol. The tensor's alignment is that of the signature.
    """
    symbols: dict[tuple[int, str], Any] = {}
    return {of.name: of.fake(symbols) for of in _parameters(as_signature(signature))}


def compile(
    function: Any,
    signature: Signature | str,
    *,
    archs: Iterable[str],
    grid: Extents,
    block: Extents,
    args: Iterable[str] | None = None,
    options: Iterable[str] = (),
    **items: Any,
) -> Kernel:
    """Compiles a function under ``@cute.jit``, and makes a launch of its kernel. ``archs`` are architectures such as
    ``sm_90a``.

    The function takes the signature's parameters in their order, as :func:`arguments` makes them, and launches one
    kernel. ``options`` are further ones of ``cute.compile``, such as ``["--opt-level", "2"]``. The rest is that of
    :func:`kernel`.
    """
    import cutlass.cute as cute

    signature = as_signature(signature)
    given = list(arguments(signature).values())
    listed = _check.texts("archs", archs)
    if not listed:
        raise ValueError("archs: expected at least one architecture, such as sm_90a")
    # the DSL keeps a cubin only if it also writes it to a file
    with tempfile.TemporaryDirectory() as folder:
        own = ["--keep-cubin", "--dump-dir", folder, *_check.texts("options", options)]
        compiled = [cute.compile(function, *given, options=shlex.join(["--gpu-arch", of, *own])) for of in listed]
        return kernel(compiled, signature, grid=grid, block=block, args=args, **items)


def kernel(
    compiled: Any,
    signature: Signature | str,
    *,
    grid: Extents,
    block: Extents,
    args: Iterable[str] | None = None,
    **items: Any,
) -> Kernel:
    """Makes a launch from what ``cute.compile`` returned, or from a list of this for several architectures.

    The function was compiled with ``--keep-cubin`` and the signature's :func:`arguments`. It launches one kernel.
    ``args`` are the kernel's parameters: names of the signature's parameters, by default all in their order, or
    arguments of a launch's text. A tensor is passed as the DSL passes it, with the sizes and strides that are known
    when the kernel runs. ``grid``, ``block`` and ``items``, such as ``cluster`` and ``shared_memory``, are those of
    :meth:`Kernel.cuda`. State the same as the function does.

    The cubin's own parameters, block and cluster are compared with the launch. The grid, dynamic shared memory and the
    order of parameters of one size are not: you guarantee them.
    """
    signature = as_signature(signature)
    all = list(compiled) if isinstance(compiled, (list, tuple)) else [compiled]
    if not all:
        raise KernelError("expected a compiled function, got an empty list")
    entries = [_entry(of) for of in all]
    if len(set(entries)) > 1:
        raise KernelError(f"expected one kernel for all architectures, got {', '.join(sorted(set(entries)))}")
    parameters = {of.name: of for of in _parameters(signature)}
    listed = list(parameters) if args is None else _check.texts("args", args)
    passed = [parameters[of].argument() if of in parameters else of for of in listed]
    return Kernel.cuda([of.__cubin__ for of in all], entries[0], grid=grid, block=block, args=passed, **items)


def _entry(compiled: Any) -> str:
    """The name of the one kernel of a compiled function."""
    names = getattr(compiled, "kernel_info", None)
    if not isinstance(names, Mapping) or not isinstance(getattr(compiled, "__cubin__", None), bytes):
        raise _check._wrong("compiled", "what cute.compile returns, with the option --keep-cubin", compiled)
    if len(names) != 1:
        raise KernelError(f"expected a function that launches one kernel, got {len(names)}: {', '.join(names)}")
    return str(next(iter(names)))


class _Tensor(NamedTuple):
    """A tensor as the DSL passes it: its address, then the sizes and strides that aren't numbers."""

    name: str
    dtype: str
    sizes: list[Any]
    strides: list[Any]
    align: int | None

    def fake(self, symbols: dict[tuple[int, str], Any]) -> Any:
        from cutlass.cute import sym_int
        from cutlass.cute.runtime import make_fake_tensor

        def known(width: int, value: Any) -> Any:
            if isinstance(value, int) or value is None:
                return sym_int(width) if value is None else value
            return symbols.setdefault((width, str(value)), sym_int(width))

        shape, strides = tuple(known(32, of) for of in self.sizes), tuple(known(64, of) for of in self.strides)
        return make_fake_tensor(_type(self.name, self.dtype), shape, strides, assumed_align=self.align)

    def argument(self) -> str:
        fields, end = [f"0: {self.name}"], 8
        for width, part, values in ((4, "shape", self.sizes), (8, "strides", self.strides)):
            for number, value in enumerate(values):
                if not isinstance(value, int):
                    end = -(-end // width) * width
                    fields.append(f"{end}: int{8 * width}({self.name}.{part}[{number}])")
                    end += width
        if len(fields) == 1:
            return self.name
        return f"struct(size={-(-end // 8) * 8}, align=8, {', '.join(fields)})"


class _Scalar(NamedTuple):
    """A number, which the DSL passes by value."""

    name: str
    dtype: str

    def fake(self, symbols: object) -> Any:
        return _type(self.name, self.dtype)(0)

    def argument(self) -> str:
        is_integer = _INTEGERS.fullmatch(self.dtype)
        return f"{self.dtype}({self.name})" if is_integer else f"cast({self.name}, {self.dtype})"


def _parameters(signature: Signature) -> list[Union[_Tensor, _Scalar]]:
    texts = {of.name: of.type for of in signature.parameters}
    found: list[Union[_Tensor, _Scalar]] = []
    for of in signature.structure["parameters"]:
        name, type = of["name"], of["type"]
        if type["kind"] == "tensor":
            found.append(_tensor(name, type, texts[name]))
        elif type["kind"] == "scalar":
            found.append(_Scalar(name, type["name"]))
        else:
            raise KernelError(f"`{name}`: expected a tensor or a number, got {texts[name]}")
    return found


def _tensor(name: str, type: Mapping[str, Any], text: str) -> _Tensor:
    sizes, strides = type["shape"], type["strides"]
    is_stated = isinstance(sizes, list) and (strides is None or isinstance(strides, list))
    if not is_stated or type["dtype"] == "any":
        raise KernelError(f"`{name}`: expected a tensor of stated sizes, strides and dtype, got {text}")
    if strides is None:
        strides = []
        step: int | None = 1
        for size in reversed(sizes):
            strides.insert(0, step)
            step = step * size if isinstance(step, int) and isinstance(size, int) else None
    align = re.search(r"\balign=(\d+)", text)
    return _Tensor(name, type["dtype"], sizes, strides, int(align.group(1)) if align else None)


def _type(name: str, dtype: str) -> Any:
    import cutlass

    if dtype not in _TYPES:
        raise KernelError(f"`{name}`: expected a dtype of the CuTe DSL, got {dtype}")
    return getattr(cutlass, _TYPES[dtype])
