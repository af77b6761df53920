"""cuTile kernels: launches of kernels that ``cuda.tile`` compiles ahead of time, without cuTile's own launcher.

Importing this module imports cuTile. The compiler ``tileiras`` comes with ``pip install cuda-tile[tileiras]``.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Union

import cuda.tile as ct
from cuda.tile import compilation

from . import _check
from ._check import Extents
from ._structure import align_of, dim_text, type_at, with_numbers, with_parameter
from .dispatch import Dispatch, specialize
from .errors import KernelError
from .kernel import Kernel
from .key import Key
from .library import Cache
from .signature import Signature, as_signature

__all__ = ["Binding", "jit", "kernel"]

#: The value for a kernel's parameter: a name or an expression of the signature, a number, or a tuple of them.
Binding = Union[str, int, float, "Sequence[Binding]"]
#: A constant for :func:`jit`: a value, an expression of the signature as a str, or a function of the key.
ConstantByKey = Union[Any, Callable[[Key], Any]]

#: The dtypes that a signature and cuTile both have.
_DTYPES = {
    **{name: getattr(ct, name) for name in (
        "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32",
        "float64", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu",
    )},
    "bool": ct.bool_,
}  # fmt: skip
#: The alignment in bytes that TMA needs.
_ALIGN = 16
#: The greatest divisor that is told to the compiler.
_MAX_DIVISOR = 128
#: The alias groups of arrays that may overlap.
_OVERLAPPING = ("memory",)


def kernel(
    kernel: ct.kernel,
    signature: Signature | str,
    *,
    grid: Extents,
    archs: Iterable[str],
    constants: Mapping[str, Any] | None = None,
    bind: Mapping[str, Binding] | None = None,
) -> Kernel:
    """Compiles a kernel under ``@ct.kernel``, and makes its launch. ``archs`` are ``["sm_90", "sm_100"]`` or the like.

    ``constants`` are the values of the kernel's constants (``ct.Constant``); any other parameter may be a constant
    too. ``bind`` maps the other parameters to names or expressions of the signature, or to numbers. An unbound
    parameter is the signature's parameter or symbol of the same name. A tuple is bound to a parameter of type
    ``Tuple``, or to a tuple of bindings. ``grid`` has up to three extents, which may name constants.

    cuTile may assume what the signature states, and nothing else: dtypes, constant sizes and strides, ``align=16``,
    constraints such as ``where n % 16 == 0``, and ``noalias=True``. Tensors without ``noalias=True`` may overlap. A
    stride with a name needs ``where s >= 0``, since cuTile has no negative strides.
    """
    signature = as_signature(signature)
    if not isinstance(kernel, ct.kernel):
        raise _check._wrong("kernel", "a kernel under @ct.kernel", kernel)
    names: list[str] = list(kernel._annotated_function.pysig.parameters)
    given = dict(_check.mapping("constants", constants, "values by names"))
    bound: dict[str, Binding] = dict(_check.mapping("bind", bind, "names, expressions, numbers or tuples by names"))
    for what, mapping in (("constants", given), ("bind", bound)):
        stray = sorted(set(mapping) - set(names))
        if stray:
            raise KernelError(f"{what}: the kernel has no parameter `{stray[0]}` (it has {', '.join(names)})")
    both = sorted(set(given) & set(bound))
    if both:
        raise KernelError(f"`{both[0]}` is a constant, and it is also bound")
    listed = _check.texts("archs", archs)
    if not listed:
        raise KernelError("archs: expected at least one architecture such as sm_90, got none")
    annotations = dict(zip(names, kernel._annotated_function.parameter_annotations))
    # a group of a single array is an error of cuTile's
    for groups in (_OVERLAPPING, ()):
        arguments = _Arguments(signature, groups)
        parameters = [
            given[name] if name in given else arguments.parameter(name, bound.get(name, name), annotation)
            for name, annotation in annotations.items()
        ]
        if arguments.overlapping != 1:
            break
    convention = compilation.CallingConvention.cutile_python_v2()
    stated = compilation.KernelSignature(parameters, convention).with_mangled_symbol(kernel._pyfunc.__name__)
    own = {of.name for of in signature.parameters} | set(signature.dim_vars)
    extents = with_numbers(_check.extents("grid", grid), given, own)
    images = [_cubin(kernel, stated, arch) for arch in listed]
    # the driver knows the threads and the shared memory of a tile kernel
    return Kernel.cuda(images, stated.symbol, grid=extents, args=arguments.args)


def jit(
    kernel: ct.kernel,
    signature: Signature | str,
    *,
    grid: Extents,
    constants: Mapping[str, ConstantByKey] | None = None,
    bind: Mapping[str, Binding] | None = None,
    keys: Iterable[str] = (),
    archs: Iterable[str] | None = None,
    max_entries: int | None = None,
    cache: Cache | None = None,
    version: str | None = None,
) -> Dispatch:
    """Makes a function of a kernel under ``@ct.kernel``. A call that needs a new variant lets cuTile compile it, and
    all calls launch by generated code, on the current stream of the tensors' device.

    ``grid`` and ``bind`` are those of :func:`kernel`. In ``constants`` a str is an expression of the signature, which
    becomes a key, and a function gets the :class:`Key`. The other keys are the dtypes that the signature leaves open,
    whether a tensor without ``align=16`` is aligned to 16 bytes, and the device's compute capability, unless ``archs``
    states the architectures. ``keys`` are further conditions such as ``n % 16 == 0``: where one holds, the variant
    states it. ``max_entries``, ``cache`` and ``version`` are those of :func:`~tvm_ffi_codegen.specialize`.
    """
    signature = as_signature(signature)
    if not isinstance(kernel, ct.kernel):
        raise _check._wrong("kernel", "a kernel under @ct.kernel", kernel)
    given = dict(_check.mapping("constants", constants, "values, expressions or functions by names"))
    tensors = {of.name: of.type for of in signature.parameters if of.type.startswith("Tensor(")}
    open_dtypes = [name for name, type in tensors.items() if re.search(r"\], any\b", type)]
    unaligned = [name for name, type in tensors.items() if align_of(type) % _ALIGN != 0]
    conditions = _check.texts("keys", keys)
    listed = None if archs is None else _check.texts("archs", archs)
    if listed is None and not tensors:
        raise KernelError("archs: expected architectures for a signature without tensors")
    capability = f"{next(iter(tensors), '')}.device.capability"
    stated = [f"{name}.dtype" for name in open_dtypes]
    stated += [f"is_aligned({name}, {_ALIGN})" for name in unaligned]
    stated += [of for of in given.values() if isinstance(of, str)]
    stated += conditions
    if listed is None:
        stated.append(capability)
    stated = list(dict.fromkeys(stated))
    if not stated:
        raise KernelError("the kernel has one variant: pass it to tvm_ffi_codegen.cutile.kernel")

    def variant(key: Key) -> tuple[Signature, Kernel]:
        text = signature.text
        for name, type in tensors.items():
            own = type
            if name in open_dtypes:
                own = re.sub(r"\], any\b", f"], {key[f'{name}.dtype']}", own)
            if name in unaligned and key[f"is_aligned({name}, {_ALIGN})"]:
                own = re.sub(r", align=\d+", "", own)[:-1] + f", align={_ALIGN})"
            text = with_parameter(text, f"{name}: {type}", f"{name}: {own}")
        facts = [of for of in conditions if key[of] is True]
        if facts:
            text += (", " if signature.where else " where ") + ", ".join(facts)
        own_signature = Signature(text, locations=signature._locations)
        values = {
            name: of(key) if callable(of) and not isinstance(of, ct.DType) else key[of] if isinstance(of, str) else of
            for name, of in given.items()
        }
        targets = [f"sm_{key[capability]}"] if listed is None else listed
        made = _kernel(kernel, own_signature, grid=grid, archs=targets, constants=values, bind=bind)
        return own_signature, made

    variant.__doc__ = kernel._pyfunc.__doc__
    return specialize(signature, keys=stated, max_entries=max_entries, cache=cache, version=version)(variant)


#: The function, which the parameters of the same name hide.
_kernel = kernel


def _cubin(kernel: ct.kernel, signature: compilation.KernelSignature, arch: str) -> bytes:
    """The kernel's cubin for an architecture."""
    if not re.fullmatch(r"sm_\d+", arch):
        raise ValueError(f"archs: expected architectures such as sm_90, got {arch!r}")
    written = io.BytesIO()
    compilation.export_kernel(kernel, [signature], written, gpu_code=arch, output_format="cubin")
    return written.getvalue()


