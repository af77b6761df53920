"""Warp kernels: objects and cubins that Warp compiles ahead of time, launched without Warp.

Importing this module imports Warp (``warp-lang``), but compiles nothing. Warp brings its own compilers: Clang for the
CPU and NVRTC for CUDA.
"""

from __future__ import annotations

import ctypes
import json
import re
import tempfile
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any, NamedTuple, Union

import warp as wp
from warp._src import types as wp_types

from . import _check
from ._structure import dim_text, type_at, with_parameter
from ._text import unused
from .dispatch import Dispatch, specialize
from .errors import KernelError
from .kernel import Kernel
from .key import Key
from .library import Cache
from .signature import Signature, as_signature

__all__ = ["Binding", "CompiledKernel", "jit", "kernel"]

#: The value for a kernel's parameter: a name or an expression of the signature, or a number.
Binding = Union[str, int, float]
#: The extents of a launch: a number, an expression such as ``n``, or a sequence of up to four of them.
Dim = Union[int, str, Sequence[Union[int, str]]]

#: The names of Warp's scalars.
_NAMES = {
    getattr(wp, name): name
    for name in (
        "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32",
        "float64", "bool",
    )
}  # fmt: skip
_SCALARS = {name: scalar for scalar, name in _NAMES.items()}
#: Warp's descriptor of an array, ``array_t``: its size, and the offsets of its fields.
_ARRAY_SIZE, _GRAD, _SHAPE, _STRIDES, _RANK = 56, 8, 16, 32, 48
#: Inserted into the C++ code for the CPU, so that an object needs nothing of Warp's libraries. The functions of a
#: struct become inline, so that a library can link the objects of several kernels with this struct.
_CPU_PREAMBLE = """
#undef CUDA_CALLABLE
#define CUDA_CALLABLE inline
extern "C" {
void abort();
inline int _wp_isfinite(double x) { return __builtin_isfinite(x); }
inline int _wp_isnan(double x) { return __builtin_isnan(x); }
inline int _wp_isinf(double x) { return __builtin_isinf(x); }
inline void _wp_assert(const char* message, const char* file, unsigned line) {
    printf("Assertion failed: '%s' at %s:%u\\n", message, file, line);
    abort();
}
}
"""
#: Warp's modules aren't compiled by several threads at once.
_lock = threading.Lock()


class CompiledKernel(NamedTuple):
    """A compiled kernel, as a callback of :func:`~tvm_ffi_codegen.specialize` returns it."""

    #: The stated signature, or that of the kernel's own annotations.
    signature: Signature
    #: The launch.
    kernel: Kernel
    #: The object with the kernel's function on the CPU. Empty for CUDA, where the kernel has the images.
    objects: list[bytes]


