"""TileLang kernels: host code from what TileLang lowers a ``prim_func`` to, for the CPU and for CUDA.

Importing this module doesn't import TileLang. TileLang itself needs ``apache-tvm-ffi`` 0.1.12 in its process, and this
package works with that version too. A library that you link there loads with any later version.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Union

from . import _check, cc, cuda
from ._launch import launch_text
from ._structure import align_of, contiguous_strides
from ._text import quoted
from .dispatch import Dispatch, specialize
from .errors import CodegenError, KernelError
from .kernel import Kernel
from .key import Key, StatedKeys
from .library import Cache
from .signature import Signature, as_signature

__all__ = ["Compiled", "Compiler", "compile", "jit", "signature"]

#: Compiles TileLang's source for an architecture such as ``sm_90a``, or an empty str for this machine, to code.
Compiler = Callable[[str, str], bytes]
#: TileLang's numbers of the parameters that the function returns.
Outputs = Union[int, Iterable[int], None]

if TYPE_CHECKING:
    from typing_extensions import TypedDict, Unpack

    class CompileOptions(TypedDict, total=False):
        """Keyword arguments of :func:`compile`, without the target and the architectures."""

        out_idx: Outputs
        pass_configs: Mapping[Any, Any] | None
        options: Iterable[str]
        compiler: Compiler | None
        nvrtc: str | None

_TARGETS = {"c": "cpu", "cuda": "cuda"}
_SCALARS = {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
_FLOATS = {"float16", "bfloat16", "float32", "float64"}
#: The driver's swizzles, promotions and interleaves of tensor maps in bytes, by its numbers.
_SWIZZLES, _PROMOTIONS, _INTERLEAVES = (0, 32, 64, 128), (0, 64, 128, 256), (0, 16, 32)
#: The driver's numbers for the elements of tensor maps, by dtypes.
_ELEMENTS = {
    "bool": 0, "int8": 0, "uint8": 0, "int16": 1, "uint16": 1, "uint32": 2, "int32": 3, "uint64": 4, "int64": 5,
    "float16": 6, "float32": 7, "float64": 8, "bfloat16": 9,
}  # fmt: skip
#: The items of a launch by TileLang's tags of launch parameters.
_TAGS = {
    **{f"{tag}.{axis}": (item, place) for tag, item in (("blockIdx", "grid"), ("threadIdx", "block"))
       for place, axis in enumerate("xyz")},
    **{f"tir.cluster_dim_{axis}": ("cluster", place) for place, axis in enumerate("xyz")},
}  # fmt: skip
_SHARED_MEMORY = "tirx.use_dyn_shared_memory"


class Compiled(NamedTuple):
    """The result of :func:`compile`: the arguments of :func:`tvm_ffi_codegen.compile`, and a variant of a dispatch."""

    #: The stated signature, or that of the ``prim_func``.
    signature: Signature
    #: The kernel: C code, or the launch of CUDA code.
    kernel: Kernel
    #: The objects with the kernel's symbol, to link a library with. Empty for CUDA.
    objects: list[bytes]


def signature(func: Any, *, target: str = "c", out_idx: Outputs = None, align: int | None = None) -> Signature:
    """The signature of a ``prim_func``: its shapes, strides, dtypes and scalars.

    ``func`` is a ``prim_func``, or a kernel that ``tilelang.compile`` returned. ``target`` is ``"c"`` or ``"cuda"``. It
    decides the tensors' device. ``out_idx`` are the numbers of the parameters that the function returns, as for
    ``tilelang.compile``. ``align`` is the alignment of the tensors in bytes, by default 16 for CUDA, where TileLang
    accesses memory by vectors.
    """
    return _Function(func, out_idx).signature(_target(target), align)


def compile(
    func: Any,
    signature: Signature | str | None = None,
    *,
    target: str = "c",
    archs: Iterable[str] | None = None,
    out_idx: Outputs = None,
    pass_configs: Mapping[Any, Any] | None = None,
    options: Iterable[str] = (),
    compiler: Compiler | None = None,
    nvrtc: str | None = None,
) -> Compiled:
    """Lowers a ``prim_func`` with TileLang, compiles its source, and reads the launches from TileLang's host module.

    ``signature`` is by default the one that :func:`signature` returns. It may state more: constraints, defaults, marks,
    other parameters. Its parameters and symbols have the names of the ``prim_func``.

    With target ``"c"`` the machine's C++ compiler makes an object for the CPU. With ``"cuda"``, TileLang lowers the
    function once for each of ``archs`` (``["sm_80", "sm_90a"]``), and NVRTC compiles it. A call chooses the launch for
    its device. ``out_idx`` is that of :func:`signature`, and ``pass_configs`` that of ``tilelang.compile``.

    ``options`` are further options of the compiler. ``compiler`` replaces it, with a function of the source and the
    architecture that returns the code: use it for ``nvcc``. ``nvrtc`` is the file of NVRTC.

    Host code that a launch can't state, such as a window of the L2 cache, is a :class:`KernelError`.
    """
    device = _target(target)
    options = _check.texts("options", options)
    configs = dict(_check.mapping("pass_configs", pass_configs, "TileLang's configurations"))
    function = _Function(func, out_idx)
    if device == "cpu":
        if archs is not None:
            raise ValueError('archs: expected none for target "c"')
        lowered = [_Lowered(function, {"kind": "c"}, configs)]
    else:
        if not (listed := _check.texts("archs", [] if archs is None else archs)):
            raise ValueError('archs: expected at least one architecture for target "cuda", such as "sm_90a"')
        lowered = [
            _Lowered(function, {"kind": "cuda", "arch": re.sub("^compute_", "sm_", arch)}, configs, arch)
            for arch in sorted(dict.fromkeys(listed), key=_specific)
        ]
    align = max(of.align for of in lowered)
    own = function.signature(device, align)
    stated = own if signature is None else as_signature(signature)
    function.compare(stated, own, align)
    compiler = compiler or (_cpp(options) if device == "cpu" else _nvrtc(options, configs, nvrtc))
    codes = [compiler(of.source, of.arch) for of in lowered]
    if device == "cpu":
        return Compiled(stated, lowered[0].native(), codes)
    return Compiled(stated, _launched(lowered, codes), [])


def jit(
    factory: Callable[..., Any],
    signature: Signature | str,
    *,
    keys: StatedKeys,
    target: str = "c",
    archs: Iterable[str] | None = None,
    max_entries: int | None = None,
    cache: Cache | None = None,
    version: str | None = None,
    **options: Unpack[CompileOptions],
) -> Dispatch:
    """Makes a function of a factory of ``prim_func``s. A call that needs a new variant lets TileLang compile it.

    ``factory`` is a Python function, or one under ``@tilelang.jit``, that returns a ``prim_func``. ``keys`` maps its
    parameters to expressions of the signature, such as ``{"K": "k", "dtype": "x.dtype"}``. A dtype is passed as its
    name. Each variant has the signature of its own ``prim_func``, and gets the arguments in their order.

    Without ``archs``, a variant for CUDA is compiled for the device of the call. ``options`` are those of
    :func:`compile`, the others those of :func:`~tvm_ffi_codegen.specialize`.
    """
    signature, of_device = as_signature(signature), None
    named = dict(_check.mapping("keys", keys, "expressions by the factory's parameters"))
    if _target(target) == "cuda" and archs is None:
        tensors = [of.name for of in signature.parameters if of.type.startswith("Tensor(")]
        if not tensors:
            raise KernelError("archs: expected architectures for a signature without tensors")
        of_device = "compute_capability"
        named[of_device] = f"{tensors[0]}.device.capability"

    def variant(key: Key) -> Compiled:
        values: dict[str, Any] = {
            name: value if isinstance(value, (bool, int, str)) else str(value) for name, value in key.items()
        }
        chosen = archs
        if of_device:
            capability = values.pop(of_device)
            # from Hopper on, TileLang uses instructions of one architecture alone
            chosen = [f"sm_{capability}{'a' if capability >= 90 else ''}"]
        make = getattr(factory, "get_tir", factory)
        return compile(make(**values), target=target, archs=chosen, **options)

    variant.__doc__ = getattr(factory, "__doc__", None)
    return specialize(signature, keys=named, max_entries=max_entries, cache=cache, version=version)(variant)


class _Function:
    """A ``prim_func`` with the names that a signature has for its parameters."""

    def __init__(self, func: Any, out_idx: Outputs) -> None:
        from tvm import tirx

        made = getattr(func, "prim_func", func)
        expected = "a prim_func of TileLang, or a kernel of tilelang.compile"
        self.func = _check.instance("func", made, tirx.PrimFunc, expected)
        self.name = str(self.func.attrs["global_symbol"])
        #: The buffers of tensors and the variables of scalars, by their names, in order.
        self.parameters: dict[str, Any] = {}
        for of in self.func.params:
            part = self.func.buffer_map[of] if of in self.func.buffer_map else of
            if part.name in self.parameters:
                raise KernelError(f"`{self.name}` has two parameters `{part.name}`: name them differently")
            self.parameters[part.name] = part
        self.buffers = {name: of for name, of in self.parameters.items() if isinstance(of, tirx.Buffer)}
        if out_idx is None:
            out_idx = getattr(func, "out_idx", None)
        self.outputs = self._outputs(out_idx)
        #: The text for each tensor that launches name: a name of the signature, or its result.
        self.texts = {name: name for name in self.parameters}
        for place, name in enumerate(self.outputs):
            self.texts[name] = "result" if len(self.outputs) == 1 else f"result[{place}]"
        self.symbols = self._symbols()

    def _outputs(self, out_idx: Any) -> list[str]:
        """The names of the tensors that the function returns."""
        names, outputs = list(self.parameters), []
        for number in [out_idx] if isinstance(out_idx, int) else out_idx or ():
            number = _check.integer("out_idx", number)
            if not -len(names) <= number < len(names) or names[number] not in self.buffers:
                raise KernelError(f"out_idx: expected the number of a tensor of `{self.name}`, got {number}")
            outputs.append(names[number])
        return list(dict.fromkeys(outputs))

    def _symbols(self) -> dict[str, Any]:
        """The variables of shapes and strides, by their names."""
        from tvm import tirx

        found: dict[str, Any] = {of.name: of for of in self.parameters.values() if isinstance(of, tirx.Var)}

        def note(node: Any) -> None:
            if isinstance(node, tirx.Var) and not found.setdefault(node.name, node).same_as(node):
                raise KernelError(f"`{self.name}` has two symbols `{node.name}`: use one T.dynamic for both")

        for buffer in self.buffers.values():
            for dimension in [*buffer.shape, *buffer.strides]:
                tirx.stmt_functor.post_order_visit(dimension, note)
        clash = sorted(set(found) & set(self.buffers))
        if clash:
            raise KernelError(f"`{self.name}` has a tensor and a symbol `{clash[0]}`: name them differently")
        return found

    def signature(self, device: str, align: int | None) -> Signature:
        aligned = align if align is not None else 16 if device == "cuda" else 1
        types = {name: self._type(name, device, aligned) for name in self.parameters if name not in self.outputs}
        returned = [self._type(name, device, 1) for name in self.outputs]
        returns = f"Tuple[{', '.join(returned)}]" if len(returned) > 1 else returned[0] if returned else None
        return Signature.build(self.name, types, returns=returns)

    def _type(self, name: str, device: str, align: int) -> str:
        part = self.parameters[name]
        dtype = str(part.dtype)
        if name not in self.buffers:
            if dtype not in _SCALARS | _FLOATS | {"bool", "handle"}:
                raise KernelError(f"`{name}` is a {dtype}, which no scalar of a signature is")
            return dtype
        text = _Expression({of: of for of in self.symbols}, f"`{name}`")
        parts = [f"[{', '.join(map(text, part.shape))}]", dtype]
        if len(part.strides) and not _are_equal(part.strides, contiguous_strides(part.shape)):
            parts.append(f"strides=[{', '.join(map(text, part.strides))}]")
        if device == "cuda":
            parts.append('device="cuda"')
        if align > 1:
            parts.append(f"align={align}")
        return f"Tensor({', '.join(parts)})"

    def compare(self, stated: Signature, own: Signature, align: int) -> None:
        """Checks that a signature states what the kernel was compiled for."""
        types = {of["name"]: of["type"] for of in stated.structure["parameters"]}
        texts = {of.name: of.type for of in stated.parameters}
        own_texts = {of.name: of.type for of in own.parameters}
        for of in own.structure["parameters"]:
            name, type = of["name"], of["type"]
            expected = own_texts[name]
            if name not in types:
                raise KernelError(f"signature: expected a parameter `{name}: {expected}`, got {stated}")
            if type["kind"] != "tensor":
                continue
            _same_tensor(f"`{name}`", types[name], texts[name], type, expected)
            if align_of(texts[name]) % align:
                raise KernelError(f"`{name}`: expected align={align} for TileLang's vectors, got {texts[name]}")
        _same_tensor("the result", stated.structure["result"], stated.returns, own.structure["result"], own.returns)
        missing = sorted(set(self.symbols) - set(stated.dim_vars) - set(types))
        if missing:
            raise KernelError(f"signature: expected a symbol `{missing[0]}`, as in {own}, got {stated}")


def _same_tensor(what: str, stated: Any, text: str | None, own: Any, expected: str | None) -> None:
    """Checks that a type has the shape, strides, dtype and kind of device of the one that TileLang compiled for."""
    if _facts(stated) != _facts(own):
        raise KernelError(f"{what}: expected {expected or 'no result'}, got {text or 'no result'}")


def _facts(type: Any) -> Any:
    """The properties of a type that the kernel's code relies on."""
    if isinstance(type, Mapping) and type.get("kind") == "tensor":
        device = type["device"]
        return type["dtype"], type["shape"], type["strides"], device["kind"] if isinstance(device, Mapping) else device
    if isinstance(type, Mapping) and type.get("kind") == "tuple":
        return [_facts(of) for of in type["of"]]
    return type