class _Arguments:
    """The assumptions that cuTile may make about the parameters, and the arguments of the launch.

    The calling convention passes an array as its pointer, its sizes, then its strides in elements, each as a parameter
    of the kernel. The values of constants aren't passed, but those of constant sizes and strides are.
    """

    def __init__(self, signature: Signature, groups: tuple[str, ...]) -> None:
        structure = signature.structure
        self.types = {of["name"]: of["type"] for of in structure["parameters"]}
        self.texts = {of.name: of.type for of in signature.parameters}
        self.where = structure["where"]
        self.sizes = _sizes(self.types.values())
        self.groups = groups
        #: The number of arrays that may overlap.
        self.overlapping = 0
        self.args: list[str] = []

    def parameter(self, name: str, value: Binding, annotation: Any) -> Any:
        """The assumptions that cuTile may make about a parameter. Adds its arguments."""
        if getattr(annotation, "constant", False):
            raise KernelError(f"`{name}` is a constant of the kernel: state its value in constants")
        if getattr(annotation, "list", None) is not None:
            raise KernelError(f"`{name}` is a list of arrays, which no launch passes")
        if isinstance(value, (tuple, list)):
            return self.tuple(name, value, annotation)
        type = type_at(self.types, value) if isinstance(value, str) else None
        if type is not None and type["kind"] == "tuple":
            return self.tuple(name, [f"{value}[{number}]" for number in range(len(type["of"]))], annotation)
        if type is not None and type["kind"] == "tensor":
            return self.array(name, str(value), type, annotation)
        return self.scalar(name, value, type, annotation)

    def tuple(self, name: str, values: Sequence[Any], annotation: Any) -> Any:
        each = getattr(annotation, "each", annotation)
        annotations = getattr(annotation, "items", [each] * len(values))
        if len(annotations) != len(values):
            raise KernelError(f"`{name}`: expected a tuple of {len(annotations)} items, got {len(values)}")
        items = [self.parameter(f"{name}[{at}]", of, kind) for at, (of, kind) in enumerate(zip(values, annotations))]
        return compilation.TupleConstraint(items)

    def array(self, name: str, tensor: str, type: Any, annotation: Any) -> Any:
        shape, strides, dtype = type["shape"], type["strides"], _DTYPES.get(type["dtype"])
        if shape is None:
            raise KernelError(f"`{name}`: expected a tensor of a stated rank, got `{tensor}` of any rank")
        if dtype is None:
            raise KernelError(f"`{name}`: expected a dtype that cuTile has, got `{tensor}` of {type['dtype']}")
        device = type["device"] if isinstance(type["device"], str) else type["device"]["kind"]
        if device != "cuda":
            raise KernelError(f"`{name}`: expected a tensor on CUDA, got `{tensor}` on {device}")
        if strides == "any":
            raise KernelError(f"`{name}`: expected strides with names such as `strides=[s, 1]`, got `strides=any`")
        is_contiguous = strides is None
        if is_contiguous:
            strides = [_product(shape[at + 1 :]) for at in range(len(shape))]
        for stride in () if is_contiguous else strides:
            if not self.is_natural(stride) and not self.is_stated_natural(stride):
                raise KernelError(
                    f"`{name}`: cuTile has no negative strides: state `where {dim_text(stride)} >= 0` in the "
                    "signature"
                )
        text = self.texts.get(tensor, "")
        is_alone = "noalias=True" in text
        if is_alone and tensor in self.args:
            raise KernelError(f"`{tensor}` is passed twice, and the signature states noalias=True for it")
        self.overlapping += not is_alone
        annotated = getattr(annotation, "array", None)
        index = ct.int32 if annotated is None else annotated.index_dtype
        self.args += [tensor, *(f"{index.name}({dim_text(of)})" for of in (*shape, *strides))]
        return compilation.ArrayConstraint(
            dtype,
            len(shape),
            index_dtype=index,
            stride_lower_bound_incl=0,
            alias_groups=() if is_alone else self.groups,
            # of other strides it isn't known whether each element has an address of its own
            may_alias_internally=not is_contiguous,
            shape_constant=[of if isinstance(of, int) else None for of in shape],
            stride_constant=[of if isinstance(of, int) else None for of in strides],
            shape_divisible_by=[self.divisor(of) for of in shape],
            stride_divisible_by=[self.divisor(of) for of in strides],
            base_addr_divisible_by=max(align_of(text), dtype.bitwidth // 8),
        )

    def scalar(self, name: str, value: Binding, type: Any, annotation: Any) -> Any:
        got = "int32" if type is None else type.get("name") if type["kind"] == "scalar" else type["kind"]
        if not isinstance(value, str):
            got = "bool" if isinstance(value, bool) else "float32" if isinstance(value, float) else "int32"
        if got not in _DTYPES:
            raise KernelError(f"`{name}`: expected a tensor or a number, got `{value}`, which is neither")
        annotated = getattr(annotation, "scalar", None)
        dtype = got if annotated is None else annotated.dtype.name
        if annotated is not None and ("float" in got or got == "bool"):
            raise KernelError(f"`{name}`: expected an integer, got `{value}`, which is {got}")
        if type is not None:
            self.args.append(str(value) if dtype == got else f"cast({value}, {dtype})")
        else:
            self.args.append(f"uint8({int(value)})" if isinstance(value, bool) else f"{dtype}({value})")
        return compilation.ScalarConstraint(_DTYPES[dtype])

    def is_natural(self, dim: Any) -> bool:
        """True if a stride can't be negative, since it is computed from sizes."""
        if isinstance(dim, list):
            return dim_text(dim) in self.sizes or (dim[0] != "-" and all(map(self.is_natural, dim[1:])))
        return dim >= 0 if isinstance(dim, int) else dim in self.sizes

    def is_stated_natural(self, dim: Any) -> bool:
        return any(of[0] in (">=", ">", "==") and of[1] == dim and self.is_natural(of[2]) for of in self.where)

    def divisor(self, dim: Any) -> int:
        """A power of two that divides a size or stride."""
        if isinstance(dim, int):
            return min(dim & -dim, _MAX_DIVISOR) or 1
        found = [of[1][2] for of in self.where if of[0] == "==" and of[2] == 0 and _is_remainder(of[1], dim)]
        stated = max([self.divisor(of) for of in found], default=1)
        if not isinstance(dim, list):
            return stated
        parts = list(map(self.divisor, dim[1:]))
        whole = parts[0] * parts[1] if dim[0] == "*" else min(parts) if dim[0] in ("+", "-", "min", "max") else 1
        return min(max(whole, stated), _MAX_DIVISOR)


def _is_remainder(of: Any, dim: Any) -> bool:
    """True for ``dim % k`` with a number ``k``."""
    return isinstance(of, list) and of[:2] == ["%", dim] and type(of[2]) is int


def _sizes(types: Iterable[Any]) -> set[str]:
    """The sizes of tensors, as text."""
    sizes: set[str] = set()
    for type in types:
        sizes |= set(map(dim_text, type.get("shape") or ()))
        sizes |= _sizes(type["of"] if isinstance(type.get("of"), list) else ())
    return sizes


def _product(sizes: list[Any]) -> Any:
    """The product of sizes, as a signature's structure has it."""
    product: Any = 1
    for size in sizes:
        is_number = isinstance(product, int) and isinstance(size, int)
        product = product * size if is_number else size if product == 1 else ["*", product, size]
    return product