def kernel(
    kernel: wp.Kernel,
    signature: Signature | str | None = None,
    *,
    dim: Dim,
    device: str = "cpu",
    archs: Iterable[str] | None = None,
    block_dim: int | None = None,
    bind: Mapping[str, Binding] | None = None,
) -> CompiledKernel:
    """Compiles a kernel under ``@wp.kernel`` for the CPU or for CUDA, and makes its launch.

    ``dim`` are the launch's extents as ``wp.launch`` takes them: up to four numbers or expressions of the signature.
    ``device`` is ``cpu`` or ``cuda``. ``block_dim`` is the number of threads of a block on CUDA, 256 by default. On the
    CPU a block has one thread. ``archs`` are architectures such as ``["sm_80", "sm_90"]`` for machine code and
    ``["compute_75"]`` for PTX. The default is PTX of ``wp.config.ptx_target_arch``, or else of compute_75.

    ``bind`` maps the kernel's parameters to names or expressions of the signature, or to numbers. An unbound parameter
    is the signature's parameter or symbol of the same name. A generic kernel gets its types from the signature.

    A scalar is a scalar, a symbol or an expression. ``wp.vec3``, ``wp.mat22`` and the like are a ``Tuple`` of their
    elements. An array is a tensor of the same rank, and ``wp.vec3`` as its dtype adds a last size of 3. A ``wp.struct``
    is a ``Record`` with the same fields.

    Without a signature it is that of the kernel's annotations. Then ``x.shape[0]`` names a size in ``dim``.
    """
    if not isinstance(kernel, wp.Kernel):
        raise _check._wrong("kernel", "a kernel under @wp.kernel", kernel)
    if device not in ("cpu", "cuda"):
        raise ValueError(f"device: expected cpu or cuda, got {device!r}")
    if device == "cpu" and (archs is not None or block_dim is not None):
        raise KernelError("archs and block_dim are those of a launch on CUDA, got them for the CPU")
    extents = _extents(dim)
    block = 256 if block_dim is None else _check.integer("block_dim", block_dim)
    if not 1 <= block <= 1024:
        raise ValueError(f"block_dim: expected 1 to 1024 threads, got {block}")
    signature = _signature_of(kernel, device) if signature is None else as_signature(signature)
    bound = dict(_check.mapping("bind", bind, "names, expressions or numbers by names"))
    names = [of.label for of in kernel.adj.args]
    stray = sorted(set(bound) - set(names))
    if stray:
        raise KernelError(f"bind: the kernel has no parameter `{stray[0]}` (it has {', '.join(names) or 'none'})")
    arguments = _Arguments(signature, device)
    values = {name: bound.get(name, name) for name in names}
    types = [
        arguments.inferred(of.label, of.type, values[of.label]) if wp_types.type_is_generic(of.type) else of.type
        for of in kernel.adj.args
    ]
    args = [arguments.of(name, type, values[name]) for name, type in zip(names, types)]
    if device == "cpu":
        return _on_cpu(kernel, types, signature, extents, args)
    if archs is None:
        archs = [f"compute_{wp.config.ptx_target_arch or 75}"]
    return _on_cuda(kernel, types, signature, extents, args, _check.texts("archs", archs), block)


def jit(
    signature: Signature | str,
    *,
    dim: Dim,
    device: str = "cpu",
    archs: Iterable[str] | None = None,
    block_dim: int | None = None,
    bind: Mapping[str, Binding] | None = None,
    max_entries: int | None = None,
    cache: Cache | None = None,
    version: str | None = None,
) -> Callable[[wp.Kernel], Dispatch]:
    """Makes a function of a kernel under ``@wp.kernel``, which compiles in its first call. Use it as a decorator::

        @tvm_ffi_codegen.warp.jit("scale(x: Tensor([n], any), by: float32)", dim="n")
        @wp.kernel
        def scale(x: wp.array(dtype=Any), by: float): ...

    A generic kernel is compiled for each dtype that a call has where the signature states ``any``. On CUDA it is
    compiled for the device's compute capability, unless ``archs`` states the architectures. The other options are
    those of :func:`kernel` and of :func:`~tvm_ffi_codegen.specialize`.
    """
    signature = as_signature(signature)
    tensors = {of.name: of.type for of in signature.parameters if of.type.startswith("Tensor(")}
    open_dtypes = [name for name, type in tensors.items() if re.search(r"\], any\b", type)]
    if not tensors:
        raise KernelError(f"expected a signature with a tensor, got {signature}")
    capability = f"{next(iter(tensors))}.device.capability"
    is_on_device = device == "cuda" and archs is None
    keys = [f"{name}.dtype" for name in open_dtypes] + ([capability] if is_on_device else [])
    targets = None if archs is None else _check.texts("archs", archs)

    def decorated(function: wp.Kernel) -> Dispatch:
        if not isinstance(function, wp.Kernel):
            raise _check._wrong("kernel", "a kernel under @wp.kernel", function)

        def variant(key: Key) -> Any:
            text = signature.text
            for name in open_dtypes:
                own = re.sub(r"\], any\b", f"], {key[f'{name}.dtype']}", tensors[name])
                text = with_parameter(text, f"{name}: {tensors[name]}", f"{name}: {own}")
            own_signature = Signature(text, locations=signature._locations)
            own_archs = [f"sm_{key[capability]}"] if is_on_device else targets
            return _kernel(
                function, own_signature, dim=dim, device=device, archs=own_archs, block_dim=block_dim, bind=bind
            )

        variant.__doc__ = function.func.__doc__
        # a dispatch has at least one key
        options: dict[str, Any] = {"max_entries": max_entries, "cache": cache, "version": version}
        return specialize(signature, keys=keys or {"variant": "0"}, **options)(variant)

    return decorated


