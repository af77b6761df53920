"""Compiles the model of ``examples/graph_compiler``.

    main.py                  runs it in this process
    main.py FOLDER PRICES    writes libraries for ``examples/graph_compiler/run.py``: one with the object PRICES, which
                             has the module that it imports, and one without
"""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path

import numpy as np
import tvm_ffi
import tvm_ffi_codegen as tfc

from compiler import lower
from graph import Graph

MODEL = Path(__file__).parents[1] / "graph_compiler/model.py"

#: A module that has prices: its function asks this program.
PRICES = """
price_of(item: str) -> int64 { let price = call global shop.price_of(item) -> int64; return price; }
"""


def clip(x):
    x = np.from_dlpack(x)
    if np.isnan(x).any():
        raise ValueError("an element is no number")
    return tvm_ffi.from_dlpack(np.minimum(x, np.float32(1)))


def expected(x, w, bias):
    y = np.clip(x @ w + bias, 0, 1) * 3
    e = np.exp(y - y.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def run(program: tfc.Program) -> None:
    tfc.install_cpu_allocator()
    tvm_ffi.register_global_func("host.clip", clip)
    tvm_ffi.register_global_func("shop.price_of", {"apple": 3, "pear": 5}.__getitem__)
    module = program.library().load()
    module.import_module(tfc.program(PRICES).library().load())
    x = np.array([[1, -2, 0.5], [0.25, 3, -1]], "float32")
    w = np.array([[0.5, 1], [-0.25, 0.125], [2, -1]], "float32")
    bias = np.array([0.1, 0.2], "float32")
    y = np.from_dlpack(module.forward(x, w, bias))
    print(y.round(4).tolist(), "as NumPy computes it" if np.allclose(y, expected(x, w, bias)) else "wrong")
    # First the wrapper rejects the number of rows, and then the callback rejects its argument.
    for args in [(x, w.T.copy(), bias), (x, w, bias * np.float32("nan"))]:
        try:
            module.forward(*args)
        except ValueError as error:
            print(f"{type(error).__name__}: {error}")
            for frame in traceback.extract_tb(error.__traceback__):
                if frame.filename.endswith(".py"):
                    print(f"  {os.path.basename(frame.filename)}:{frame.lineno} in {frame.name}")


def main(*args: str) -> None:
    program = lower(Graph.read(MODEL.name, MODEL.read_text()))
    if not args:
        return run(program)
    folder, prices = args
    for backend in tfc.build_info()["backends"]:
        for name, files in (("model", [prices]), ("alone", [])):
            path = Path(folder) / f"{name}_{backend}.so"
            # the linker of the example in Rust
            program.library(backend=backend).link(path, files=files, libraries=["m"], linker="cc")


if __name__ == "__main__":
    main(*sys.argv[1:])
