"""Exports a module with apache-tvm: `export.py LIBRARY`. It has a function `add`, and the executable that calls it."""

import sys

import numpy as np
import tvm
from tvm import relax

builder = relax.BlockBuilder()
x = relax.Var("x", relax.TensorType((4,), "float32"))
with builder.function("main", [x]):
    with builder.dataflow():
        y = builder.emit_output(relax.op.add(x, relax.const(np.array([1, 2, 3, 4], "float32"))))
    builder.emit_func_output(y)
tvm.compile(builder.get(), target="llvm").export_library(sys.argv[1])
