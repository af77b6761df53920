"""Host code for Triton's kernels on the stand-in driver, which can't run a cubin's machine code.

Only the arithmetic comes from the test. Everything else is real: the images, the choice between them, the entry, the
grid and the launch's configuration. So are the parameters that this code reads, with Triton's own at the end.
"""

from __future__ import annotations

import ctypes

import numpy as np
import tvm_ffi
from standin import OnDevice

POINTER, INT = ctypes.c_void_p, ctypes.c_int32
#: The stand-in's devices by architecture.
AMPERE, HOPPER = 0, 1
#: The number of elements for each program of `add`.
BLOCK = 1024


def on_device(array, number=HOPPER):
    return tvm_ffi.from_dlpack(OnDevice(array, number))


def array_at(address, count):
    return np.ctypeslib.as_array(ctypes.cast(address, ctypes.POINTER(ctypes.c_float)), (count,))


def name_add(driver):
    """Lets `add(x, y, out, n)` run: each program adds ``BLOCK`` elements."""

    def run(index, grid, x, y, out, n, *scratch):
        assert scratch == (None, None)
        part = slice(index.x * BLOCK, min(n, (index.x + 1) * BLOCK))
        array_at(out, n)[part] = array_at(x, n)[part] + array_at(y, n)[part]

    driver.program("add", [POINTER, POINTER, POINTER, INT, POINTER, POINTER], run)


def name_softmax(driver):
    """Lets `softmax(x, out, columns)` run: each program computes a row."""

    def run(index, grid, x, out, columns, *scratch):
        assert scratch == (None, None)
        row = array_at(x, grid.x * columns).reshape(grid.x, columns)[index.x]
        powers = np.exp(row - row.max())
        array_at(out, grid.x * columns).reshape(grid.x, columns)[index.x] = powers / powers.sum()

    driver.program("softmax", [POINTER, POINTER, INT, POINTER, POINTER], run)
