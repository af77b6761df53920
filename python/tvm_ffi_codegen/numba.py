"""Numba kernels: Python functions of scalars and whole arrays, compiled for the types of a signature.

Importing this module imports Numba. ``import tvm_ffi_codegen`` doesn't import it.
"""

from __future__ import annotations

import ctypes
import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from types import FunctionType
from typing import Any, NamedTuple

import llvmlite.binding as llvm
import numba
import tvm_ffi.libinfo
from llvmlite import ir
from numba import types
from numba.core import cgutils, compiler, serialize
from numba.core.ccallback import CFunc
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher
from numba.core.errors import NumbaError
from numba.core.registry import cpu_target

from . import _check
from ._check import Extents
from ._structure import dim_text, with_parameter
from ._text import unused
from .compiled import CompiledFunction
from .dispatch import specialize
from .errors import KernelError
from .kernel import Kernel
from .key import Key
from .library import compile as compile_function
from .signature import Signature, as_signature

__all__ = ["aot", "cuda_kernel", "jit", "kernel"]

_NUMBERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)] + ["float32", "float64"]
#: Numba's types of scalars, by the names of dtypes.
_SCALARS = {"bool": types.boolean, "handle": types.voidptr, **{name: getattr(types, name) for name in _NUMBERS}}
_ITEMS = {
    **{name: of for name, of in _SCALARS.items() if name != "handle"},
    "complex64": types.complex64,
    "complex128": types.complex128,
}
#: The name that compiled code calls when an exception is raised.
_RAISE = "tvm_ffi_codegen_numba_raise"


def jit(
    signature: Signature | str,
    *,
    options: Mapping[str, Any] | None = None,
    cpu: str | None = None,
    max_entries: int | None = None,
) -> Callable[[Callable[..., Any]], CompiledFunction]:
    """Compiles a function with Numba for the types of a signature. Use it as a decorator::

        @tfc.numba.jit("saxpy(a: float32, x: Tensor([n], float32), y: Tensor([n], float32))")
        def saxpy(a, x, y):
            for i in range(x.shape[0]):
                y[i] += a * x[i]

    The result is a :class:`CompiledFunction`. If the signature has tensors of dtype ``any`` or of any rank (``[...]``),
    it is a :class:`Dispatch`: Numba compiles a variant for each combination of dtypes and ranks that a call has.
    Tensors with ``strides=any`` are accepted too. ``options`` are those of ``numba.njit``, such as ``{"fastmath":
    True}``. ``cpu`` and ``max_entries`` are for a dispatch: the CPU of :func:`aot` for its variants, by default this
    machine's, and the maximum number of variants. For all else see :func:`kernel`.
    """
    signature = as_signature(signature)
    open_tensors = [of for of in signature.structure["parameters"] if of["type"]["kind"] == "tensor"]
    keys = [f"{of['name']}.dtype" for of in open_tensors if of["type"]["dtype"] == "any"]
    keys += [f"{of['name']}.ndim" for of in open_tensors if of["type"]["shape"] is None]

    def decorated(function: Callable[..., Any]) -> CompiledFunction:
        if not keys:
            own = _narrowed(signature, {})
            return compile_function(own, kernel(function, own, options=options), doc=function.__doc__)

        def variant(key: Key) -> tuple[Any, ...]:
            own = _narrowed(signature, key)
            native = _Native(function, own, options)
            # an object has no access to Python, so it loses the values of an exception
            if native.has_values_in_exceptions or native.missing():
                return own, native.kernel()
            return own, native.symbol_kernel(), [native.object(cpu or "host")]

        variant.__doc__ = function.__doc__
        return specialize(signature, keys=keys, max_entries=max_entries)(variant)

    return decorated


def kernel(
    function: Callable[..., Any], signature: Signature | str, *, options: Mapping[str, Any] | None = None
) -> Kernel:
    """Compiles a function with Numba and returns its kernel for this process.

    ``function`` is a plain function, one under ``@numba.njit`` or one under ``@numba.cfunc``. Its parameters are the
    signature's parameters and dimension variables of the same names, in any order. ``result`` is a returned tensor, and
    ``result_0``, ``result_1`` are several. A tensor is an array, and a dimension variable is an ``int64``. A function
    under ``@numba.cfunc`` keeps the types that it states, also pointers.

    An exception in the function is the error of the call. ``options`` are those of ``numba.njit``.
    """
    return _Native(function, as_signature(signature), options).kernel()