class _Lowered:
    """A ``prim_func`` that TileLang has lowered for one target: its source, and the statements of its host function."""

    def __init__(
        self, function: _Function, target: Mapping[str, str], configs: Mapping[Any, Any], arch: str = ""
    ) -> None:
        import tilelang
        import tvm

        self.function, self.arch = function, arch
        of_target = tvm.target.Target(dict(target))
        with tvm.transform.PassContext(opt_level=3, config=dict(configs)), of_target:
            artifact = tilelang.lower(function.func, target=of_target)
        self.source = str(artifact.kernel_source)
        #: The alignment that the widest access of the source needs. A CPU needs none.
        self.align = 1 if not arch else 32 if re.search(r"\b(load|store)_global_256", self.source) else 16
        self.device = {str(of.attrs["global_symbol"]): of for of in artifact.device_mod.functions.values()}
        hosts = list(artifact.host_mod.functions.values())
        if len(hosts) != 1:
            raise KernelError(f"expected one host function of `{function.name}`, got {len(hosts)}")
        self.host = _Host(function, self.device, hosts[0])

    def native(self) -> Kernel:
        """The kernel of a C function that returns a status."""
        calls = [of for of in self.host.statements if isinstance(of, _Call)]
        if len(calls) != 1 or len(self.host.statements) != 1:
            raise KernelError(f"expected one call of a C function in the host code of `{self.function.name}`")
        return Kernel.symbol(calls[0].entry, args=calls[0].args, returns="status")


