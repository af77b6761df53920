"""Kernels of Triton: a compiled kernel's own metadata becomes a launch.

Triton isn't imported here: a compiled kernel is an object with ``metadata``, ``asm`` and ``src``, as ``triton.compile`` gives it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Union

from .errors import KernelError
from .kernel import Kernel
from .signature import Signature, as_signature

#: What stands for a parameter of Triton's: the name of a tensor, an expression of symbols and parameters, or a number.
Binding = Union[str, int, float]

#: Fields of the metadata that decide the launch.
_LAUNCH = {
    "name", "target", "num_warps", "warp_size", "num_ctas", "cluster_dims", "shared", "launch_cooperative_grid", "launch_pdl",
    "global_scratch_size", "global_scratch_align", "profile_scratch_size", "profile_scratch_align", "tensordesc_meta",
    "instrumentation_mode",
}  # fmt: skip
#: Fields that have done their work when the kernel was compiled.
_COMPILED = {
    "allocated_smem", "allow_fp8e4nv", "allowed_dot_input_precisions", "arch", "backend_name", "clc", "debug",
    "default_dot_input_precision", "deprecated_fp8_dot_operand_dtypes", "enable_fp_fusion", "enable_reflect_ftz", "extern_libs",
    "fpsan_homomorphic_casts", "hash", "ids", "ir_override", "max_num_imprecise_acc_default", "maxnreg", "min_shared_mem",
    "num_buffers_warp_spec", "num_consumer_groups", "num_stages", "ptx_options", "ptx_version", "reg_dec_producer",
    "reg_inc_consumer", "sanitize_overflow", "sched4reg", "supported_fp8_dtypes", "tmem_size", "triton_version",
}  # fmt: skip

_INTEGERS = {f"{sign}{bits}": f"{name}{bits}" for sign, name in (("i", "int"), ("u", "uint")) for bits in (8, 16, 32, 64)}
_FLOATS = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "f32": "float32", "fp64": "float64"}
#: The bytes of a tensor map's swizzle by the driver's number for it.
_SWIZZLES = (0, 32, 64, 128)


def from_compiled(
    compiled: Any,
    signature: Signature | str,
    *,
    grid: Sequence[int | str],
    bind: Mapping[str, Binding] | None = None,
) -> Kernel:
    """The kernel that Triton has compiled for CUDA, launched by a signature.

    ``compiled`` may be a list: one kernel, compiled for several architectures. Each device runs the cubin that fits it best. The launches have to be the same, except for
    shared memory, of which they all get the largest.

    ``bind`` says what stands for Triton's parameters: for pointers and tensor descriptors a tensor of the signature, for scalars an expression,
    such as ``"n"`` or ``"2 * n"``, or a number. A parameter that isn't bound is the signature's of the same name. ``grid`` has up to three extents,
    numbers or expressions.

    The threads of a block, shared memory, clusters, attributes, scratch memory and constants are the compiled kernel's own. What Triton has
    taken for granted, the signature has to state: ``align=16`` for a pointer, and a constraint such as ``n % 16 == 0`` for an integer that is
    a multiple of 16. Whatever isn't known here, or isn't stated there, is a :class:`KernelError`.
    """
    signature = as_signature(signature)
    kernels = list(compiled) if isinstance(compiled, (list, tuple)) else [compiled]
    if not kernels:
        raise KernelError("expected a compiled kernel, got an empty list")
    launches = [_launch(of, signature, grid, dict(bind or {})) for of in kernels]
    for of, launch in zip(kernels[1:], launches[1:]):
        for part, value in launch.items():
            if part != "shared" and value != launches[0][part]:
                between = f"sm_{kernels[0].metadata.target.arch} and sm_{of.metadata.target.arch}"
                raise KernelError(f"the launches for {between} differ in `{part}`: {launches[0][part]} and {value}")
    shared = max(launch["shared"] for launch in launches)
    return Kernel.cuda([of.asm["cubin"] for of in kernels], **{**launches[0], "shared": shared})


def _launch(compiled: Any, signature: Signature, grid: Sequence[int | str], bind: dict[str, Binding]) -> dict[str, Any]:
    """The parts of a compiled kernel's launch, as :meth:`Kernel.cuda` takes them."""
    metadata = compiled.metadata._asdict() if hasattr(compiled.metadata, "_asdict") else dict(vars(compiled.metadata))
    unknown = sorted(set(metadata) - _LAUNCH - _COMPILED)
    if unknown:
        raise KernelError(f"the compiled kernel has metadata that is not known: {', '.join(unknown)}")
    if metadata["target"].backend != "cuda":
        raise KernelError(f"expected a kernel for CUDA, got one for {metadata['target'].backend}")
    if metadata.get("instrumentation_mode"):
        raise KernelError(f"a kernel with instrumentation ({metadata['instrumentation_mode']}) has parameters that are not known")
    args = _Arguments(signature, bind, list(metadata.get("tensordesc_meta") or [])).of(compiled)
    for purpose in ("global_scratch", "profile_scratch"):
        size, align = metadata[f"{purpose}_size"], max(1, metadata[f"{purpose}_align"])
        args.append(f"scratch({size}, align={align})" if size else "null")
    ctas = metadata.get("num_ctas", 1)
    if tuple(metadata.get("cluster_dims", (ctas, 1, 1))) != (ctas, 1, 1):
        raise KernelError(f"expected clusters of {ctas} blocks in x, got {metadata['cluster_dims']}")
    first, *others = grid
    return {
        "entry": metadata["name"],
        "grid": [f"({first}) * {ctas}" if ctas > 1 else first, *others],
        "block": metadata["num_warps"] * metadata["warp_size"],
        "shared": metadata["shared"],
        "cluster": (ctas, 1, 1) if ctas > 1 else None,
        # clusters of more than 8 blocks are none that every device has
        "non_portable_cluster": ctas > 8,
        "cooperative": bool(metadata["launch_cooperative_grid"]),
        "programmatic": bool(metadata["launch_pdl"]),
        "args": args,
    }