def aot(
    function: Callable[..., Any],
    signature: Signature | str,
    *,
    options: Mapping[str, Any] | None = None,
    cpu: str = "generic",
) -> tuple[Kernel, bytes]:
    """Compiles a function with Numba for a library, which runs without Numba and Python. Returns the kernel and the
    object that defines it::

        kernel, object = tfc.numba.aot(saxpy, signature)
        tfc.Library().add(signature, kernel).link("saxpy.so", objects=object)

    ``cpu`` is the minimum CPU, in LLVM's names; ``"host"`` is this machine's. A function that needs Numba's own
    libraries or Python is a :class:`KernelError` that lists their symbols: lists, dictionaries, ``print``, random
    numbers, ``parallel=True``, BLAS. Exceptions are errors of the call. Values in their messages that only the run
    knows are shown as ``<value>``. ``options`` are those of :func:`kernel`.
    """
    native = _Native(function, as_signature(signature), options)
    missing = native.missing()
    if missing:
        raise KernelError(
            f"`{native.name}` can't run without Python and Numba: expected code that needs the C library alone, got "
            f"references to {', '.join(missing)}"
        )
    return native.symbol_kernel(), native.object(cpu)


def cuda_kernel(
    function: Callable[..., Any],
    signature: Signature | str,
    *,
    grid: Extents,
    block: Extents,
    archs: Iterable[str],
    options: Mapping[str, Any] | None = None,
    **launch: Any,
) -> Kernel:
    """Compiles a CUDA kernel with numba-cuda and returns its launch.

    ``function`` is a plain function or one under ``@numba.cuda.jit``. Its parameters are those of :func:`kernel`. A
    signature may have more parameters than the function, for example for the ``grid`` or a ``stream``. ``archs`` are
    ``"compute_80"`` for PTX, which the driver compiles for later devices too, and ``"sm_80"`` for a cubin. ``options``
    are those of ``numba.cuda.compile``, such as ``{"fastmath": True}``. ``grid``, ``block`` and ``launch`` are those of
    :meth:`Kernel.cuda`, such as ``shared_memory=1024``.
    """
    from numba import cuda

    signature, own_options = as_signature(signature), getattr(function, "targetoptions", {})
    function = getattr(function, "py_func", function)
    _check.instance("function", function, FunctionType, "a Python function, or one under @numba.cuda.jit")
    items, scalars = {**_ITEMS, "float16": types.float16}, {**_SCALARS, "float16": types.float16}
    if hasattr(cuda.types, "bfloat16"):
        items["bfloat16"] = scalars["bfloat16"] = cuda.types.bfloat16
    values = _Names(signature, "cuda", items, scalars).of(function)
    kept = {name: own_options[name] for name in ("debug", "fastmath", "lineinfo", "opt") if name in own_options}
    options = {**kept, **_check.mapping("options", options, "values by names")}
    entry = f"{re.sub(r'[^A-Za-z0-9_]', '_', function.__name__)}_kernel"
    images = []
    for arch in _check.texts("archs", archs):
        stated = re.fullmatch(r"(sm|compute)_(\d+)", arch)
        if stated is None:
            raise ValueError(f'archs: expected architectures such as "sm_80" or "compute_80", got "{arch}"')
        capability = divmod(int(stated[2]), 10)
        types_of = types.void(*[of.type for of in values])
        try:
            ptx, _ = cuda.compile_ptx(function, types_of, cc=capability, abi="numba", **options)
        except _cuda_errors() as error:
            raise _refused(function.__name__, signature, error) from error
        # Numba's name has a number that differs between compilations
        [name] = re.findall(r"\.entry\s+([\w$]+)", ptx)
        image = ptx.replace(name, entry).encode()
        images.append(_cubin(image, arch) if stated[1] == "sm" else image)
    args = [arg for of in values for arg in of.args]
    return Kernel.cuda(images, entry, grid=grid, block=block, args=args, **launch)


def _cuda_errors() -> tuple[type[Exception], ...]:
    """The compiler's errors. Those of numba-cuda are classes of its own."""
    try:
        from numba.cuda.core.errors import NumbaError as cuda_error
    except ImportError:
        return (NumbaError,)
    return (NumbaError, cuda_error)