class _Call(NamedTuple):
    """A launch of a kernel, or the call of a C function."""

    entry: str
    args: list[str]
    items: dict[str, Any]

    def text(self, image: str = "") -> str:
        launch = launch_text(quoted(self.entry), {**self.items, "args": self.args})
        return f"{launch}{image and f' image={image}'};"


class _Host:
    """Reads the host function: the statements behind TileLang's checks of arguments, as text or as calls."""

    def __init__(self, function: _Function, device: Mapping[str, Any], host: Any) -> None:
        self.function, self.device = function, device
        #: The texts of TileLang's variables in a launch, by their names.
        self.names = {**function.texts, **{name: name for name in function.symbols}}
        #: The tensor maps, by the names of their variables.
        self.maps: dict[str, str] = {}
        self.buffers = {of.data.name: of for of in function.buffers.values()}
        self.names.update({of.data.name: function.texts[name] for name, of in function.buffers.items()})
        #: Lines of host text, and calls.
        self.statements: list[Union[str, _Call]] = []
        self.visit(_scope(host.body, function.name))

    def visit(self, statement: Any) -> None:
        from tvm import tirx

        if isinstance(statement, tirx.SeqStmt):
            for of in statement:
                self.visit(of)
        elif isinstance(statement, tirx.AttrStmt) and statement.attr_key == "tl.assume":
            self.visit(statement.body)
        elif isinstance(statement, tirx.Bind):
            self.bind(statement)
        elif isinstance(statement, tirx.Evaluate):
            self.evaluate(statement.value)
        elif isinstance(statement, tirx.IfThenElse):
            self.choose(statement)
        elif isinstance(statement, tirx.AllocBuffer):
            self.allocate(statement.buffer)
        elif not isinstance(statement, (tirx.AssertStmt, tirx.DeclBuffer)):
            raise self.unknown(type(statement).__name__)

    def unknown(self, what: object) -> KernelError:
        return KernelError(f"the host code of `{self.function.name}` has {what}, but a launch can't state it")

    def text(self, value: Any) -> str:
        return _Expression(self.names, f"the host code of `{self.function.name}`")(value)

    def bind(self, statement: Any) -> None:
        from tvm import tirx

        value, name = statement.value, statement.var.name
        if isinstance(value, tirx.Call):
            if not hasattr(value.op, "name_hint") and value.op.name == "tirx.tvm_stack_alloca":
                # the room for a tensor map, which a later call fills
                return
            entry: str | None = getattr(value.op, "name_hint", None)
            if entry is not None and entry in self.device:
                self.statements.append(_Call(entry, self.arguments(entry, list(value.args)), {}))
                return
        self.names[name] = f"({self.text(value)})"

    def evaluate(self, value: Any) -> None:
        from tvm import tirx

        if isinstance(value, tirx.IntImm):
            return
        if not isinstance(value, tirx.Call) or value.op.name != "tirx.tvm_call_packed":
            raise self.unknown(f"`{value}`")
        name, args = str(value.args[0].value), list(value.args[1:])
        if name in self.device:
            self.launch(name, args)
        elif name == "__tvm_tensormap_create_tiled":
            self.tensor_map(args)
        else:
            raise self.unknown(f"a call of `{name}`")

    def launch(self, entry: str, args: list[Any]) -> None:
        attrs = self.device[entry].attrs
        tags = [str(of) for of in attrs["tirx.kernel_launch_params"]]
        count = len(args) - len(tags)
        items: dict[str, Any] = {}
        for tag, value in zip(tags, map(self.text, args[count:])):
            if tag == _SHARED_MEMORY:
                items["shared_memory"] = value
            elif tag in _TAGS:
                item, place = _TAGS[tag]
                extents = items.setdefault(item, [])
                extents += ["1"] * (place + 1 - len(extents))
                extents[place] = value
            else:
                raise self.unknown(f"a launch with `{tag}`")
        items["cooperative"] = bool(attrs.get("use_cooperative_groups"))
        items["programmatic_dependent_launch"] = bool(attrs.get("has_cuda_pdl_sync"))
        # not every device supports clusters of more than 8 blocks
        items["non_portable_cluster"] = prod(map(int, items.get("cluster", ["1"]))) > 8
        self.statements.append(_Call(entry, self.arguments(entry, args[:count]), items))

    def arguments(self, entry: str, args: list[Any]) -> list[str]:
        parameters = list(self.device[entry].params)
        if len(parameters) != len(args):
            raise KernelError(f"`{entry}` has {len(parameters)} parameters, and its call passes {len(args)}")
        return [self.argument(*of) for of in zip(parameters, args)]

    def argument(self, parameter: Any, value: Any) -> str:
        from tvm import tirx

        dtype = str(parameter.dtype)
        if dtype == "handle":
            if isinstance(value, tirx.Var) and value.name in self.maps:
                return self.maps[value.name]
            if isinstance(value, tirx.Var) and value.name in self.names:
                return self.names[value.name]
            raise self.unknown(f"`{value}` as an address")
        if dtype in _SCALARS:
            return f"{dtype}({self.text(value)})"
        if isinstance(value, tirx.Var) and value.name in self.function.parameters:
            return f"cast({value.name}, {dtype})"
        raise self.unknown(f"`{value}` as a {dtype}")

    def tensor_map(self, args: list[Any]) -> None:
        """A tensor map. The driver's lists begin with the fastest dimension, the signature's with the slowest."""
        descriptor, dtype, rank, address, *rest = args
        rank, buffer = int(rank), self.buffers.get(getattr(address, "name", ""))
        sizes, strides, box, steps = (rest[place * rank : (place + 1) * rank][::-1] for place in range(4))
        interleave, swizzle, promotion, fill = map(int, rest[4 * rank :])
        if buffer is None:
            raise self.unknown(f"a tensor map of `{address}`")
        elements = _ELEMENTS.get(str(buffer.dtype), 0 if "float8" in str(buffer.dtype) else None)
        size = (buffer.dtype.bits + 7) // 8
        compact = list(buffer.strides) or contiguous_strides(buffer.shape)
        if (
            int(dtype) != elements
            or not _are_equal(sizes, buffer.shape)
            or not _are_equal(strides, [of * size for of in compact])
        ):
            raise self.unknown(f"a tensor map that isn't the one of `{buffer.name}`, of shape {list(sizes)}")
        extents, steps = ", ".join(map(self.text, box)), [int(of) for of in steps]
        items = [f"box=({extents},)"]
        if set(steps) != {1}:
            items.append(f"element_strides=({', '.join(map(str, steps))},)")
        items += [
            f"{name}={numbers[number]}"
            for name, numbers, number in (
                ("interleave", _INTERLEAVES, interleave),
                ("swizzle", _SWIZZLES, swizzle),
                ("l2_promotion", _PROMOTIONS, promotion),
            )
            if number
        ]
        if fill:
            items.append("fill=nan")
        self.maps[descriptor.name] = f"tensor_map({', '.join([self.names[address.name], *items])})"

    def choose(self, statement: Any) -> None:
        condition = _Condition(self.names, self.function)(statement.condition)
        for keyword, body in ((f"if {condition} {{", statement.then_case), ("} else {", statement.else_case)):
            if body is not None:
                self.statements.append(keyword)
                self.visit(body)
        self.statements.append("}")

    def allocate(self, buffer: Any) -> None:
        """Memory for the time of the call, on the device of the first tensor."""
        inputs = [name for name in self.function.buffers if name not in self.function.outputs]
        if not inputs or buffer.data.name in self.names:
            raise self.unknown(f"memory `{buffer.name}`")
        shape = ", ".join(map(self.text, buffer.shape))
        self.statements.append(f"let {buffer.name} = alloc([{shape}], {buffer.dtype}, like={inputs[0]});")
        self.names[buffer.data.name], self.buffers[buffer.data.name] = buffer.name, buffer


