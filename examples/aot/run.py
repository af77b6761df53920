"""Runs the library on NumPy arrays: `run.py saxpy.so`."""

import sys

import numpy as np
import tvm_ffi

saxpy = tvm_ffi.load_module(sys.argv[1]).saxpy
x, y = np.arange(1_000_000, dtype="float32"), np.ones(1_000_000, "float32")
saxpy(3.0, x, y)
print("every element is right:", bool((y == 3 * x + 1).all()))
try:
    saxpy(3.0, x, y[:5])
except ValueError as error:
    print(error)