def _cubin(ptx: bytes, arch: str) -> bytes:
    """The machine code of PTX, made with NVIDIA's nvJitLink."""
    from cuda.core import Linker, LinkerOptions, ObjectCode

    return bytes(Linker(ObjectCode.from_ptx(ptx), options=LinkerOptions(arch=arch)).link("cubin").code)


class _Value(NamedTuple):
    """A parameter of a function."""

    name: str
    #: Numba's type.
    type: Any
    #: The kernel's arguments for it, in the form of a kernel's ``args``.
    args: list[str]


class _Names:
    """The values that a signature has for a function's parameters."""

    def __init__(self, signature: Signature, device: str, items: Mapping[str, Any], scalars: Mapping[str, Any]) -> None:
        self.signature, self.device, self.items, self.scalars = signature, device, items, scalars
        structure = signature.structure
        self.types = {of["name"]: of["type"] for of in structure["parameters"]}
        #: The tensors' paths in ``args``, their types, and their sizes in the text form.
        self.tensors: dict[str, tuple[str, dict[str, Any], list[str]]] = {}
        result = structure["result"]
        results = [] if result is None else result["of"] if result["kind"] == "tuple" else [result]
        for number, of in enumerate(results):
            is_one = of is result
            if of["kind"] == "tensor":
                name, path = ("result", "result") if is_one else (f"result_{number}", f"result[{number}]")
                self.tensors[name] = path, of, [dim_text(size) for size in of["shape"]]
        for name, of in self.types.items():
            if of["kind"] == "tensor":
                self.tensors[name] = name, of, [f"{name}.shape[{axis}]" for axis in range(len(of["shape"] or ()))]
        #: The type of a result that the function returns; None for tensors, which it gets as parameters.
        self.returns = result if results and results[0]["kind"] != "tensor" else None

    def of(self, function: Callable[..., Any], stated: Sequence[Any] | None = None) -> list[_Value]:
        """The values of a function's parameters. ``stated`` are the types that it was declared with."""
        values = []
        for number, of in enumerate(inspect.signature(function).parameters.values()):
            if of.kind not in (of.POSITIONAL_ONLY, of.POSITIONAL_OR_KEYWORD):
                raise KernelError(f"`{function.__name__}`: expected positional parameters, got `{of}`")
            values.append(self.value(of.name, None if stated is None else stated[number]))
        return values

    def value(self, name: str, stated: Any) -> _Value:
        if name in self.tensors:
            return self.tensor(name, stated)
        if name in self.types:
            return self.scalar(name, stated)
        if name in self.signature.dim_vars:
            type = types.int64 if stated is None else stated
            if not isinstance(type, types.Integer):
                raise KernelError(f"`{name}` is a dimension: expected an integer type, got {type}")
            return _Value(name, type, [f"{type.name}({name})"])
        known = ", ".join([*self.types, *self.signature.dim_vars, *(of for of in self.tensors if of not in self.types)])
        raise KernelError(f"expected parameters with names of the signature ({known}), got `{name}`")

    def scalar(self, name: str, stated: Any) -> _Value:
        of = self.types[name]
        own = self.scalars.get(of.get("name")) if of["kind"] == "scalar" else None
        if own is None:
            shown = next(each.type for each in self.signature.parameters if each.name == name)
            raise KernelError(
                f"`{name}`: expected a tensor on device {self.device}, or a scalar of {', '.join(self.scalars)}, got "
                f"{shown}"
            )
        if stated is None or stated == own:
            return _Value(name, own, [name])
        if not _is_number(own) or type(stated) is not type(own):
            raise KernelError(f"`{name}` is {of['name']} in the signature: expected a type of this kind, got {stated}")
        return _Value(name, stated, [f"cast({name}, {stated.name})"])

    def tensor(self, name: str, stated: Any) -> _Value:
        path, of, sizes = self.tensors[name]
        item = self.item(name, of)
        if isinstance(stated, types.RawPointer) or (isinstance(stated, types.CPointer) and stated.dtype == item):
            return _Value(name, stated, [path])
        contiguous = of["strides"] is None or not sizes
        array = types.Array(item, len(sizes), "C" if contiguous else "A") if stated is None else stated
        fits = isinstance(array, types.Array) and (array.dtype, array.ndim) == (item, len(sizes))
        if not fits or not (array.layout == "A" or (contiguous and (array.layout == "C" or array.ndim < 2))):
            wanted = types.Array(item, len(sizes), "C" if contiguous else "A")
            raise KernelError(f"`{name}`: expected {wanted} or {types.CPointer(item)}, got {stated}")
        bytes_of = _item_size(item)
        if contiguous:
            strides = [" * ".join([str(bytes_of), *sizes[axis + 1 :]]) for axis in range(len(sizes))]
        else:
            strides = [f"{bytes_of} * {path}.strides[{axis}]" for axis in range(len(sizes))]
        numbers = [" * ".join(sizes) or "1", str(bytes_of)]
        # Numba's struct of an array: memory owner, Python object, items, item size, data, shape and strides in bytes
        leading = ["null", "null", *(f"int64({of})" for of in numbers), path]
        return _Value(name, array, [*leading, *(f"int64({of})" for of in [*sizes, *strides])])

    def item(self, name: str, of: Mapping[str, Any]) -> Any:
        """Numba's type of a tensor's elements."""
        shown = next((each.type for each in self.signature.parameters if each.name == name), self.signature.returns)
        device, dtype = of["device"], of["dtype"]
        problem = None
        if not isinstance(device, dict) or device["kind"] != self.device:
            problem = f"a tensor on device {self.device}"
        elif of["shape"] is None:
            problem = "a tensor of a fixed number of dimensions"
        elif of["strides"] == "any":
            problem = "strides with names, such as strides=[s, t]"
        elif not isinstance(dtype, str) or dtype not in self.items:
            problem = f"a dtype of {', '.join(self.items)}"
        if problem:
            raise KernelError(f"`{name}`: expected {problem}, got {shown}")
        return self.items[dtype]