#: The function, which the parameters of the same name hide.
_kernel = kernel


def _extents(dim: object) -> list[str]:
    """The extents of a launch, as text."""
    if isinstance(dim, str) or not isinstance(dim, Iterable):
        return [_check.extent("dim", dim)]
    extents = [_check.extent(f"dim[{number}]", of) for number, of in enumerate(dim)]
    if not 1 <= len(extents) <= 4:
        raise ValueError(f"dim: expected one to four extents, got {len(extents)}")
    return extents


def _alone(kernel: wp.Kernel, types: list[Any], block: int) -> wp.Kernel:
    """The kernel in a module of its own, without gradients. Warp compiles whole modules."""
    module = wp.Module(kernel.key, None)
    module.options.update(kernel.module.options)
    own = wp.ModuleBuildOptions(extra_cpu_preamble=_CPU_PREAMBLE)
    stated = module.options.get("extra_build_options")
    module.options.update(block_dim=block, extra_build_options=own if stated is None else stated.merged(own))
    options = {**kernel.options, "enable_backward": False}
    transformers = kernel.adj.transformers
    alone = wp.Kernel(kernel.func, kernel.key, module, options, transformers, kernel.adj.source)
    return alone.add_overload(types) if alone.is_generic else alone


def _compiled(kernel: wp.Kernel, **target: Any) -> tuple[bytes, dict[str, int]]:
    """The code that Warp compiles for one target, and the module's metadata."""
    with tempfile.TemporaryDirectory() as folder:
        (path,) = wp.compile_aot_module(kernel.module, module_dir=folder, **target)
        (metadata,) = Path(folder).glob("*.meta")
        return Path(path).read_bytes(), json.loads(metadata.read_text())


def _on_cpu(
    kernel: wp.Kernel, types: list[Any], signature: Signature, extents: list[str], args: list[_Value]
) -> CompiledKernel:
    with _lock:
        alone = _alone(kernel, types, 1)
        compiled, _ = _compiled(alone, device="cpu")
    bounds, _ = _bounds(extents, alone.adj.kernel_dim)
    symbol = f"{alone.get_mangled_name()}_cpu_forward"
    # a launch passes structs by their addresses, as Warp's function for the whole grid takes them
    struct = _struct(args).text if args else "null"
    launch = f"launch {symbol} grid=1 block=1 args=[{bounds}, {struct}]"
    return CompiledKernel(signature, Kernel.launch_on_cpu(launch, Kernel.symbol(symbol)), [compiled])


