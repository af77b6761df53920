"""Compiled kernels of Triton: converts a kernel's own metadata into a launch.

This module doesn't import Triton: a compiled kernel is an object with ``metadata``, ``asm`` and ``src``, as
``triton.compile`` returns it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Union

from .. import _check
from .._check import Extents
from ..errors import KernelError
from ..kernel import Kernel
from ..signature import Signature, as_signature

#: The value for a Triton parameter: a tensor's name, an expression of symbols and parameters, or a number.
Binding = Union[str, int, float]

#: Metadata fields that decide the launch.
_LAUNCH = {
    "name", "target", "num_warps", "warp_size", "num_ctas", "cluster_dims", "shared", "launch_cooperative_grid",
    "launch_pdl", "global_scratch_size", "global_scratch_align", "profile_scratch_size", "profile_scratch_align",
    "tensordesc_meta", "instrumentation_mode",
}  # fmt: skip
#: Metadata fields that only matter while Triton compiles the kernel.
_COMPILED = {
    "allocated_smem", "allow_fp8e4nv", "allowed_dot_input_precisions", "arch", "backend_name", "clc", "debug",
    "default_dot_input_precision", "deprecated_fp8_dot_operand_dtypes", "enable_fp_fusion", "enable_reflect_ftz",
    "extern_libs", "fpsan_homomorphic_casts", "hash", "ids", "ir_override", "max_num_imprecise_acc_default", "maxnreg",
    "min_shared_mem", "num_buffers_warp_spec", "num_consumer_groups", "num_stages", "ptx_options", "ptx_version",
    "reg_dec_producer", "reg_inc_consumer", "sanitize_overflow", "sched4reg", "supported_fp8_dtypes", "tmem_size",
    "triton_version",
}  # fmt: skip

_INTEGERS = {
    f"{sign}{bits}": f"{name}{bits}" for sign, name in (("i", "int"), ("u", "uint")) for bits in (8, 16, 32, 64)
}
_BOOLS = ("i1", "u1")
_FLOATS = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "f32": "float32", "fp64": "float64"}
#: The dtypes of elements, by Triton's names for the elements that a pointer points to.
ELEMENTS = {
    **_INTEGERS, **_FLOATS, "i1": "bool", "u1": "bool", "fp8e5": "float8_e5m2", "fp8e4nv": "float8_e4m3fn",
    "fp8e5b16": "float8_e5m2fnuz", "fp8e4b8": "float8_e4m3fnuz",
}  # fmt: skip
#: The swizzles of tensor maps in bytes, by the driver's numbers.
_SWIZZLES = (0, 32, 64, 128)


def from_compiled(
    compiled: Any,
    signature: Signature | str,
    *,
    grid: Extents,
    bind: Mapping[str, Binding] | None = None,
) -> Kernel:
    """Makes a launch from a kernel that Triton compiled for CUDA.

    ``compiled`` may be a list of one kernel compiled for several architectures. Each device runs the cubin that fits it
    best. The launches must be the same except for their shared memory: all of them use the largest size.

    ``bind`` maps Triton's parameters to their values. A pointer or tensor descriptor is bound to a tensor of the
    signature. A scalar is bound to a number, or to an expression such as ``"n"`` or ``"2 * n"``. An unbound parameter
    is the signature's parameter or symbol of the same name. ``grid`` has up to three extents, numbers or expressions.

    The threads of a block, shared memory, clusters, attributes, scratch memory and constants come from the compiled
    kernel. The signature must state everything that Triton assumed at compile time: ``align=16`` for a pointer, and a
    constraint such as ``n % 16 == 0`` for an integer that is a multiple of 16. Unknown metadata, or an assumption that
    the signature doesn't state, is a :class:`KernelError`.
    """
    signature = as_signature(signature)
    kernels = list(compiled) if isinstance(compiled, (list, tuple)) else [compiled]
    if not kernels:
        raise KernelError("expected a compiled kernel, got an empty list")
    bound = dict(_check.mapping("bind", bind, "tensors, expressions or numbers by names"))
    launches = [_launch(of, signature, grid, bound) for of in kernels]
    for of, launch in zip(kernels[1:], launches[1:]):
        for part, value in launch.items():
            if part != "shared_memory" and value != launches[0][part]:
                between = f"sm_{kernels[0].metadata.target.arch} and sm_{of.metadata.target.arch}"
                raise KernelError(f"the launches for {between} differ in `{part}`: {launches[0][part]} and {value}")
    shared_memory = max(launch["shared_memory"] for launch in launches)
    return Kernel.cuda([of.asm["cubin"] for of in kernels], **{**launches[0], "shared_memory": shared_memory})


def _launch(compiled: Any, signature: Signature, grid: Extents, bind: dict[str, Binding]) -> dict[str, Any]:
    """The arguments of :meth:`Kernel.cuda` for a compiled kernel, except its images."""
    metadata = compiled.metadata._asdict() if hasattr(compiled.metadata, "_asdict") else dict(vars(compiled.metadata))
    unknown = sorted(set(metadata) - _LAUNCH - _COMPILED)
    if unknown:
        raise KernelError(f"the compiled kernel has metadata that is not known: {', '.join(unknown)}")
    if metadata["target"].backend != "cuda":
        raise KernelError(f"expected a kernel for CUDA, got one for {metadata['target'].backend}")
    if metadata.get("instrumentation_mode"):
        raise KernelError(
            f"a kernel with instrumentation ({metadata['instrumentation_mode']}) has parameters that are not known"
        )
    args = _Arguments(signature, bind, list(metadata.get("tensordesc_meta") or [])).of(compiled)
    for purpose in ("global_scratch", "profile_scratch"):
        size, align = metadata[f"{purpose}_size"], max(1, metadata[f"{purpose}_align"])
        args.append(f"scratch({size}, align={align})" if size else "null")
    ctas = metadata.get("num_ctas", 1)
    if tuple(metadata.get("cluster_dims", (ctas, 1, 1))) != (ctas, 1, 1):
        raise KernelError(f"expected clusters of {ctas} blocks in x, got {metadata['cluster_dims']}")
    first, *others = _check.extents("grid", grid)
    return {
        "entry": metadata["name"],
        "grid": [f"({first}) * {ctas}" if ctas > 1 else first, *others],
        "block": metadata["num_warps"] * metadata["warp_size"],
        "shared_memory": metadata["shared"],
        "cluster": (ctas, 1, 1) if ctas > 1 else None,
        # not every device supports clusters of more than 8 blocks
        "non_portable_cluster": ctas > 8,
        "cooperative": bool(metadata["launch_cooperative_grid"]),
        "programmatic_dependent_launch": bool(metadata["launch_pdl"]),
        "args": args,
    }


class _Arguments:
    """Converts Triton's parameters to a launch's arguments."""

    def __init__(self, signature: Signature, bind: dict[str, Binding], descriptors: list[Mapping[str, Any]]) -> None:
        self.signature = signature
        self.tensors = {of.name: of.type for of in signature.parameters if of.type.startswith("Tensor(")}
        self.types = {of["name"]: of["type"] for of in signature.structure["parameters"]}
        self.bind = bind
        self.descriptors = descriptors

    def of(self, compiled: Any) -> list[str]:
        names = list(compiled.src.signature)
        stray = sorted(set(self.bind) - set(names))
        if stray:
            raise KernelError(f"bind: the kernel has no parameter `{stray[0]}` (it has {', '.join(names)})")
        constants = {path if isinstance(path, tuple) else (names.index(path),) for path in compiled.src.constants}
        multiples = {
            path for path, attrs in compiled.src.attrs.items() if ["tt.divisibility", 16] in [list(of) for of in attrs]
        }
        args: list[str] = []
        for index, (name, kind) in enumerate(compiled.src.signature.items()):
            if kind == "constexpr" or (index,) in constants:
                if name in self.bind:
                    raise KernelError(f"`{name}` is bound, and is a constant of the compiled kernel")
                continue
            if not isinstance(kind, str):
                raise KernelError(f"`{name}` is a tuple, which a signature has no parameter for")
            args.extend(self.argument(name, kind, (index,) in multiples))
        return args

    def argument(self, name: str, kind: str, is_multiple: bool) -> Iterable[str]:
        value = self.bind.get(name, name)
        if kind.startswith("*"):
            tensor = self.tensor(name, value)
            # `*k` is a pointer that the kernel only reads through
            self.elements(name, kind.removeprefix("*").removeprefix("k"), tensor)
            if is_multiple and align_of(self.tensors[tensor]) % 16 != 0:
                raise KernelError(
                    f"`{name}` was compiled for addresses that are multiples of 16: state `align=16` for `{tensor}` in "
                    "the signature"
                )
            return [tensor]
        if kind.startswith("tensordesc"):
            tensor = self.tensor(name, value)
            self.elements(name, kind.removeprefix("tensordesc<").partition("[")[0], tensor)
            return self.descriptor(name, kind, tensor)
        self.scalar(name, kind, value)
        if isinstance(value, bool):
            value = int(value)
        if kind in _INTEGERS or kind in _BOOLS:
            if is_multiple and not (isinstance(value, int) and value % 16 == 0):
                self.state(name, constraint(self.signature, f"({value}) % 16 == 0"))
            type = _INTEGERS.get(kind, "uint8")
            # a bool isn't an integer of an expression, and is converted as a whole
            is_bool = self.types.get(value, {}).get("name") == "bool"
            return [f"cast({value}, {type})" if is_bool else f"{type}({value})"]
        if kind in _FLOATS:
            return [f"{_FLOATS[kind]}({value})"]
        raise KernelError(f"`{name}` is of type {kind}, which no launch passes")

    def tensor(self, name: str, value: Binding) -> str:
        if value not in self.tensors:
            known = ", ".join(self.tensors) or "none"
            raise KernelError(
                f"`{name}` is bound to `{value}`, which isn't a tensor of the signature; its tensors are {known}"
            )
        return str(value)

    def elements(self, name: str, kind: str, tensor: str) -> None:
        """Checks that a tensor has the elements that the kernel was compiled for."""
        compiled = ELEMENTS.get(kind)
        if compiled is None:
            raise KernelError(f"`{name}` leads to elements of {kind}, which no dtype of a signature is")
        if self.types[tensor]["dtype"] != compiled:
            raise KernelError(
                f"`{name}` was compiled for elements of {compiled} ({kind}), and `{tensor}` is {self.tensors[tensor]}: "
                f"state {compiled} in the signature, or compile the kernel for the tensor's dtype"
            )

    def scalar(self, name: str, kind: str, value: Binding) -> None:
        """Checks that a bound value is of the kind of number that the kernel was compiled for.

        Integers and floats of another width are converted. An integer that doesn't fit is an error of the call.
        """
        wants = "a float" if kind in _FLOATS else "a bool" if kind in _BOOLS else "an integer"
        if isinstance(value, str):
            type = self.types.get(value, {"kind": "other"})
            # expressions and symbols are integers
            got = type["name"] if type["kind"] == "scalar" else "int64"
            is_bool = type["kind"] == "bool" or got == "bool"
            has = "a float" if got in _FLOATS.values() else "a bool" if is_bool else "an integer"
            shown = f"`{value}`, which is {has}"
            fits = has == wants or (wants == "an integer" and has == "a bool")
        else:
            shown = repr(value)
            fits = value in (0, 1) if wants == "a bool" else wants == "a float" or isinstance(value, int)
        if not fits:
            raise KernelError(f"`{name}` was compiled as {kind}, {wants}, and is bound to {shown}")

    def state(self, name: str, constraint: str) -> None:
        if constraint not in self.signature.where:
            raise KernelError(f"`{name}` was compiled for multiples of 16: state `where {constraint}` in the signature")

    def descriptor(self, name: str, kind: str, tensor: str) -> list[str]:
        """A descriptor on the host: a tensor map, then the sizes, then the strides."""
        if not self.descriptors:
            raise KernelError(f"`{name}` is a tensor descriptor, of which the metadata tells nothing")
        known = dict(self.descriptors.pop(0))
        if known.pop("is_im2col", False) or known.pop("fp4_padded", False):
            raise KernelError(f"`{name}` is a tensor descriptor of a kind that is not known: {kind}")
        swizzle, box = known.pop("swizzle"), known.pop("block_size")
        stray = sorted(set(known) - {"elem_size", "elem_type"})
        if stray:
            raise KernelError(f"`{name}` has a descriptor with fields that are not known: {', '.join(stray)}")
        sizes = _sizes(self.tensors[tensor])
        if sizes is None or len(sizes) != len(box):
            raise KernelError(
                f"`{name}` is a descriptor of {len(box)} dimensions, and `{tensor}` is {self.tensors[tensor]}"
            )
        extents = f"({', '.join(map(str, box))},)"
        tensor_map = f"tensor_map({tensor}, box={extents}, swizzle={_SWIZZLES[swizzle]}, l2_promotion=128)"
        strides = [f"int64({tensor}.strides[{dimension}])" for dimension in range(len(box))]
        return [tensor_map, *(f"int32({size})" for size in sizes), *strides]


def constraint(signature: Signature, text: str) -> str:
    """A constraint over a signature's names, as the signature's own text would have it."""
    joined = "," if signature.where else " where"
    return Signature(f"{signature.text}{joined} {text}").where[-1]


def align_of(tensor: str) -> int:
    """The alignment in a tensor's type, or 1."""
    found = re.search(r"\balign=(\d+)", tensor)
    return int(found.group(1)) if found else 1


def _sizes(tensor: str) -> list[str] | None:
    """The sizes in a tensor's type as strings; None for any rank."""
    inside = tensor[len("Tensor([") :]
    sizes, depth, start = [], 0, 0
    for at, character in enumerate(inside):
        if character == "]" and depth == 0:
            last = inside[start:at].strip()
            return None if last == "..." else [*sizes, *([last] if last else [])]
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            sizes.append(inside[start:at].strip())
            start = at + 1
    return None
