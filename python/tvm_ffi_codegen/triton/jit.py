"""Functions that compile a Triton kernel's variants when they are first needed, and launch them without Triton."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Union

from .. import _check
from .._structure import align_of, with_parameter
from ..dispatch import Dispatch, specialize
from ..errors import KernelError
from ..kernel import Kernel
from ..key import Key, Keys, StatedKeys
from ..library import Cache
from ..signature import Signature, as_signature
from .compiled import ELEMENTS, Binding, constraint, is_multiple, launch_of
from .grid import Grid

#: The value for a Triton parameter, or for a constant a function of the key.
BindingByKey = Union[Binding, None, Callable[[Key], Any]]
#: Triton's options of a compilation, or a function of the key.
OptionsByKey = Union[Mapping[str, Any], Callable[[Key], Mapping[str, Any]]]

#: Triton's own names of the elements that a pointer points to, by their dtypes.
_POINTERS = {dtype: name for name, dtype in ELEMENTS.items() if name not in ("i1", "f32")}
#: The greatest number that Triton passes in 32 bits, and the smallest one.
_MOST, _LEAST = 2**31 - 1, -(2**31)


def jit(
    kernel: Any,
    signature: Signature | str,
    *,
    grid: Grid,
    bind: Mapping[str, BindingByKey] | None = None,
    keys: StatedKeys | None = None,
    options: OptionsByKey | None = None,
    arch: int | str | list[int] | list[str] | None = None,
    max_entries: int | None = None,
    cache: Cache | None = None,
    version: str | None = None,
) -> Dispatch:
    """Makes a function of a kernel under ``@triton.jit``. A call that needs a new variant lets Triton compile it, and
    all calls launch by generated code, on the current stream of the tensors' device.

    ``signature`` states the function's parameters, for example ``Tensor([n], any, device="cuda")``. ``bind`` and
    ``grid`` are those of :func:`from_compiled`. A constant of the kernel (``tl.constexpr``) is bound to a value, to an
    expression of the signature, which is then a key, or to a function that gets the :class:`Key`. ``grid`` may name
    the kernel's constants.

    By default the keys are all that Triton compiles different code for: dtypes of tensors that the signature leaves
    open, whether an address or an integer is a multiple of 16, whether an integer is 1 or needs 64 bits, the
    constants, and the device's compute capability. ``keys`` states them instead. Where a fact isn't among them, nothing
    is assumed about it; you may add others for ``options`` and constants.

    ``options`` are those of Triton's compilation, such as ``{"num_warps": 8}``, or a function that gets the key.
    ``arch`` is a compute capability such as 90, or a list of them, in place of that of the device. For HIP it is a name
    such as ``"gfx942"``, or a list of them. ``max_entries`` and ``cache`` are those of
    :func:`~tvm_ffi_codegen.specialize`. The cache knows the kernel's source and Triton's version; if you pass
    functions, ``version`` names what they return.

    For an ``Optional[Tensor(...)]`` there is one more key, whether it is given. In the variant for None the kernel's
    parameter is the constant None.
    """
    signature = as_signature(signature)
    bound = dict(_check.mapping("bind", bind, "tensors, expressions, numbers or functions by names"))
    facts = _Facts(signature, _parameters(kernel, signature, bound))
    listed = [arch] if isinstance(arch, (int, str)) else arch
    archs = None if listed is None else _check.listed("arch", listed, "int or str", as_arch)
    stated = facts.keys(capability=archs is None) if keys is None else keys
    facts.names = _by_expression(stated, signature)
    if not callable(grid):
        _check.extents("grid", grid)

    def variant(key: Key) -> tuple[Signature, Kernel]:
        import triton
        from triton.backends.compiler import GPUTarget

        types, constants, multiples = facts.of(key)
        names = list(types)
        source = triton.compiler.ASTSource(
            kernel,
            signature=types,
            constexprs={(names.index(name),): value for name, value in constants.items()},
            attrs={(names.index(name),): [["tt.divisibility", 16]] for name in multiples},
        )
        chosen = dict(options(key) if callable(options) else options or {})
        targets = [facts.capability(key)] if archs is None else archs
        compiled = [triton.compile(source, target=GPUTarget(*target_of(of)), options=chosen) for of in targets]
        own = facts.signature_of(key)
        bindings = {of.name: of.value for of in facts.parameters if of.name not in constants}
        return own, launch_of(compiled, own, grid, bindings, frozenset(constants))

    variant.__doc__ = kernel.fn.__doc__
    if cache is not None:
        version = _version(kernel, [grid, bound, options, archs], version)
    return specialize(signature, keys=stated, max_entries=max_entries, cache=cache, version=version)(variant)


def as_arch(what: str, value: object) -> int | str:
    """Accepts a compute capability, or the name of an architecture of HIP."""
    if isinstance(value, str) and re.fullmatch(r"gfx[0-9a-f]+", value):
        return value
    if isinstance(value, str):
        raise ValueError(f'{what}: expected a compute capability such as 90, or a name such as "gfx942", got {value!r}')
    return _check.integer(what, value)


def target_of(arch: int | str) -> tuple[str, int | str, int]:
    """The backend, architecture and threads of a warp, as Triton names them."""
    if isinstance(arch, int):
        return "cuda", arch, 32
    # the last two digits are the minor version and the stepping
    return "hip", arch, 64 if int(arch[len("gfx") : -2]) < 10 else 32


@dataclass(frozen=True)
class _Parameter:
    """A parameter of the kernel with the value that is bound to it."""

    name: str
    #: ``constant``, ``tensor``, ``integer``, or Triton's type of a number whose value isn't specialised.
    kind: str
    value: Any
    #: The type in the kernel's annotation, or an empty string.
    stated: str
    #: Whether Triton may compile other code for some values or addresses.
    is_specialized: bool
    #: Whether the elements are only read.
    is_const: bool
    #: Whether the integer may need 64 bits.
    is_wide: bool = False


def _parameters(kernel: Any, signature: Signature, bind: Mapping[str, BindingByKey]) -> list[_Parameter]:
    """The kernel's parameters, in order."""
    if not hasattr(kernel, "params") or not hasattr(kernel, "fn"):
        raise _check._wrong("kernel", "a kernel under @triton.jit", kernel)
    names = [of.name for of in kernel.params]
    stray = sorted(set(bind) - set(names))
    if stray:
        raise KernelError(f"bind: the kernel has no parameter `{stray[0]}` (it has {', '.join(names)})")
    types = {of["name"]: of["type"] for of in signature.structure["parameters"]}
    parameters = []
    for of in kernel.params:
        if of.name in bind:
            value = bind[of.name]
        elif of.name in types or of.name in signature.dim_vars:
            value = of.name
        elif of.has_default:
            value = of.default
        else:
            raise KernelError(f"`{of.name}` is neither bound nor a name of the signature {signature}")
        kind, is_wide = _kind_of(of, value, types)
        is_specialized = not (of.do_not_specialize or (kind == "tensor" and of.do_not_specialize_on_alignment))
        stated = of.annotation_type
        parameters.append(_Parameter(of.name, kind, value, stated, is_specialized, of.is_const, is_wide))
    return parameters