def _is_number(type: Any) -> bool:
    return isinstance(type, (types.Integer, types.Float))


def _item_size(item: Any) -> int:
    """The bytes of an element."""
    return item.bitwidth // 8 if hasattr(item, "bitwidth") else 1 if item == types.boolean else 2


def _narrowed(signature: Signature, key: Mapping[str, Any]) -> Signature:
    """The signature with the dtypes and ranks of a key, and with names for strides that it leaves open."""
    text, used = signature.text, {*signature.dim_vars, *(of.name for of in signature.parameters)}

    def named(stem: str, count: int) -> str:
        names = [unused(f"{stem}_{number}", used) for number in range(count)]
        used.update(names)
        return f"[{', '.join(names)}]"

    for parameter, structure in zip(_passed(signature), signature.structure["parameters"]):
        of, name = structure["type"], structure["name"]
        if of["kind"] != "tensor":
            continue
        rank = int(key[f"{name}.ndim"]) if of["shape"] is None else len(of["shape"])
        type = parameter.type
        if of["shape"] is None:
            type = type.replace("[...]", named(f"{name}_size", rank), 1)
        if of["dtype"] == "any":
            type = type.replace("], any", f"], {key[f'{name}.dtype']}", 1)
        if of["strides"] == "any":
            type = type.replace("strides=any", f"strides={named(f'{name}_stride', rank)}", 1)
        text = with_parameter(text, f"{name}: {parameter.type}", f"{name}: {type}")
    return Signature(text, locations=signature._locations)


def _passed(signature: Signature) -> list[Any]:
    """The parameters that have an entry in the signature's structure."""
    names = {of["name"] for of in signature.structure["parameters"]}
    return [of for of in signature.parameters if of.name in names]


