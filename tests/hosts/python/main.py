"""A host in Python, on the PyPI package: `main.py LIBRARY KIND`, with arrays of NumPy and ml_dtypes.

KIND is a library with the kind of module `hosts.prices`. It registers itself at load.
"""

import ctypes
import sys

import ml_dtypes
import numpy as np
import tvm_ffi

_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


class Bits:
    """An array with a dtype of ml_dtypes. NumPy's DLPack refuses it, so this exports the bits and sets the dtype."""

    def __init__(self, array, code):
        self.array, self.code = array.view(f"uint{8 * array.itemsize}"), code

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __dlpack__(self, **_):
        capsule = self.array.__dlpack__()
        # DLTensor: void* data, DLDevice device, int32_t ndim, and then the dtype's code
        ctypes.c_uint8.from_address(_pointer(capsule, b"dltensor") + 20).value = self.code
        return capsule


def show(value):
    """A value in the format of all hosts."""
    if isinstance(value, (bool, int, type(None), tvm_ffi.Device, tvm_ffi.dtype)):
        return str(value)
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, str):
        return '"' + str(value) + '"'
    if isinstance(value, bytes):
        return f'b"{value.decode()}"'
    if isinstance(value, tvm_ffi.Shape):
        return "Shape(" + ", ".join(map(str, value)) + ")"
    if isinstance(value, tvm_ffi.Array):
        return "[" + ", ".join(map(show, value)) + "]"
    if isinstance(value, tvm_ffi.Map):
        return "{" + ", ".join(f"{show(k)}: {show(v)}" for k, v in value.items()) + "}"
    if isinstance(value, ctypes.c_void_p):
        return "handle"
    if isinstance(value, tvm_ffi.Tensor):
        return show(np.from_dlpack(value))
    if isinstance(value, np.ndarray):
        elements = ", ".join(f"{x:g}" for x in value.ravel())
        return f"Tensor({list(value.shape)}, {value.dtype}, [{elements}])"
    return type(value).__name__


def line(label, value):
    print(f"{label}: {show(value)}")


def call(label, *args, function=None):
    """Prints the result of a call: its value, or its error."""
    try:
        if function is None:
            function = module.get_function(label[: label.index("(")])
    except AttributeError:
        print(f"{label}: no such function")
        return None
    try:
        result = function(*args)
        line(label, result)
        return result
    except Exception as error:  # the function may raise any kind
        print(f"{label}: {type(error).__name__}: {error}")
        return None


def numbers():
    x, y = np.array([1, 2, 3.5], np.float32), np.zeros(3, np.float32)
    m = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
    a, b = np.array([1, 2, 3], np.float64), np.array([4, 5, 6.5])
    i, j = np.array([1, 2, 3], np.int32), np.array([1, 3, 2], np.int32)
    h = Bits(np.array([1, -2, 3.5], ml_dtypes.bfloat16), 4)
    e = Bits(np.array([1, 1.5, -2], ml_dtypes.float8_e4m3fn), 10)

    call("scale(x, y)", x, y)
    line("y", y)
    call("scale(x, y, -1)", x, y, -1)
    line("y", y)
    call("scale(x, y, 0.5)", x, y, 0.5)
    line("y", y)
    call("scale(x)", x)
    call("scale(x, 5)", x, 5)
    call("scale(x, a)", x, a)
    call("scale(x, y[:2])", x, y[:2])
    call('scale(x, y, "2")', x, y, "2")
    call("dot(a, b)", a, b)
    call("dot(a, None)", a, None)
    call("outer(x, y)", x, y)
    call("outer(x, m)", x, m)
    call("widen(h, y)", h, y)
    line("y", y)
    call("widen(x, y)", x, y)
    call("sum8(e)", e)
    call("sum8(h)", h)
    call("is_sorted(i)", i)
    call("is_sorted(j)", j)
    call("is_sorted(m)", m)
    print(f"address(x) is that of x: {module.address(x).value == x.ctypes.data}")
    call("address(5)", 5)
    call("dtype_of(h)", h)
    call("dtype_of(e)", e)
    call("device_of(x)", x)
    call("shape_of(m)", m)


def texts():
    call('count("banana")', "banana")
    call('count("banana", "na")', "banana", "na")
    call("count(5)", 5)
    call('count("a", "b", "c")', "a", "b", "c")
    call('greet("you")', "you")
    call('greet("")', "")
    call("greet(None)", None)
    call('reversed(b"abc")', b"abc")
    call('reversed("abc")', "abc")
    call('split("a,bc,,d", ",")', "a,bc,,d", ",")
    call('split("abc", "")', "abc", "")
    call('find("banana", "n")', "banana", "n")
    call('find("banana", "x")', "banana", "x")
    call('lengths(["a", "longer than seven"])', ["a", "longer than seven"])
    call('lengths(["a", 5])', ["a", 5])


def objects():
    counter = call("counter()")
    for _ in range(2):
        call("counter()()", function=counter)
    call("counter()(1)", 1, function=counter)
    call("library()")
    call('price("pear")', "pear")
    call('price("apple", 7)', "apple", 7)
    call('price("plum")', "plum")
    call('price("pear", 300)', "pear", 300)
    price_of = module.get_function("price_of", query_imports=True)
    call('price_of("apple") of what is imported', "apple", function=price_of)
    line("doc of scale", module.get_function_doc("scale"))
    line("doc of dot", module.get_function_doc("dot"))
    metadata = tvm_ffi.get_global_func("ffi.ModuleGetFunctionMetadata")  # the unparsed text
    line("metadata of price", metadata(module, "price", False))
    line("metadata of nothing", metadata(module, "nothing", False))


kind = tvm_ffi.load_module(sys.argv[2])
kind.use_malloc()
module = tvm_ffi.load_module(sys.argv[1])
numbers()
texts()
objects()
call("nothing()")
call('price_of("apple")', "apple")