class _Expression:
    """Converts TVM's integer expressions to those of a signature."""

    def __init__(self, names: Mapping[str, str], where: str) -> None:
        self.names, self.where = names, where

    def __call__(self, value: Any) -> str:
        from tvm import tirx

        if isinstance(value, (int, tirx.IntImm)):
            return str(int(value))
        if isinstance(value, tirx.Var) and value.name in self.names:
            return self.name(value)
        if isinstance(value, tirx.Cast) and "int" in str(value.dtype):
            # the launch computes in 64 bits, and checks that each argument fits its type
            return self(value.value)
        if isinstance(value, (tirx.Min, tirx.Max)):
            return f"{'min' if isinstance(value, tirx.Min) else 'max'}({self(value.a)}, {self(value.b)})"
        for of, operator in _operators(tirx):
            if isinstance(value, of):
                return self.operation(operator, value)
        is_shift = isinstance(value, tirx.Call) and getattr(value.op, "name", "") in _SHIFTS
        if is_shift and isinstance(value.args[1], tirx.IntImm):
            return f"{self.operand(value.args[0])} {_SHIFTS[value.op.name]} {1 << int(value.args[1])}"
        raise KernelError(f"{self.where} has the expression `{value}`, which a signature has no form for")

    def name(self, value: Any) -> str:
        return self.names[value.name]

    def operation(self, operator: str, value: Any) -> str:
        return f"{self.operand(value.a)} {operator} {self.operand(value.b)}"

    def operand(self, value: Any) -> str:
        text = self(value)
        return text if re.fullmatch(r"\w+(\(\w+\))?", text) else f"({text})"