def _on_cuda(
    kernel: wp.Kernel,
    types: list[Any],
    signature: Signature,
    extents: list[str],
    args: list[_Value],
    archs: list[str],
    block: int,
) -> CompiledKernel:
    if not archs:
        raise KernelError("archs: expected at least one architecture such as sm_90, got none")
    wrong = [of for of in archs if not re.fullmatch(r"(sm|compute)_\d+", of)]
    if wrong:
        raise ValueError(f"archs: expected architectures such as sm_90 or compute_75, got {wrong[0]!r}")
    with _lock:
        alone = _alone(kernel, types, block)
        compiled = [
            _compiled(alone, arch=int(of.rpartition("_")[2]), use_ptx=of.startswith("compute")) for of in archs
        ]
    entry = f"{alone.get_mangled_name()}_cuda_kernel_forward"
    bounds, size = _bounds(extents, alone.adj.kernel_dim)
    blocks = f"ceil_div({size}, {block})"
    # a kernel without a loop over the grid has a grid of three extents, which Warp fills in this order
    most = (1 << 24) // block
    rest = f"ceil_div({blocks}, {most})"
    lean = [f"min({blocks}, {most})", f"min({rest}, 65535)", f"ceil_div({rest}, 65535)"]
    cluster = (alone.module.options | alone.options).get("cluster_dim", 1)
    launched = Kernel.cuda(
        [image for image, _ in compiled],
        entry,
        grid=f"min({blocks}, {2**31 - 1})" if alone.grid_stride else lean,
        block=block,
        args=[bounds, *(of.text for of in args)],
        shared_memory=max(metadata[f"{entry}_smem_bytes"] for _, metadata in compiled),
        cluster=cluster if cluster > 1 else None,
        non_portable_cluster=cluster > 8,
    )
    return CompiledKernel(signature, launched, [])


def _bounds(extents: list[str], rank: int) -> tuple[str, str]:
    """Warp's struct of a launch's extents, for a kernel with so many coordinates, and the number of threads."""
    padded = extents + ["1"] * (rank - len(extents))
    size, rest = (" * ".join(f"({of})" for of in part) or "1" for part in (padded, padded[rank:]))
    sizes = [_Value(4, 4, f"uint32({of})") for of in padded[:rank]]
    return _struct([*sizes, _Value(8, 8, f"uint64({size})"), _Value(8, 8, f"uint64({rest})")]).text, size


class _Value(NamedTuple):
    """An argument of a launch as text, with its size and alignment in C."""

    size: int
    align: int
    text: str