class _Arguments:
    """The arguments of a launch, one Triton parameter after the other."""

    def __init__(self, signature: Signature, bind: dict[str, Binding], descriptors: list[Mapping[str, Any]]) -> None:
        self.signature = signature
        self.tensors = {of.name: of.type for of in signature.parameters if of.type.startswith("Tensor(")}
        self.bind = bind
        self.descriptors = descriptors

    def of(self, compiled: Any) -> list[str]:
        names = list(compiled.src.signature)
        stray = sorted(set(self.bind) - set(names))
        if stray:
            raise KernelError(f"`{stray[0]}` is bound, and the kernel has no such parameter: it has {', '.join(names)}")
        constants = {path if isinstance(path, tuple) else (names.index(path),) for path in compiled.src.constants}
        multiples = {path for path, attrs in compiled.src.attrs.items() if ["tt.divisibility", 16] in [list(of) for of in attrs]}
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
            if is_multiple and _align(self.tensors[tensor]) % 16 != 0:
                raise KernelError(
                    f"`{name}` was compiled for addresses that are multiples of 16: state `align=16` for `{tensor}` in the signature"
                )
            return [tensor]
        if kind.startswith("tensordesc"):
            return self.descriptor(name, kind, self.tensor(name, value))
        if kind in _INTEGERS or kind in ("i1", "u1"):
            if is_multiple and not (isinstance(value, int) and value % 16 == 0):
                self.state(name, f"{value} % 16 == 0")
            return [f"{_INTEGERS.get(kind, 'uint8')}({value})"]
        if kind in _FLOATS:
            return [f"{_FLOATS[kind]}({value})"]
        raise KernelError(f"`{name}` is of type {kind}, which no launch passes")

    def tensor(self, name: str, value: Binding) -> str:
        if value not in self.tensors:
            known = ", ".join(self.tensors) or "none"
            raise KernelError(f"`{name}` is bound to `{value}`, which is no tensor of the signature; its tensors are {known}")
        return str(value)

    def state(self, name: str, constraint: str) -> None:
        if constraint not in self.signature.where:
            raise KernelError(f"`{name}` was compiled for multiples of 16: state `where {constraint}` in the signature")

    def descriptor(self, name: str, kind: str, tensor: str) -> list[str]:
        """A descriptor on the host: a tensor map, then the sizes and the strides."""
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
            raise KernelError(f"`{name}` is a descriptor of {len(box)} dimensions, and `{tensor}` is {self.tensors[tensor]}")
        extents = f"({', '.join(map(str, box))},)"
        tensor_map = f"tensor_map({tensor}, box={extents}, swizzle={_SWIZZLES[swizzle]}, l2_promotion=128)"
        strides = [f"int64({tensor}.strides[{dimension}])" for dimension in range(len(box))]
        return [tensor_map, *(f"int32({size})" for size in sizes), *strides]


def _align(tensor: str) -> int:
    """The alignment that a tensor's type states; 1 where it states none."""
    found = re.search(r"\balign=(\d+)", tensor)
    return int(found.group(1)) if found else 1


def _sizes(tensor: str) -> list[str] | None:
    """The sizes of a tensor's type, as texts; None for any rank."""
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