class _Native:
    """A function that Numba has compiled into this process, with a C function that returns a status."""

    def __init__(self, function: Callable[..., Any], signature: Signature, options: Mapping[str, Any] | None) -> None:
        python, stated, own_options, variables = _parts(function)
        options = {**own_options, **_check.mapping("options", options, "values by names")}
        names = _Names(signature, "cpu", _ITEMS, _SCALARS)
        if stated is not None and len(stated.args) != len(inspect.signature(python).parameters):
            raise KernelError(f"`{python.__name__}` has other parameters than its types {stated}")
        values = names.of(python, None if stated is None else stated.args)
        returned = None if names.returns is None else self._returned(names, names.returns)
        if stated is not None and stated.return_type != (returned or types.none):
            expected = returned or types.none
            raise KernelError(f"`{python.__name__}`: expected the result {expected}, got {stated.return_type}")
        self.name = python.__name__
        self._args = [arg for of in values for arg in of.args]
        flags = compiler.Flags()
        try:
            cpu_target.options.parse_as_flags(flags, options)
        except KeyError as error:
            raise ValueError(f"options: {error.args[0]}") from None
        flags.no_cpython_wrapper = flags.no_cfunc_wrapper = flags.no_compile = True
        flags.enable_pyobject = flags.force_pyobject = False
        typing, target = cpu_target.typing_context, cpu_target.target_context
        with global_compiler_lock:
            try:
                self._compiled = compiler.compile_extra(
                    typing, target, python, [of.type for of in values], returned or types.none, flags, variables
                )
            except NumbaError as error:
                raise _refused(self.name, signature, error) from error
            self._library = self._compiled.library
            self.symbol = _add_status_function(self._compiled)
            self._library.finalize()
            self._address = self._library.get_pointer_to_function(self.symbol)
            self._library.codegen.set_env(target.get_env_name(self._compiled.fndesc), self._compiled.environment)

    def _returned(self, names: _Names, returns: Mapping[str, Any]) -> Any:
        name = returns.get("name") if returns["kind"] == "scalar" else None
        if name not in _SCALARS:
            raise KernelError(
                f"expected a result that is a tensor or a scalar of {', '.join(_SCALARS)}, got "
                f"{names.signature.returns}"
            )
        return _SCALARS[name]

    def kernel(self) -> Kernel:
        """The kernel for this process."""
        owner = self._library, self._compiled.environment
        return Kernel.address(self._address, keep_alive=owner, returns="status", args=self._args)

    def symbol_kernel(self) -> Kernel:
        """The kernel that :meth:`object` defines."""
        return Kernel.symbol(self.symbol, returns="status", args=self._args)

    @cached_property
    def _text(self) -> str:
        """The code in LLVM's IR."""
        return str(self._library.get_llvm_str())

    @property
    def has_values_in_exceptions(self) -> bool:
        """True if an exception may have a value that only the run knows."""
        return "@__excinfo_unwrap_args" in self._text

    def missing(self) -> list[str]:
        """The symbols that the object needs, apart from those of the C library and ``libtvm_ffi``."""
        process = ctypes.CDLL(None)
        needed = [*self._module.functions, *self._module.global_variables]
        names = [of.name for of in needed if of.is_declaration and not of.name.startswith(("llvm.", "TVMFFI"))]
        return sorted(of for of in names if of.startswith(("Py", "_Py")) or not hasattr(process, of))

    def object(self, cpu: str) -> bytes:
        """A position-independent object with the kernel's symbol."""
        data: bytes = self._machine(cpu).emit_object(self._module)
        return data

    @cached_property
    def _module(self) -> Any:
        """The code in LLVM's IR, without references to Python for exceptions and memory."""
        text = _UNWRAP.sub(r"\1  ret ptr null\n}", _EXCEPTION.sub(_as_text, self._text))
        module, runtime = llvm.parse_assembly(text), llvm.parse_assembly(_RUNTIME)
        runtime.triple, runtime.data_layout = module.triple, module.data_layout
        module.link_in(runtime)
        for of in [*module.functions, *module.global_variables]:
            if not of.is_declaration and of.name != self.symbol:
                of.linkage = "internal"
        passes = llvm.create_new_module_pass_manager()
        passes.add_global_dead_code_eliminate_pass()
        passes.run(module, llvm.create_pass_builder(self._machine("host"), llvm.create_pipeline_tuning_options()))
        return module

    @staticmethod
    def _machine(cpu: str) -> Any:
        name, features = cpu, ""
        if cpu == "host":
            name, features = llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
        target = llvm.Target.from_triple(llvm.get_process_triple())
        return target.create_target_machine(cpu=name, features=features, opt=3, reloc="pic", codemodel="small")


def _parts(function: Any) -> tuple[FunctionType, Any, dict[str, Any], dict[str, Any]]:
    """The Python function, the types that it was declared with or None, its options, and its variables' types."""
    if isinstance(function, CFunc):
        made = function._compiler
        return function._pyfunc, function._sig, dict(made.targetoptions), dict(made.locals)
    if isinstance(function, Dispatcher):
        return function.py_func, None, dict(function.targetoptions), {}
    expected = "a Python function, or one under @numba.njit or @numba.cfunc"
    return _check.instance("function", function, FunctionType, expected), None, {}, {}