def _struct(values: Iterable[_Value]) -> _Value:
    """A struct of these fields, laid out as C does it."""
    end, widest, fields = 0, 1, []
    for size, align, text in values:
        at = -(-end // align) * align
        fields.append(f"{at}: {text}")
        end, widest = at + size, max(widest, align)
    size = -(-end // widest) * widest
    return _Value(size, widest, f"struct(size={size}, align={widest}, {', '.join(fields)})")


class _Arguments:
    """Converts a kernel's parameters to arguments of a launch."""

    def __init__(self, signature: Signature, device: str) -> None:
        self.types = {of["name"]: of["type"] for of in signature.structure["parameters"]}
        self.device = device

    def of(self, name: str, type: Any, value: Binding) -> _Value:
        if wp_types.matches_array_class(type, wp.array):
            return self.array(name, type, value)
        if wp.types.type_is_struct(type):
            fields = self.parts(name, value, "record", list(type.vars))
            return _struct(self.of(f"{name}.{label}", of.type, fields[label]) for label, of in type.vars.items())
        if wp.types.type_is_composite(type):
            scalar, length = type._wp_scalar_type_, ctypes.sizeof(type) // ctypes.sizeof(type._type_)
            items = self.parts(name, value, "tuple", list(range(length)))
            return _struct(self.scalar(f"{name}[{at}]", _NAMES[scalar], items[at]) for at in range(length))
        if type not in _NAMES:
            raise KernelError(f"`{name}` is a {wp.types.type_repr(type)}, which no signature has a parameter for")
        return self.scalar(name, _NAMES[type], value)

    def inferred(self, name: str, template: Any, value: Binding) -> Any:
        """The type of a parameter of a generic kernel, by the signature."""
        type = self.type(value)
        if wp_types.matches_array_class(template, wp.array):
            tensor = self.tensor(name, value)
            scalar, inner = self.element(name, tensor["dtype"]), tensor["shape"][template.ndim :]
            return wp.array(dtype=_composite(name, scalar, inner), ndim=template.ndim)
        if type is not None and type["kind"] == "tuple":
            (first, *_) = type["of"]
            return _composite(name, self.element(name, first.get("name")), [len(type["of"])])
        if type is None or type["kind"] != "scalar":
            raise KernelError(f"`{name}` is generic: expected a tensor or a number, got `{value}`")
        return self.element(name, type["name"])

    def type(self, value: Binding) -> Any:
        """The type of what a name of the signature has; None for an expression or a number."""
        return type_at(self.types, value) if isinstance(value, str) else None

    def parts(self, name: str, value: Binding, kind: str, labels: list[Any]) -> dict[Any, str]:
        """The paths of a tuple's items or of a record's fields, by their numbers or names."""
        type = self.type(value)
        if type is None or type["kind"] != kind:
            found = type["kind"] if type is not None else "an expression"
            what = "a Record with its fields" if kind == "record" else f"a Tuple of {len(labels)} items"
            raise KernelError(f"`{name}`: expected {what}, got `{value}`, which is {found}")
        got: list[Any] = type["fields"] if kind == "record" else list(range(len(type["of"])))
        if sorted(got) != sorted(labels):
            expected = ", ".join(labels) if kind == "record" else f"{len(labels)} items"
            shown = ", ".join(got) if kind == "record" else f"{len(got)} items"
            raise KernelError(f"`{name}`: expected a {kind} of {expected}, got `{value}` of {shown}")
        return {of: f"{value}.{of}" if kind == "record" else f"{value}[{of}]" for of in labels}

    def tensor(self, name: str, value: Binding) -> Any:
        """The type of a tensor, of a stated rank and on the kernel's device."""
        type = self.type(value)
        if type is not None and type["kind"] == "optional":
            (type,) = type["of"]
        if type is None or type["kind"] != "tensor":
            raise KernelError(f"`{name}` is an array: expected a tensor of the signature, got `{value}`")
        if type["shape"] is None:
            raise KernelError(f"`{name}`: expected a tensor of a stated rank, got `{value}` of any rank")
        on = type["device"] if isinstance(type["device"], str) else type["device"]["kind"]
        if on != self.device:
            raise KernelError(f"`{name}`: expected a tensor on {self.device}, got `{value}` on {on}")
        return type

    def element(self, name: str, dtype: Any) -> Any:
        if dtype not in _SCALARS:
            raise KernelError(f"`{name}`: expected a dtype that Warp has, got {dtype}")
        return _SCALARS[dtype]

    def array(self, name: str, type: Any, value: Binding) -> _Value:
        tensor, rank = self.tensor(name, value), type.ndim
        if wp.types.type_is_composite(type.dtype):
            scalar, inner = type.dtype._wp_scalar_type_, list(type.dtype._shape_)
        else:
            scalar, inner = type.dtype, []
        if scalar not in _NAMES:
            raise KernelError(f"`{name}` is an array of {wp.types.type_repr(scalar)}, which no dtype of a tensor is")
        shape, dtype = tensor["shape"], _NAMES[scalar]
        if tensor["dtype"] != dtype:
            raise KernelError(f"`{name}`: expected a tensor of {dtype}, got `{value}` of {tensor['dtype']}")
        if len(shape) != rank + len(inner) or shape[rank:] != inner:
            expected = ", ".join(["..."] * rank + [str(of) for of in inner])
            raise KernelError(f"`{name}`: expected sizes [{expected}], got `{value}` of {_list(shape)}")
        item = wp.types.type_size_in_bytes(scalar)
        if tensor["strides"] == "any":
            raise KernelError(f"`{name}`: expected strides with names such as `strides=[s, 1]`, got `strides=any`")
        if tensor["strides"] is None:
            strides = [" * ".join([str(item), *map(dim_text, shape[at + 1 :])]) for at in range(rank)]
        else:
            contiguous = [prod(inner[at + 1 :]) for at in range(len(inner))]
            if tensor["strides"][rank:] != contiguous:
                raise KernelError(f"`{name}`: expected last strides {contiguous}, got {_list(tensor['strides'])}")
            strides = [f"{item} * {dim_text(of)}" for of in tensor["strides"][:rank]]
        fields = [f"0: {value}", f"{_GRAD}: null"]
        fields += [f"{_SHAPE + 4 * at}: int32({dim_text(of)})" for at, of in enumerate(shape[:rank])]
        fields += [f"{_STRIDES + 4 * at}: int32({of})" for at, of in enumerate(strides)]
        fields.append(f"{_RANK}: int32({rank})")
        return _Value(_ARRAY_SIZE, 8, f"struct(size={_ARRAY_SIZE}, align=8, {', '.join(fields)})")

    def scalar(self, name: str, dtype: str, value: Binding) -> _Value:
        size = wp.types.type_size_in_bytes(_SCALARS[dtype])
        type = self.type(value)
        if type is not None:
            got = type["name"] if type["kind"] == "scalar" else type["kind"]
        else:
            got = "bool" if isinstance(value, bool) else "float64" if isinstance(value, float) else "int64"
        wanted, found = (_kind(of) for of in (dtype, got))
        if found not in {"bool": ("bool",), "int": ("int", "bool"), "float": ("float",)}[wanted]:
            raise KernelError(f"`{name}` is {dtype}: expected a number of this kind, got `{value}`, which is {found}")
        if dtype == got and type is not None:
            text = str(value)
        elif type is not None:
            text = f"cast({value}, {dtype})"
        else:
            text = f"uint8({int(value)})" if dtype == "bool" else f"{dtype}({value})"
        return _Value(size, size, text)


def _kind(dtype: str) -> str:
    """Whether a number is a float, an integer or a bool; for other parameters their own kind."""
    return "float" if "float" in dtype else "int" if "int" in dtype else dtype


def _composite(name: str, scalar: Any, sizes: list[Any]) -> Any:
    """Warp's type of an element with these sizes: a scalar, a vector or a matrix."""
    if len(sizes) > 2 or not all(isinstance(of, int) for of in sizes):
        raise KernelError(f"`{name}`: expected last sizes of a vector or a matrix, got {_list(sizes)}")
    if not sizes:
        return scalar
    return wp.types.vector(sizes[0], scalar) if len(sizes) == 1 else wp.types.matrix(tuple(sizes), scalar)


def _list(dims: list[Any]) -> str:
    return f"[{', '.join(map(dim_text, dims))}]"


def _signature_of(kernel: wp.Kernel, device: str) -> Signature:
    """The signature of a kernel's own annotations. Each array has sizes of its own."""
    used = {of.label for of in kernel.adj.args}
    on = ', device="cuda"' if device == "cuda" else ""

    def type_of(name: str, type: Any) -> str:
        if wp_types.type_is_generic(type):
            raise KernelError(f"`{name}` is generic: state the signature, which has its types")
        if wp.types.type_is_struct(type):
            fields = ", ".join(f"{label}: {type_of(f'{name}_{label}', of.type)}" for label, of in type.vars.items())
            return f'Record("{type.key}", {fields})'
        if wp_types.matches_array_class(type, wp.array):
            is_composite = wp.types.type_is_composite(type.dtype)
            scalar = type.dtype._wp_scalar_type_ if is_composite else type.dtype
            sizes = [unused(f"{name}_{at}", used) for at in range(type.ndim)]
            used.update(sizes)
            sizes += [str(of) for of in (type.dtype._shape_ if is_composite else ())]
            return f"Tensor([{', '.join(sizes)}], {_NAMES.get(scalar, scalar)}{on})"
        if wp.types.type_is_composite(type):
            length = ctypes.sizeof(type) // ctypes.sizeof(type._type_)
            return f"Tuple[{', '.join([_NAMES[type._wp_scalar_type_]] * length)}]"
        if type not in _NAMES:
            raise KernelError(f"`{name}` is a {wp.types.type_repr(type)}, which no signature has a parameter for")
        return _NAMES[type]

    return Signature.build(kernel.func.__name__, {of.label: type_of(of.label, of.type) for of in kernel.adj.args})