def _kind_of(of: Any, value: Any, types: Mapping[str, Any]) -> tuple[str, bool]:
    """The kind of a parameter, and whether it is an integer that may need 64 bits."""
    if of.is_constexpr or value is None:
        return "constant", False
    if callable(value):
        raise KernelError(f"`{of.name}` is bound to a function, and only a constant of the kernel can be")
    if not isinstance(value, str):
        kind = "u1" if isinstance(value, bool) else "fp32" if isinstance(value, float) else "integer"
        return kind, kind == "integer" and not _LEAST <= value <= _MOST
    type = types.get(value, {"kind": "dimension"})
    if _tensor_of(type) is not None:
        return "tensor", False
    if type["kind"] in ("bool", "int"):
        return ("u1" if type["kind"] == "bool" else "integer"), False
    if type["kind"] == "scalar":
        name = type["name"]
        if name == "bool":
            return "u1", False
        if "float" in name:
            return "fp32", False
        return "integer", name in ("int64", "uint32", "uint64")
    if type["kind"] == "dimension":
        return "integer", True
    raise KernelError(f"`{of.name}` is bound to `{value}`, which is neither a tensor nor a number")


def _tensor_of(type: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The type of a tensor, also of one that may be None; None for other types."""
    if type["kind"] == "optional":
        (type,) = type["of"]
    return type if type["kind"] == "tensor" else None


class _Facts:
    """The facts that Triton compiles different code for: their keys, and the meaning of a key's values."""

    def __init__(self, signature: Signature, parameters: list[_Parameter]) -> None:
        self.signature, self.parameters = signature, parameters
        self.types = {of.name: of.type for of in signature.parameters}
        self.dtypes = {
            of["name"]: tensor["dtype"]
            for of in signature.structure["parameters"]
            if (tensor := _tensor_of(of["type"])) is not None
        }
        #: The tensors that may be None.
        self.optional = {name for name in self.dtypes if self.types[name].startswith("Optional[")}
        #: The names of the keys by their expressions.
        self.names: dict[str, str] = {}

    def has(self, name: str) -> bool:
        """True if the signature has a parameter or a dimension of this name."""
        return name in self.types or name in self.signature.dim_vars

    def keys(self, *, capability: bool) -> list[str]:
        """The keys of all facts that the signature leaves open."""
        for name in self.optional:
            if self._dtype(name) is None:
                raise KernelError(f"`{name}` may be None, which has no dtype: expected a dtype of its own, got any")
        pointers = [of for of in self.parameters if of.kind == "tensor"]
        integers = [of for of in self.parameters if of.kind == "integer" and isinstance(of.value, str)]
        keys = [_given(of.value) for of in pointers if of.value in self.optional]
        keys += [f"{of.value}.dtype" for of in pointers if self._dtype(of.value) is None]
        keys += [self._aligned(of.value) for of in pointers if of.is_specialized and not self._is_aligned(of.value)]
        for of in integers:
            if of.is_specialized and not is_multiple(self.signature, of.value, 16):
                keys += [_one(of.value), _multiple(of.value)]
            if of.is_wide and not of.stated:
                keys.append(self._narrow(of.value))
        keys += [of.value for of in self.parameters if of.kind == "constant" and isinstance(of.value, str)]
        if capability:
            always = [of.value for of in pointers if of.value not in self.optional]
            if not always:
                raise KernelError("arch: expected a compute capability for a kernel without tensors")
            keys.append(f"{always[0]}.device.capability")
        return list(dict.fromkeys(keys))

    def of(self, key: Key) -> tuple[dict[str, str], dict[str, Any], list[str]]:
        """Triton's types of the parameters, the values of constants, and the parameters that are multiples of 16."""
        types, constants, multiples = {}, {}, []
        for of in self.parameters:
            types[of.name] = of.kind
            if of.kind == "constant":
                types[of.name], constants[of.name] = "constexpr", self._constant(key, of)
            elif self._is_none(key, of):
                types[of.name], constants[of.name] = "constexpr", None
            elif of.kind == "tensor":
                dtype = self._dtype(of.value) or self._required(key, f"{of.value}.dtype", of.name)
                if str(dtype) not in _POINTERS:
                    raise KernelError(f"`{of.name}` would lead to elements of {dtype}, which Triton doesn't have")
                types[of.name] = of.stated or f"*{'k' if of.is_const else ''}{_POINTERS[str(dtype)]}"
                if of.is_specialized and (self._is_aligned(of.value) or self._told(key, self._aligned(of.value))):
                    multiples.append(of.name)
            elif of.kind == "integer":
                if self._is_one(key, of):
                    types[of.name], constants[of.name] = "constexpr", 1
                    continue
                types[of.name] = of.stated or ("i64" if self._is_wide(key, of) else "i32")
                if self._is_multiple(key, of):
                    multiples.append(of.name)
            else:
                types[of.name] = of.stated or of.kind
        return types, constants, multiples

    def capability(self, key: Key) -> int:
        """The compute capability in a key."""
        for expression, name in self.names.items():
            if re.fullmatch(r"\w+\.device\.capability", expression):
                return int(key[name])
        raise KernelError("no key tells the device's compute capability: state `x.device.capability`, or pass arch=")

    def signature_of(self, key: Key) -> Signature:
        """The signature with all that Triton assumes for a key."""
        changed = {}
        for of in self.parameters:
            if self._is_none(key, of):
                changed[of.value] = "None"
            elif of.kind == "tensor":
                changed[of.value] = _narrowed(
                    self._tensor(of.value),
                    self._dtype(of.value) or key[self.names[f"{of.value}.dtype"]],
                    of.is_specialized and self._told(key, self._aligned(of.value)),
                )
        text = self.signature.text
        for parameter in self.signature.parameters:
            stated, name = f"{parameter.name}: {parameter.type}", parameter.name
            # a dispatch passes all arguments, and a tensor can't default to None
            default = f" = {parameter.default}" if self.optional and parameter.default is not None else ""
            text = with_parameter(text, stated + default, f"{name}: {changed.get(name, parameter.type)}")
        facts = []
        for of in self.parameters:
            if not isinstance(of.value, str):
                continue
            if of.kind == "integer" and self._is_one(key, of):
                facts.append(f"({of.value}) == 1")
            elif of.kind == "integer" and self._is_multiple(key, of) and not is_multiple(self.signature, of.value, 16):
                facts.append(f"({of.value}) % 16 == 0")
        new = [fact for fact in dict.fromkeys(facts) if not self._is_stated(fact)]
        if new:
            text += (", " if self.signature.where else " where ") + ", ".join(new)
        return Signature(text, locations=self.signature._locations)

    def _tensor(self, name: str) -> str:
        """The type of a tensor, also of one that may be None."""
        type = self.types[name]
        return type[len("Optional[") : -1] if name in self.optional else type

    def _is_none(self, key: Key, of: _Parameter) -> bool:
        """True if the variant is for a tensor that is None."""
        if of.kind != "tensor" or of.value not in self.optional:
            return False
        return not self._required(key, _given(of.value), of.name)

    def _told(self, key: Key, expression: str) -> Any:
        """The value of an expression that is a key; False for one that isn't."""
        name = self.names.get(_spaced(expression))
        return False if name is None else key[name]

    def _required(self, key: Key, expression: str, parameter: str) -> Any:
        name = self.names.get(_spaced(expression))
        if name is None:
            raise KernelError(f"keys: `{parameter}` needs a variant for each value of `{expression}`: state it there")
        return key[name]

    def _constant(self, key: Key, of: _Parameter) -> Any:
        if callable(of.value):
            return of.value(key)
        return self._required(key, of.value, of.name) if isinstance(of.value, str) else of.value

    def _is_one(self, key: Key, of: _Parameter) -> bool:
        if not isinstance(of.value, str):
            return of.is_specialized and of.value == 1
        return of.is_specialized and bool(self._told(key, _one(of.value)))

    def _is_multiple(self, key: Key, of: _Parameter) -> bool:
        if not of.is_specialized:
            return False
        if not isinstance(of.value, str):
            divides: bool = of.value % 16 == 0
            return divides
        return is_multiple(self.signature, of.value, 16) or bool(self._told(key, _multiple(of.value)))

    def _is_wide(self, key: Key, of: _Parameter) -> bool:
        if not isinstance(of.value, str):
            return of.is_wide
        narrow = _spaced(self._narrow(of.value))
        return of.is_wide and narrow in self.names and not key[self.names[narrow]]

    def _narrow(self, value: str) -> str:
        """The question whether an integer fits 32 bits. Dimensions are not negative."""
        most = f"{_operand(value)} <= {_MOST}"
        return f"{_operand(value)} >= {_LEAST} and {most}" if self.types.get(value) == "int64" else most

    def _dtype(self, tensor: str) -> str | None:
        """The dtype that the signature states for a tensor."""
        dtype = self.dtypes[tensor]
        return dtype if isinstance(dtype, str) and dtype != "any" else None

    def _aligned(self, tensor: str) -> str:
        """The question whether a tensor's address is a multiple of 16."""
        aligned = f"is_aligned({tensor}, 16)"
        # None has no address
        return f"{_given(tensor)} and {aligned}" if tensor in self.optional else aligned

    def _is_aligned(self, tensor: str) -> bool:
        return align_of(self._tensor(tensor)) % 16 == 0

    def _is_stated(self, fact: str) -> bool:
        return constraint(self.signature, fact) in self.signature.where


def _operand(expression: str) -> str:
    """An expression as an operand of another one."""
    return expression if re.fullmatch(r"\w+", expression) else f"({expression})"


def _given(tensor: str) -> str:
    return f"{tensor}.given"


def _one(value: str) -> str:
    return f"{_operand(value)} == 1"


def _multiple(value: str) -> str:
    return f"{_operand(value)} % 16 == 0"


def _spaced(expression: str) -> str:
    """An expression without the spaces that don't matter, to compare expressions by."""
    return re.sub(r"\s*([^\w\s])\s*", r"\1", " ".join(expression.split()))


def _by_expression(keys: StatedKeys, signature: Signature) -> dict[str, str]:
    """The names of keys by their expressions."""
    read = Keys(keys, signature)
    return {_spaced(of): name for name, of in zip(read.names, read.expressions)}


def _narrowed(type: str, dtype: object, is_aligned: bool) -> str:
    """A tensor's type with a dtype, and with an alignment of 16 bytes."""
    # only the shape and strides have brackets, and the dtype follows the shape
    end = type.index("]") + 1
    shape, (_, *keywords) = type[len("Tensor(") : end], type[end + len(", ") : -1].split(", ")
    if is_aligned:
        keywords = [*(of for of in keywords if not of.startswith("align=")), "align=16"]
    return f"Tensor({', '.join([shape, str(dtype), *keywords])})"


def _version(kernel: Any, stated: list[Any], version: str | None) -> str:
    """Names all that decides what Triton compiles for a key."""
    import triton

    grid, bound, options, _ = stated
    if version is None and any(map(callable, [grid, options, *bound.values()])):
        raise ValueError("version: expected a str with a cache, which can't tell what functions of the key return")
    plain = [of if not callable(of) else "function" for of in stated if not isinstance(of, Mapping)]
    names = {name: "function" if callable(of) else repr(of) for name, of in bound.items()}
    mapping = dict(options) if isinstance(options, Mapping) else {}
    return f"triton {triton.__version__} {kernel.cache_key} {plain} {sorted(names.items())} {mapping} {version or ''}"
