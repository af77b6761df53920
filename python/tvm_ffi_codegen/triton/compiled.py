"""Compiled kernels of Triton: converts a kernel's own metadata into a launch.

This module doesn't import Triton: a compiled kernel is an object with ``metadata``, ``asm`` and ``src``, as
``triton.compile`` returns it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Tuple, Union

from .. import _check
from .._structure import align_of
from ..errors import KernelError, SignatureError
from ..kernel import Kernel
from ..signature import Signature, as_signature
from .grid import Grid, Symbol, TensorSymbol, extents
from .multiples import factor

#: The value for a Triton parameter: a tensor's name, an expression of symbols and parameters, or a number.
Binding = Union[str, int, float, "tuple[Any, ...]", "list[Any]"]

#: Metadata fields that decide the launch.
_LAUNCH = {
    "name", "target", "num_warps", "warp_size", "num_ctas", "cluster_dims", "shared", "launch_cooperative_grid",
    "launch_pdl", "global_scratch_size", "global_scratch_align", "profile_scratch_size", "profile_scratch_align",
    "tensordesc_meta", "instrumentation_mode",
}  # fmt: skip
#: Metadata fields that only matter while Triton compiles the kernel.
_COMPILED = {
    "allocated_smem", "allow_flush_denorm", "allow_fp8e4nv", "allowed_dot_input_precisions", "arch", "backend_name",
    "base_arch", "clc", "debug", "default_dot_input_precision", "deprecated_fp8_dot_operand_dtypes",
    "enable_fp_fusion", "enable_reflect_ftz", "extern_libs", "fpsan_homomorphic_casts", "hash", "ids", "ir_override",
    "kpack", "llvm_fn_attrs", "matrix_instr_nonkdim", "max_num_imprecise_acc_default", "maxnreg", "min_shared_mem",
    "num_buffers_warp_spec", "num_consumer_groups", "num_stages", "ptx_options", "ptx_version", "reg_dec_producer",
    "reg_inc_consumer", "sanitize_overflow", "sched4reg", "schedule_hint", "supported_fp8_dtypes", "tmem_size",
    "triton_version", "waves_per_eu", "wgp_cu_mode",
}  # fmt: skip
#: For each backend of Triton the kind of its devices, and the name of its images.
_BACKENDS = {"cuda": ("cuda", "cubin"), "hip": ("rocm", "hsaco")}
_PLATFORMS = {"cuda": "CUDA", "rocm": "HIP"}

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
    grid: Grid,
    bind: Mapping[str, Binding] | None = None,
) -> Kernel:
    """Makes a launch from a kernel that Triton compiled for CUDA or HIP.

    ``compiled`` may be a list of one kernel compiled for several architectures. Each device runs the image that fits it
    best. The launches must be the same except for their shared memory: all of them use the largest size.

    ``bind`` maps Triton's parameters to their values. A pointer or tensor descriptor is bound to a tensor of the
    signature. A scalar is bound to a number, or to an expression such as ``"n"`` or ``"2 * n"``. A tuple is bound to a
    tuple of such values, or to a ``Tuple`` or ``Record`` of the signature. An unbound parameter is the signature's
    parameter or symbol of the same name.

    ``grid`` has up to three extents, numbers or expressions, which may name integer constants of the kernel. It may be
    a function such as ``lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]),)``. It is called once, with symbols for
    what only a call knows. Parameters after ``meta`` are names of the signature: ``lambda meta, n: ...``.

    The threads of a block, shared memory, clusters, attributes, scratch memory and constants come from the compiled
    kernel. The signature must state everything that Triton assumed at compile time: ``align=16`` for a pointer, and a
    constraint such as ``n % 16 == 0`` for an integer that is a multiple of 16. Unknown metadata, or an assumption that
    the signature doesn't state, is a :class:`KernelError`.
    """
    return launch_of(compiled, as_signature(signature), grid, bind, frozenset())


def launch_of(
    compiled: Any,
    signature: Signature,
    grid: Grid,
    bind: Mapping[str, Binding] | None,
    decided: frozenset[str],
) -> Kernel:
    """:func:`from_compiled`, where a caller has already compared the ``decided`` constants with the arguments."""
    kernels = list(compiled) if isinstance(compiled, (list, tuple)) else [compiled]
    if not kernels:
        raise KernelError("expected a compiled kernel, got an empty list")
    bound = dict(_check.mapping("bind", bind, "tensors, expressions or numbers by names"))
    launches = [_launch(of, signature, grid, bound, decided) for of in kernels]
    targets = [of.metadata.target for of in kernels]
    for target in targets[1:]:
        if target.backend != targets[0].backend:
            raise KernelError(f"expected kernels of one backend, got {targets[0].backend} and {target.backend}")
    for target, launch in zip(targets[1:], launches[1:]):
        for part, value in launch.items():
            if part != "shared_memory" and value != launches[0][part]:
                between = f"{_name_of(targets[0])} and {_name_of(target)}"
                raise KernelError(f"the launches for {between} differ in `{part}`: {launches[0][part]} and {value}")
    shared_memory = max(launch["shared_memory"] for launch in launches)
    images = [of.asm[_BACKENDS[of.metadata.target.backend][1]] for of in kernels]
    if targets[0].backend == "hip" and len(images) > 1:
        images = [_bundle([target.arch for target in targets], images)]
    return Kernel.cuda(images, **{**launches[0], "shared_memory": shared_memory})


def _name_of(target: Any) -> str:
    return f"sm_{target.arch}" if isinstance(target.arch, int) else str(target.arch)


def _bundle(archs: list[str], images: list[bytes]) -> bytes:
    """The bundle of code objects from which HIP takes the one for a device (``__CLANG_OFFLOAD_BUNDLE__``)."""
    page = 4096
    # the first entry is the host's, and empty
    names = ["host-x86_64-unknown-linux-gnu-", *(f"hipv4-amdgcn-amd-amdhsa--{arch}" for arch in archs)]
    parts = [b"", *images]
    head = b"__CLANG_OFFLOAD_BUNDLE__" + len(names).to_bytes(8, "little")
    at = -(-(len(head) + sum(24 + len(name) for name in names)) // page) * page
    body = b""
    for name, part in zip(names, parts):
        for number in (at + len(body), len(part), len(name)):
            head += number.to_bytes(8, "little")
        head += name.encode()
        body += part + bytes(-len(part) % page)
    return head.ljust(at, b"\0") + body


def _launch(
    compiled: Any, signature: Signature, grid: Grid, bind: dict[str, Binding], decided: frozenset[str]
) -> dict[str, Any]:
    """The arguments of :meth:`Kernel.cuda` for a compiled kernel, except its images."""
    metadata = compiled.metadata._asdict() if hasattr(compiled.metadata, "_asdict") else dict(vars(compiled.metadata))
    unknown = sorted(set(metadata) - _LAUNCH - _COMPILED)
    if unknown:
        raise KernelError(f"the compiled kernel has metadata that is not known: {', '.join(unknown)}")
    target = metadata["target"]
    if target.backend not in _BACKENDS:
        raise KernelError(f"expected a kernel for {' or '.join(_BACKENDS)}, got one for {target.backend}")
    if metadata.get("instrumentation_mode"):
        raise KernelError(
            f"a kernel with instrumentation ({metadata['instrumentation_mode']}) has parameters that are not known"
        )
    descriptors = list(metadata.get("tensordesc_meta") or [])
    arguments = _Arguments(compiled.src, signature, bind, _BACKENDS[target.backend][0], descriptors, decided)
    args = arguments.all()
    # kernels for HIP always have a global scratch, and kernels before Triton 3.5 no profile scratch
    for purpose in ["global_scratch", *(["profile_scratch"] if "profile_scratch_size" in metadata else [])]:
        size, align = metadata.get(f"{purpose}_size", 0), max(1, metadata.get(f"{purpose}_align", 1))
        args.append(f"scratch({size}, align={align})" if size else "null")
    ctas = metadata.get("num_ctas", 1)
    if tuple(metadata.get("cluster_dims", (ctas, 1, 1))) != (ctas, 1, 1):
        raise KernelError(f"expected clusters of {ctas} blocks in x, got {metadata['cluster_dims']}")
    options = {of: metadata[of] for of in ("num_warps", "num_ctas", "num_stages") if of in metadata}
    first, *others = extents(grid, {**options, **arguments.meta()}, arguments.symbols())
    return {
        "entry": metadata["name"],
        "grid": [f"({first}) * {ctas}" if ctas > 1 else first, *others],
        "block": metadata["num_warps"] * metadata.get("warp_size", target.warp_size),
        "shared_memory": metadata["shared"],
        "cluster": (ctas, 1, 1) if ctas > 1 else None,
        # not every device supports clusters of more than 8 blocks
        "non_portable_cluster": ctas > 8,
        "cooperative": bool(metadata["launch_cooperative_grid"]),
        "programmatic_dependent_launch": bool(metadata.get("launch_pdl", False)),
        "args": args,
    }


#: The place of a value among Triton's parameters: a number, then those in nested tuples.
Path = Tuple[int, ...]


class _Arguments:
    """Converts Triton's parameters to a launch's arguments."""

    def __init__(
        self,
        source: Any,
        signature: Signature,
        bind: dict[str, Binding],
        device: str,
        descriptors: list[Mapping[str, Any]],
        decided: frozenset[str],
    ) -> None:
        self.signature, self.bind, self.device = signature, bind, device
        self.descriptors, self.decided = descriptors, decided
        self.kinds: dict[str, Any] = dict(source.signature)
        #: The types of the signature's parameters and of what is in its tuples and records, by their paths.
        self.types: dict[str, Any] = {}
        #: The types of tensors in the text form, by their paths.
        self.tensors: dict[str, str] = {}
        for parameter, stated in zip(signature.parameters, signature.structure["parameters"]):
            texts = _tensor_texts(parameter.type)
            for path, type in _leaves(stated["name"], stated["type"]):
                text = next(texts) if type["kind"] == "tensor" else ""
                if path is not None:
                    self.types[path] = type
                    if text:
                        self.tensors[path] = text
        names = list(self.kinds)
        stray = sorted(set(bind) - set(names))
        if stray:
            raise KernelError(f"bind: the kernel has no parameter `{stray[0]}` (it has {', '.join(names)})")
        self.constants: dict[Path, Any] = {
            path if isinstance(path, tuple) else (names.index(path),): of for path, of in source.constants.items()
        }
        self.multiples: dict[Path, int] = {}
        for path, attributes in source.attrs.items():
            for attribute, value in attributes:
                if attribute != "tt.divisibility":
                    name = names[path[0]]
                    raise KernelError(f"`{name}` was compiled with {attribute}, but a signature can't state it")
                self.multiples[path] = value

    def all(self) -> list[str]:
        """The launch's arguments, in order."""
        args: list[str] = []
        for index, (name, kind) in enumerate(self.kinds.items()):
            if self.is_constant((index,), kind):
                if name in self.bind:
                    raise KernelError(f"`{name}` is bound, and is a constant of the compiled kernel")
                if name not in self.decided:
                    self.constant((index,), name, name)
            else:
                args.extend(self.parameter((index,), name, kind, self.bind.get(name, name)))
        return args

    def meta(self) -> dict[str, Any]:
        """The kernel's arguments for the function of a grid: constants, and symbols for all others."""
        values: dict[str, Any] = {}
        for index, (name, kind) in enumerate(self.kinds.items()):
            value = self.bind.get(name, name)
            if self.is_constant((index,), kind):
                values[name] = self.constants.get((index,))
            elif isinstance(value, str):
                values[name] = self.symbol(value)
            else:
                values[name] = value
        return values

    def symbols(self) -> dict[str, Any]:
        """Symbols for the names of the signature."""
        names = [*(of.name for of in self.signature.parameters), *self.signature.dim_vars]
        return {name: self.symbol(name) for name in names}

    def symbol(self, value: str) -> Any:
        type = self.types.get(value, {"kind": "dimension"})
        if type["kind"] == "tensor":
            return TensorSymbol(value, None if type["shape"] is None else len(type["shape"]))
        return Symbol(value)

    def is_constant(self, path: Path, kind: Any) -> bool:
        return kind == "constexpr" or path in self.constants

    def constant(self, path: Path, name: str, value: Any) -> None:
        """Checks that the value bound to a constant can only be that constant."""
        constant = self.constants.get(path)
        if not isinstance(value, str):
            if value is not None and value != constant:
                raise KernelError(f"`{name}` was compiled as the constant {constant!r}, and is bound to {value!r}")
            return
        if value not in self.types and value not in self.signature.dim_vars:
            return
        type = self.types.get(value, {"kind": "dimension"})
        is_integer = isinstance(constant, int) and not isinstance(constant, bool)
        if constant is None:
            stated, fits = f"`{value}: None`", type["kind"] == "none"
        elif is_integer and type["kind"] in ("dimension", "scalar"):
            stated = f"`where {value} == {constant}`"
            fits = ["==", value, constant] in self.signature.structure["where"]
        elif is_integer or isinstance(constant, bool):
            stated = f"`{value}: {'Int' if is_integer else 'Bool'}({constant})`"
            fits = type["kind"] == ("int" if is_integer else "bool") and type.get("value") == constant
        else:
            stated, fits = f"no `{value}`", False
        if not fits:
            raise KernelError(f"`{name}` was compiled as the constant {constant!r}: state {stated} in the signature")

    def parameter(self, path: Path, name: str, kind: Any, value: Any) -> Iterator[str]:
        if self.is_constant(path, kind):
            self.constant(path, name, value)
        elif isinstance(kind, str):
            yield from self.argument(name, kind, value, self.multiples.get(path, 1))
        else:
            for number, (of, item) in enumerate(zip(kind, self.items(name, kind, value))):
                yield from self.parameter((*path, number), f"{name}[{number}]", of, item)

    def items(self, name: str, kind: Any, value: Any) -> list[Any]:
        """The values that are bound to the items of a tuple."""
        if isinstance(value, (tuple, list)):
            items = list(value)
        else:
            type = self.types.get(value, {"kind": "other"}) if isinstance(value, str) else {"kind": "other"}
            if type["kind"] == "tuple":
                items = [f"{value}[{number}]" for number in range(len(type["of"]))]
            elif type["kind"] == "record":
                fields = getattr(kind, "_fields", type["fields"])
                items = [f"{value}.{field}" for field in fields]
            else:
                raise KernelError(
                    f"`{name}` is a tuple of {len(kind)}: expected a tuple in bind, or a Tuple or Record of the "
                    f"signature, got {value!r}"
                )
        if len(items) != len(kind):
            raise KernelError(f"`{name}` is a tuple of {len(kind)}, and is bound to {len(items)} values")
        return items

    def argument(self, name: str, kind: str, value: Any, multiple: int) -> list[str]:
        if kind.startswith("*"):
            tensor = self.tensor(name, value)
            # `*k` is a pointer that the kernel only reads through
            self.elements(name, kind.removeprefix("*").removeprefix("k"), tensor)
            if align_of(self.tensors[tensor]) % multiple != 0:
                raise KernelError(
                    f"`{name}` was compiled for addresses that are multiples of {multiple}: state `align={multiple}` "
                    f"for `{tensor}` in the signature"
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
            self.multiple(name, value, multiple)
            type = _INTEGERS.get(kind, "uint8")
            # a bool isn't an integer of an expression, and is converted as a whole
            is_bool = self.types.get(value, {}).get("name") == "bool"
            return [f"cast({value}, {type})" if is_bool else f"{type}({value})"]
        if kind in _FLOATS:
            return [f"{_FLOATS[kind]}({value})"]
        raise KernelError(f"`{name}` is of type {kind}, which no launch passes")

    def tensor(self, name: str, value: Binding) -> str:
        if not isinstance(value, str):
            raise KernelError(f"`{name}` is bound to {value!r}: expected the name of a tensor")
        if self.types.get(value, {}).get("kind") == "optional":
            raise KernelError(
                f"`{name}` was compiled for a tensor, and `{value}` may be None in the signature: state a Tensor, or "
                "use tfc.triton.jit, which compiles a variant for None"
            )
        if value not in self.tensors:
            known = ", ".join(self.tensors) or "none"
            raise KernelError(
                f"`{name}` is bound to `{value}`, but this isn't a tensor of the signature; its tensors are {known}"
            )
        device = self.types[value]["device"]
        if device != "any" and device["kind"] != self.device:
            expected = f"expected `device=\"{self.device}\"` for `{value}`, got {device['kind']}"
            raise KernelError(f"`{name}` was compiled for {_PLATFORMS[self.device]}: {expected}")
        return value

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
            if type["kind"] == "optional":
                raise KernelError(f"`{name}` was compiled as {kind}, and `{value}` may be None in the signature")
            # expressions and symbols are integers
            got = type["name"] if type["kind"] == "scalar" else "int64"
            is_bool = type["kind"] == "bool" or got == "bool"
            has = "a float" if got in _FLOATS.values() else "a bool" if is_bool else "an integer"
            shown = f"`{value}`, which is {has}"
            fits = has == wants or (wants == "an integer" and has == "a bool")
        else:
            shown = repr(value)
            if wants == "a bool":
                fits = isinstance(value, (int, float)) and value in (0, 1)
            else:
                fits = isinstance(value, (int, float) if wants == "a float" else int)
        if not fits:
            raise KernelError(f"`{name}` was compiled as {kind}, {wants}, and is bound to {shown}")

    def multiple(self, name: str, value: str | int, multiple: int) -> None:
        """Checks that an integer is always a multiple of what it was compiled for."""
        if not is_multiple(self.signature, value, multiple):
            stated = constraint(self.signature, f"({value}) % {multiple} == 0") if isinstance(value, str) else ""
            state = f"state `where {stated}` in the signature" if stated else f"expected one, got {value}"
            raise KernelError(f"`{name}` was compiled for multiples of {multiple}: {state}")

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
    return _constrained(signature, text).where[-1]


def is_multiple(signature: Signature, value: str | int, multiple: int) -> bool:
    """True if an integer, or an expression by what the signature states, is always a multiple of a number."""
    if multiple == 1:
        return True
    if isinstance(value, str):
        value = factor(_constrained(signature, f"({value}) % {multiple} == 0").structure["where"][-1][1][1], signature)
    return value % multiple == 0


def _constrained(signature: Signature, text: str) -> Signature:
    """The signature with one more constraint."""
    joined = "," if signature.where else " where"
    try:
        return Signature(f"{signature.text}{joined} {text}")
    except SignatureError as error:
        raise KernelError(f"expected what a signature can state, got `{text}`: {error}") from error


def _leaves(path: str | None, type: Mapping[str, Any]) -> Iterator[tuple[str | None, Mapping[str, Any]]]:
    """A type and all types in it, in the text's order, with the paths by which a launch names values of them."""
    yield path, type
    fields = type.get("fields")
    for number, of in enumerate(type.get("of", ())):
        inside = None
        if path is not None and type["kind"] == "tuple":
            inside = f"{path}[{number}]"
        elif path is not None and fields is not None:
            inside = f"{path}.{fields[number]}"
        yield from _leaves(inside, of)


def _tensor_texts(type: str) -> Iterator[str]:
    """The types of tensors in a type's text, in order."""
    for found in re.finditer(r"\bTensor\(", type):
        depth = 0
        for end in range(found.end() - 1, len(type)):
            depth += (type[end] == "(") - (type[end] == ")")
            if depth == 0:
                yield type[found.start() : end + 1]
                break


def _sizes(tensor: str) -> list[str] | None:
    """The sizes in a tensor's type as strings; None for any rank."""
    inside = tensor[len("Tensor([") :]
    sizes: list[str] = []
    depth, start = 0, 0
    for at, character in enumerate(inside):
        if character == "]" and depth == 0:
            last = inside[start:at].strip()
            return None if last == "..." else [*sizes, *([last] if last else [])]
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            sizes.append(inside[start:at].strip())
            start = at + 1
    return None