#: Shifts by a constant as operations of a signature, by TVM's names.
_SHIFTS = {"tirx.shift_right": "//", "tirx.shift_left": "*"}


class _Condition(_Expression):
    """Converts TVM's conditions to those of host text, where all integers have 64 bits."""

    def __init__(self, names: Mapping[str, str], function: _Function) -> None:
        super().__init__(names, f"the host code of `{function.name}`")
        self.scalars = {name for name in function.parameters if name not in function.buffers}

    def __call__(self, value: Any) -> str:
        from tvm import tirx

        for of, operator in _comparisons(tirx):
            if isinstance(value, of):
                return self.operation(operator, value)
        if isinstance(value, tirx.Not):
            return f"not {self.operand(value.a)}"
        return super().__call__(value)

    def name(self, value: Any) -> str:
        is_number = value.name in self.scalars and str(value.dtype) in _SCALARS
        return f"int64({value.name})" if is_number else self.names[value.name]


def _operators(tirx: Any) -> list[tuple[Any, str]]:
    return [
        (tirx.Add, "+"), (tirx.Sub, "-"), (tirx.Mul, "*"), (tirx.FloorDiv, "//"), (tirx.FloorMod, "%"),
    ]  # fmt: skip


def _comparisons(tirx: Any) -> list[tuple[Any, str]]:
    return [
        (tirx.LT, "<"), (tirx.LE, "<="), (tirx.GT, ">"), (tirx.GE, ">="), (tirx.EQ, "=="), (tirx.NE, "!="),
        (tirx.And, "and"), (tirx.Or, "or"),
    ]  # fmt: skip