def _refused(name: str, signature: Signature, error: Exception) -> KernelError:
    # Numba's messages have colors
    message = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    return KernelError(f"Numba {numba.__version__} can't compile `{name}` for {signature}: {message}")


def _add_status_function(compiled: Any) -> str:
    """Adds a C function that returns 0, or raises the function's exception as an error of the TVM FFI and returns -1.
    Returns its symbol. Numba's own ``cfunc`` prints an exception and goes on.
    """
    call, described, library = compiled.target_context.call_conv, compiled.fndesc, compiled.library
    type = call.get_function_type(described.restype, described.argtypes)
    module = library.create_ir_module("tvm_ffi_codegen")
    native = ir.Function(module, type, described.llvm_func_name)
    result, info, *passed = type.args
    has_result = described.restype != types.none
    status = ir.IntType(32)
    symbol = f"tvm_ffi_codegen.{described.llvm_func_name}"
    function = ir.Function(module, ir.FunctionType(status, [*passed, *([result] if has_result else [])]), symbol)
    builder = ir.IRBuilder(function.append_basic_block())
    place = function.args[-1] if has_result else builder.alloca(result.pointee)
    raised = builder.alloca(info.pointee)
    builder.store(cgutils.get_null_value(info.pointee), raised)
    code = builder.call(native, [place, raised, *function.args[: len(passed)]])
    # -2 is the status of None
    is_done = builder.or_(builder.icmp_signed("==", code, status(0)), builder.icmp_signed("==", code, status(-2)))
    with builder.if_then(builder.not_(is_done), likely=False):
        raiser = ir.Function(module, ir.FunctionType(ir.VoidType(), [status, info.pointee]), _RAISE)
        builder.call(raiser, [code, builder.load(raised)])
        builder.ret(status(-1))
    builder.ret(status(0))
    library.add_ir_module(module)
    return symbol


class _Info(ctypes.Structure):
    """A function's description of its exception: ``excinfo_t`` of ``numba.core.callconv``."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("size", ctypes.c_int32),
        ("values", ctypes.c_void_p),
        ("unwrap", ctypes.c_void_p),
        ("has_values", ctypes.c_int32),
    ]


_set_raised = ctypes.CDLL(tvm_ffi.libinfo.find_libtvm_ffi()).TVMFFIErrorSetRaisedFromCStr
_set_raised.argtypes, _set_raised.restype = [ctypes.c_char_p, ctypes.c_char_p], None

# TVM FFI makes an error of an unknown kind a RuntimeError, and Numba raises these two itself
for _class in (ZeroDivisionError, OverflowError):
    tvm_ffi.register_error(_class.__name__, _class)


@ctypes.CFUNCTYPE(None, ctypes.c_int32, ctypes.POINTER(_Info))
def _raise(code: int, info: Any) -> None:
    """Sets the error of the TVM FFI for a function's exception."""
    if not info:
        _set_raised(b"RuntimeError", f"the function failed with Numba's status {code}".encode())
        return
    told = info[0]
    data = ctypes.string_at(told.data, told.size)
    if told.has_values > 0:
        values = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p)(told.unwrap)(told.values)
        raised = serialize.runtime_build_excinfo_struct(data, values)
        free = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(llvm.address_of_symbol("NRT_Free"))
        free(ctypes.addressof(told))
    else:
        raised = serialize.loads(data)
    _set_raised(*_kind_and_message(raised))


llvm.add_symbol(_RAISE, ctypes.cast(_raise, ctypes.c_void_p).value)


def _kind_and_message(raised: Any) -> tuple[bytes, bytes]:
    """The kind and message of an exception, from its class, arguments and place."""
    kind, args, _ = raised
    shown = ["<value>" if isinstance(of, ir.Value) else of for of in args or ()]
    return kind.__name__.encode(), str(kind(*shown)).replace("\0", "").encode()


