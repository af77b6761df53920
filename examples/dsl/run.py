"""Runs a library of the kernels on NumPy arrays: `run.py LIBRARY KIND`.

KIND is a library with a tensor allocator, as PyTorch has one.
"""

import json
import os
import sys
import traceback

import numpy as np
import tvm_ffi


def fails(function, *args):
    """Prints the exception that a call ends with, and its traceback without the frames of native code."""
    try:
        function(*args)
    except Exception as error:
        print(f"{type(error).__name__}: {error}")
        for frame in traceback.extract_tb(error.__traceback__):
            if frame.filename.endswith(".dsl"):
                name = os.path.basename(frame.filename)
                print(f'  File "{name}", line {frame.lineno}, in {frame.name}\n    {frame.line}')


def rate(currency):
    return {"EUR": 0.5}[currency]


def norm(x, weights):
    return float(np.sqrt((np.array(weights) * np.from_dlpack(x) ** 2).sum()))


tvm_ffi.load_module(sys.argv[2]).use_malloc()
tvm_ffi.register_global_func("host.rate", rate)
tvm_ffi.register_global_func("host.norm", norm)
tvm_ffi.register_global_func("host.label", lambda what, count: f"{count} {what}")
kernels = tvm_ffi.load_module(sys.argv[1])

metadata = tvm_ffi.get_global_func("ffi.ModuleGetFunctionMetadata")
for name in ["saxpy", "linear", "reduce"]:
    print(f"{json.loads(metadata(kernels, name, False))['signature']}\n  {kernels.get_function_doc(name)}")

rng = np.random.default_rng(16)
x, y, a, b = (rng.random(shape, "float32") for shape in [(8,), (8,), (3, 2), (3, 4)])
c, bias, doubles = np.zeros((2, 4), "float32"), rng.random(4, "float32"), rng.random(8)


def after(function, *args):
    """The last tensor, once the function has written it."""
    result = args[-1].copy()
    function(*args[:-1], result)
    return result


def made(tensor):
    return np.from_dlpack(tensor)


results = {
    "curve": (after(kernels.curve, x, y), np.sqrt(x * x + 1)),
    "saxpy": (after(kernels.saxpy, 3, x, y), 3 * x + y),
    "clamp": (after(lambda *args: kernels.clamp(args[0], 0.25, 0.5), x), np.clip(x, 0.25, 0.5)),
    "total": (kernels.total(doubles), doubles.sum()),
    "row_sums": (after(kernels.row_sums, a, np.zeros(3, "float32")), a.sum(axis=1)),
    "matmul": (after(kernels.matmul, a.T, b, c), a.T @ b),
    "linear": (after(kernels.linear, a.T.copy(), b, bias, c), a.T @ b + bias),
    "linear, no bias": (after(kernels.linear, a.T.copy(), b, None, c), a.T @ b),
    "outer": (made(kernels.outer(x, bias)), np.outer(x, bias)),
    "blocks": (after(kernels.blocks, x, np.zeros(2, "float32")), x.reshape(2, 4).sum(axis=1)),
    "reduce": ([kernels.reduce(doubles, mode) for mode in ["sum", "mean", "max"]],
               [doubles.sum(), doubles.mean(), doubles.max()]),
    "gather": (made(kernels.gather(x, np.array([7, 0]))), x[[7, 0]]),
    "first_negative": (kernels.first_negative(x - x[3:4] - 1), 0),
    "exchange": (kernels.exchange(doubles, "EUR"), doubles.sum() / 2),
    "scale": (made(kernels.scale(x, [2.0, 3.0], None)), 2 * x),
    "scale, a number": (made(kernels.scale(x, [2.0, 3.0], 1)), 3 * x),
    "split": ([made(part) for part in kernels.split(x, (0.25, 0.5))], [np.clip(x, 0.25, 0.5), x - np.clip(x, 0.25, 0.5)]),
    "normalise": (made(kernels.normalise(x, [1.0] * 8)), x / np.linalg.norm(x)),
    "label": (kernels.label([1, 2, 3], "things") == "3 things", True),
}
wrong = [name for name, (result, expected) in results.items() if not np.allclose(result, expected)]
print(f"{len(results)} results, not as NumPy computes them: {wrong}")

fails(kernels.saxpy, 3, x, y[:5])
fails(kernels.blocks, x[:6], y[:1])
fails(kernels.reduce, doubles, "median")
fails(kernels.gather, x, np.array([1, 8]))
fails(kernels.exchange, doubles, "XYZ")
fails(kernels.scale, x, [], None)
fails(kernels.normalise, np.zeros(8, "float32"), [1.0] * 8)
