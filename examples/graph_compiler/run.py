"""Runs the model on NumPy arrays: `run.py MODEL ALONE KIND`.

MODEL is the library, and ALONE is the same library without the module that it imports. KIND is a library with the kind
of that module, and with a tensor allocator, such as PyTorch's.
"""

import os
import sys
import traceback

import numpy as np
import tvm_ffi


@tvm_ffi.error.register_error
class Refused(Exception):
    """An exception of this program."""


def clip(x):
    x = np.from_dlpack(x)
    if np.isnan(x).any():
        raise ValueError("no")
    if np.isinf(x).any():
        raise Refused("never")
    return tvm_ffi.from_dlpack(np.minimum(x, np.float32(1)))


def expected(x, w, bias):
    y = np.clip(x @ w + bias, 0, 1) * 3
    e = np.exp(y - y.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def fails(label, function, *args):
    """Prints and returns the exception that a call raises."""
    try:
        function(*args)
    except Exception as error:
        print(f"{label}: {type(error).__name__}: {error}")
        return error


def lines_of_python(error):
    """Prints the traceback without frames of native code."""
    for frame in traceback.extract_tb(error.__traceback__):
        if frame.filename.endswith(".py"):
            name = os.path.basename(frame.filename)
            print(f'  File "{name}", line {frame.lineno}, in {frame.name}\n    {frame.line}')


def is_registered():
    return tvm_ffi.get_global_func("model.forward", allow_missing=True) is not None


kind = tvm_ffi.load_module(sys.argv[3])
kind.use_malloc()
library = tvm_ffi.load_module(sys.argv[1], keep_module_alive=False)
print("a global function while it is loaded:", is_registered())
del library
print("a global function after that:", is_registered())

forward = tvm_ffi.load_module(sys.argv[1]).forward
x = np.array([[1, -2, 0.5], [0.25, 3, -1]], "float32")
w = np.array([[0.5, 1], [-0.25, 0.125], [2, -1]], "float32")
bias = np.array([0.1, 0.2], "float32")

fails("no callback", forward, x, w, bias)
tvm_ffi.register_global_func("host.clip", clip)
y = np.from_dlpack(forward(x, w, bias))
print("as NumPy computes it:", np.allclose(y, expected(x, w, bias)))
fails("no module", tvm_ffi.load_module(sys.argv[2]).forward, x, w, bias)
lines_of_python(fails("an argument that doesn't fit", forward, x, w.T.copy(), bias))
lines_of_python(fails("an exception of the callback", forward, x, w, bias * np.float32("nan")))
error = fails("its own exception", forward, x, w, bias * np.float32("inf"))
print("of its own class:", type(error) is Refused)