def _scope(body: Any, name: str) -> Any:
    """The part of a host function behind its checks."""
    from tvm import tirx

    found = []

    def note(node: Any) -> None:
        if isinstance(node, tirx.AttrStmt) and node.attr_key == "compute_scope":
            found.append(node.body)

    tirx.stmt_functor.post_order_visit(body, note)
    if len(found) != 1:
        raise KernelError(f"expected one scope of kernels in the host code of `{name}`, got {len(found)}")
    return found[0]


def _are_equal(some: Any, others: Any) -> bool:
    """Whether dimensions are the same, for all values of their symbols."""
    from tvm import arith

    some, others, analyzer = list(some), list(others), arith.Analyzer()
    return len(some) == len(others) and all(
        int(a) == int(b) if isinstance(a, int) and isinstance(b, int) else analyzer.can_prove_equal(a, b)
        for a, b in zip(some, others)
    )


def _launched(lowered: list[_Lowered], codes: list[bytes]) -> Kernel:
    """A kernel of one launch where that is all of the host code, and else a body in host text."""
    first = lowered[0].host.statements
    if len(first) == 1 and isinstance(first[0], _Call) and all(of.host.statements == first for of in lowered):
        return Kernel.launch(first[0].text()[:-1], codes)
    images = {of.arch: code for of, code in zip(lowered, codes)}
    blocks = [
        "\n".join(of.text(quoted(each.arch)) if isinstance(of, _Call) else of for of in each.host.statements)
        for each in lowered
    ]
    body = blocks[-1]
    # the last one also runs on devices that no image is for, where its launch says so
    for each, block in zip(lowered[-2::-1], blocks[-2::-1]):
        tensor = next(iter(name for name in each.function.buffers if name not in each.function.outputs), None)
        if tensor is None:
            raise KernelError("archs: expected one architecture for a function without tensors")
        body = f"if {_fits(each.arch, f'{tensor}.device.capability')} {{\n{block}\n}} else {{\n{body}\n}}"
    return Kernel.host(f"{{\n{body}\n}}", images=images)


