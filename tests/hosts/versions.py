"""Runs the libraries of ``fixtures/artifacts`` on the installed TVM FFI: ``versions.py TEXT``.

The text states the libraries of a version, their functions, and calls (``fixtures/artifacts/README.md``). Prints each
problem, then ``VERSION: loaded N of N libraries, N of N calls``. Exits with 1 after a problem. A library that needs a
newer TVM FFI must be refused with the name of a missing symbol. It is no problem.
"""

import ctypes
import importlib.metadata
import pathlib
import re
import sys

import numpy as np
import tvm_ffi

text = pathlib.Path(sys.argv[1])
version = importlib.metadata.version("apache-tvm-ffi")


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class DLManagedTensorVersioned(ctypes.Structure):
    _fields_ = [
        ("version", ctypes.c_uint32 * 2),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
        ("flags", ctypes.c_uint64),
        ("tensor", DLTensor),
    ]


#: Everything that the allocator has made. It lives as long as the process.
allocated = []
keep = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: None)


@ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.POINTER(DLTensor),
    ctypes.POINTER(ctypes.POINTER(DLManagedTensorVersioned)),
    ctypes.c_void_p,
    ctypes.c_void_p,
)
def allocate(prototype, out, _context, _set_error):
    """An allocator for results. The package has none without PyTorch."""
    like = prototype[0]
    ndim = like.ndim
    shape = (ctypes.c_int64 * max(ndim, 1))(*like.shape[:ndim])
    strides = (ctypes.c_int64 * max(ndim, 1))(*[int(np.prod(shape[i + 1 : ndim])) for i in range(ndim)])
    data = ctypes.create_string_buffer(int(np.prod(shape[:ndim])) * like.bits // 8 + 256)
    made = DLManagedTensorVersioned(version=(1, 1), deleter=keep, tensor=like)
    made.tensor.data = (ctypes.addressof(data) + 255) // 256 * 256
    made.tensor.shape, made.tensor.strides, made.tensor.byte_offset = shape, strides, 0
    allocated.append((made, shape, strides, data))
    out[0] = ctypes.pointer(made)
    return 0


def load(name):
    return tvm_ffi.load_module(str(text.parent / name))


def refuse(_n):
    raise ValueError("not this one")


def define_host():
    """Registers the allocator, the error and the functions that the libraries expect of their host."""
    library = next(pathlib.Path(tvm_ffi.__file__).parent.glob("lib/libtvm_ffi.so"))
    set_allocator = ctypes.CDLL(str(library)).TVMFFIEnvSetDLPackManagedTensorAllocator
    assert set_allocator(allocate, 1, None) == 0
    tvm_ffi.register_error("ZeroDivisionError", ZeroDivisionError)
    tvm_ffi.register_global_func("artifacts.add", lambda a, b: a + b)
    tvm_ffi.register_global_func("artifacts.refuse", refuse)
    tvm_ffi.register_global_func("artifacts.more", lambda *args: [len(args), args[0]])
    tvm_ffi.register_global_func("ffi.Module.load_from_bytes.artifacts.library", lambda name: load(name.decode()))


class DType(str):
    """The name of a dtype."""


def tensor(dtype, shape, data=None, strides=None):
    """An array of NumPy. A call shows whether it changes the elements."""
    step = 1 if strides is None else strides[0]
    elements = np.zeros(int(np.prod(shape)) * step, dtype)
    if data is not None:
        elements[::step] = data
    return elements[::step].reshape(shape)


#: The names in calls.
NAMES = {
    "tensor": tensor,
    "none": None,
    "true": True,
    "false": False,
    "str": str,
    "function": lambda *_: None,
    "array": list,
    "map": dict,
    "shape": tvm_ffi.Shape,
    "dtype": tvm_ffi.dtype,
    "device": lambda name: tvm_ffi.device(name, 0),
    "arguments": lambda *args: args,
    **{name: DType(name) for name in ["int8", "int16", "int32", "int64", "float16", "float32", "float64"]},
}


def elements(array):
    return "[" + ", ".join(f"{x:g}" for x in array.ravel()) + "]"


def show(value):
    """A value in the form of the fixtures."""
    if value is None:
        return "None"
    if isinstance(value, bool):
        return f"bool {str(value).lower()}"
    if isinstance(value, int):
        return f"int {value}"
    if isinstance(value, float):
        return f"float {value:g}"
    if isinstance(value, tvm_ffi.dtype):  # a subclass of `str`
        return f"dtype {value}"
    if isinstance(value, str):
        return f'str "{value}"'
    if isinstance(value, tvm_ffi.Shape):
        return f"Shape({list(value)})"
    if isinstance(value, tvm_ffi.Array):
        return "Array[" + ", ".join(map(show, value)) + "]"
    if isinstance(value, tvm_ffi.Tensor):
        array = np.from_dlpack(value)
        return f"Tensor({list(array.shape)}, {array.dtype}, cpu) = {elements(array)}"
    return type(value).__name__


def call(function, signature, arguments):
    """The outcome of a call, in the form of an ``expect:`` line."""
    names = re.findall(r"(\w+):", signature)
    before = [elements(arg) if isinstance(arg, np.ndarray) else None for arg in arguments]
    passed = [tvm_ffi.from_dlpack(arg) if isinstance(arg, np.ndarray) else arg for arg in arguments]
    try:
        result = function(*passed)
    except Exception as error:  # a function may raise any kind
        return f"{type(error).__name__}: {error}"
    shown = "ok" if " -> " not in signature and result is None else f"ok; result = {show(result)}"
    for name, arg, was in zip(names, arguments, before):
        if was is not None and elements(arg) != was:
            shown += f"; {name} = {elements(arg)}"
    return shown


def numbers(words):
    """A version as numbers, without what comes after the third."""
    return [int(number) for number in words.split(".")[:3]]


def run():
    """Runs the text. Returns the counts of libraries and calls, each with that of those without a problem."""
    libraries, counts, problems = {}, [0, 0, 0, 0], []
    current, signature, arguments = [], "", ""
    for number, line in enumerate(text.read_text().splitlines(), 1):
        key, _, value = line.partition(":")
        value = value.strip()
        if key == "libraries":
            current = value.split(", ")
        elif key == "needs":
            for name in current:
                counts[1] += 1
                may_load = numbers(version) >= numbers(value)
                try:
                    libraries[name] = load(f"{name}-{text.stem}.so")
                    counts[0] += 1
                    problem = None if may_load else f"it loads, and it needs {value}"
                except Exception as error:
                    is_refusal = re.search(r"undefined symbol: TVMFFI\w+", str(error))
                    problem = None if is_refusal and not may_load else f"{type(error).__name__}: {error}"
                    print(f"{name}: {is_refusal[0] if is_refusal else problem}")
                if problem:
                    problems.append(f"{name}: {problem}")
        elif key == "signature":
            signature = value
        elif key == "call":
            arguments, older = value, None
        elif key == "before":
            since, _, outcome = value.partition(" ")
            if numbers(version) < numbers(since):
                older = outcome
        elif key == "expect":
            value = older or value
            for name in current:
                if name not in libraries:
                    continue
                counts[3] += 1
                function = libraries[name].get_function(signature[: signature.index("(")])
                got = call(function, signature, eval(f"arguments({arguments})", NAMES))
                if got == value:
                    counts[2] += 1
                else:
                    problems.append(f"{text.name}:{number}: {name}\n  expected: {value}\n  actual:   {got}")
    return counts, problems


define_host()
counts, problems = run()
print("\n".join(problems), end="\n" if problems else "")
print(f"{version}: loaded {counts[0]} of {counts[1]} libraries, {counts[2]} of {counts[3]} calls")
sys.exit(1 if problems else 0)