#: An exception's class, arguments and place in IR, as pickled data.
_EXCEPTION = re.compile(r'(@\.const\.pickledata\.\w+(?:\.\d+)? = [\w ]*constant )\[\d+ x i8\] c"([^"]*)"')
#: The body of a function that makes Python objects of an exception's values.
_UNWRAP = re.compile(r"(define [^\n]*@__excinfo_unwrap_args[^\n]*\{\n).*?\n\}", re.DOTALL)


def _as_text(found: re.Match[str]) -> str:
    """An exception's constant with its kind and message as C strings."""
    escape = rb"\\(\\|[0-9A-Fa-f]{2})"
    data = re.sub(escape, lambda of: b"\\" if of[1] == b"\\" else bytes([int(of[1], 16)]), found[2].encode("latin-1"))
    raised = serialize.loads(data)
    if not (isinstance(raised, tuple) and len(raised) == 3 and isinstance(raised[0], type)):
        return found[0]
    text = b"".join(of + b"\0" for of in _kind_and_message(raised))
    escaped = "".join(f"\\{byte:02x}" for byte in text)
    return f'{found[1]}[{len(text)} x i8] c"{escaped}"'


#: The functions that compiled code calls in a library: exceptions and memory, with the C library alone. The layout of
#: the memory's header is that of Numba's ``MemInfo``: count, destructor, its data, address, size, allocator.
_RUNTIME = f"""
declare ptr @malloc(i64)
declare void @free(ptr)
declare i64 @strlen(ptr)
declare void @TVMFFIErrorSetRaisedFromCStr(ptr, ptr)

@kind = private constant [13 x i8] c"RuntimeError\\00"
@message = private constant [20 x i8] c"the function failed\\00"

define void @{_RAISE}(i32 %code, ptr %info) {{
  %unknown = icmp eq ptr %info, null
  br i1 %unknown, label %without, label %told
without:
  call void @TVMFFIErrorSetRaisedFromCStr(ptr @kind, ptr @message)
  ret void
told:
  %kind = load ptr, ptr %info
  %length = call i64 @strlen(ptr %kind)
  %behind = getelementptr i8, ptr %kind, i64 %length
  %message = getelementptr i8, ptr %behind, i64 1
  call void @TVMFFIErrorSetRaisedFromCStr(ptr %kind, ptr %message)
  %flag_at = getelementptr i8, ptr %info, i64 32
  %flag = load i32, ptr %flag_at
  %has_values = icmp sgt i32 %flag, 0
  br i1 %has_values, label %owned, label %done
owned:
  %values_at = getelementptr i8, ptr %info, i64 16
  %values = load ptr, ptr %values_at
  call void @free(ptr %values)
  call void @free(ptr %info)
  br label %done
done:
  ret void
}}

define ptr @NRT_Allocate(i64 %size) {{
  %memory = call ptr @malloc(i64 %size)
  ret ptr %memory
}}

define void @NRT_Free(ptr %memory) {{
  call void @free(ptr %memory)
  ret void
}}

define ptr @NRT_MemInfo_alloc(i64 %size) {{
  %info = call ptr @NRT_MemInfo_alloc_aligned(i64 %size, i32 16)
  ret ptr %info
}}

define ptr @NRT_MemInfo_alloc_aligned(i64 %size, i32 %align) {{
  %align64 = zext i32 %align to i64
  %padded = add i64 %size, %align64
  %total = add i64 %padded, 48
  %info = call ptr @malloc(i64 %total)
  %failed = icmp eq ptr %info, null
  br i1 %failed, label %done, label %filled
filled:
  %last = sub i64 %align64, 1
  %start = ptrtoint ptr %info to i64
  %behind = add i64 %start, 48
  %above = add i64 %behind, %last
  %mask = xor i64 %last, -1
  %address = and i64 %above, %mask
  %offset = sub i64 %address, %start
  %data = getelementptr i8, ptr %info, i64 %offset
  call void @llvm.memset.p0.i64(ptr %info, i8 0, i64 48, i1 false)
  store i64 1, ptr %info
  %data_at = getelementptr i8, ptr %info, i64 24
  store ptr %data, ptr %data_at
  %size_at = getelementptr i8, ptr %info, i64 32
  store i64 %size, ptr %size_at
  br label %done
done:
  ret ptr %info
}}

define void @NRT_MemInfo_call_dtor(ptr %info) {{
  call void @free(ptr %info)
  ret void
}}

declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
"""