def _specific(arch: str) -> tuple[bool, int, bool]:
    """The order in which a call tries architectures: machine code before PTX, and newer ones first."""
    found = re.fullmatch(r"(sm|compute)_(\d+)([af]?)", arch)
    if found is None:
        raise ValueError(f"archs: expected an architecture such as sm_90a or compute_80, got {arch!r}")
    return found.group(1) != "sm", -int(found.group(2)), not found.group(3)


def _fits(arch: str, capability: str) -> str:
    """The condition on a device's compute capability under which code for an architecture runs."""
    kind, number, suffix = re.fullmatch(r"(sm|compute)_(\d+)([af]?)", arch).groups()  # type: ignore[union-attr]
    if suffix == "a":
        return f"{capability} == {number}"
    least = f"{capability} >= {number}"
    return least if kind == "compute" else f"{least} and {capability} < {int(number) // 10 * 10 + 10}"


def _target(target: str) -> str:
    """The kind of device of a target."""
    if target not in _TARGETS:
        raise ValueError(f'target: expected "c" or "cuda", got {target!r}')
    return _TARGETS[target]


def _headers() -> list[str]:
    """The options for TileLang's own headers."""
    from tilelang.env import CUTLASS_INCLUDE_DIR, TILELANG_TEMPLATE_PATH

    return [f"-I{folder}" for folder in (TILELANG_TEMPLATE_PATH, CUTLASS_INCLUDE_DIR) if folder]


def _cpp(options: list[str]) -> Compiler:
    """The machine's C++ compiler, or the one that ``CXX`` names."""

    flags = ["-O3", "-w", *_headers(), *options]

    def compiled(source: str, arch: str) -> bytes:
        try:
            return cc.compile(source, options=flags, file="tilelang.cpp")
        except CodegenError as error:
            raise CodegenError(f"the C++ compiler can't compile TileLang's source:\n{error}") from None

    return compiled


def _nvrtc(options: list[str], configs: Mapping[Any, Any], nvrtc: str | None) -> Compiler:
    """NVRTC, with the headers of CUDA from NVIDIA's packages or from a toolkit."""

    def compiled(source: str, arch: str) -> bytes:
        folders, library = _toolkit()
        version = int(re.findall(r"#define CUDA_VERSION (\d+)", _file(folders, "cuda.h").read_text())[0])
        include = [*_headers(), *(f"-I{folder}" for folder in folders)]
        flags = ["-default-device", "-w", "--std=c++20", f"-D__CUDACC_VER_MAJOR__={version // 1000}"]
        flags += [part for of in configs.get("tl.device_compile_flags", ()) for part in shlex.split(of)]
        if configs.get("tl.enable_fast_math"):
            flags.append("--use_fast_math")
        # TileLang's own prelude for NVRTC
        text = f"#include <tl_templates/cuda/nvrtc_std.h>\n{source}"
        if "cudaGridDependencySynchronize" in source or "cudaTriggerProgrammaticLaunchCompletion" in source:
            text = f"#include <cuda_device_runtime_api.h>\n{text}"
        made = cuda.compile(text, [arch], [*include, *flags, *options], file="tilelang.cu", nvrtc=nvrtc or library)
        return made.images[0]

    return compiled


def _toolkit() -> tuple[list[Path], str | None]:
    """The directories with CUDA's headers, and the file of NVRTC that belongs to them; None for the machine's."""
    for folders, library in _toolkits():
        if _has(folders, "cuda.h") and _has(folders, "cuda/std/cstdint"):
            return folders, library
    raise CodegenError(
        "CUDA's headers weren't found: install nvidia-cuda-nvrtc, nvidia-cuda-runtime and nvidia-cuda-cccl, set "
        "CUDA_HOME, or pass compiler="
    )


def _toolkits() -> Iterator[tuple[list[Path], str | None]]:
    from tilelang.env import CUDA_HOME

    roots = cuda.package_folders("nvidia.cu13")
    yield [root / part for root in roots for part in ("include", "include/cccl")], _library(roots, "lib/libnvrtc.so.13")
    roots = [*cuda.package_folders("nvidia.cuda_runtime"), *cuda.package_folders("nvidia.cuda_cccl")]
    library = _library(cuda.package_folders("nvidia.cuda_nvrtc"), "lib/libnvrtc.so.12")
    yield [root / "include" for root in roots], library
    if CUDA_HOME:
        from tilelang.jit.adapter.nvrtc.include_paths import discover_cuda_include_paths

        yield [Path(of) for of in discover_cuda_include_paths(str(CUDA_HOME))], None


def _library(roots: list[Path], name: str) -> str | None:
    return next((str(root / name) for root in roots if (root / name).exists()), None)


def _has(folders: list[Path], name: str) -> bool:
    return any((folder / name).exists() for folder in folders)


def _file(folders: list[Path], name: str) -> Path:
    return next(folder / name for folder in folders if (folder / name).exists())
