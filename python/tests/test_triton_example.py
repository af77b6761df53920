"""The example `triton_aot`: Triton's kernels for two architectures in one library."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tvm_ffi

pytest.importorskip("triton")

from triton_programs import AMPERE, HOPPER, name_add, name_softmax, on_device

EXAMPLE = Path(__file__).parents[2] / "examples/triton_aot"


def test_the_library_runs_on_both_architectures(driver, tmp_path):
    path = tmp_path / "kernels.so"
    # the fixture's `PATH` is empty, so there is no C compiler
    done = subprocess.run([sys.executable, EXAMPLE / "build.py", path], capture_output=True, text=True, env=os.environ)
    assert done.returncode == 0, done.stderr
    # versions of Triton before 3.9 compile for sm_90a
    assert done.stdout.replace("90a", "90").splitlines() == ["add for sm_80 sm_90", "softmax for sm_80 sm_90"]
    module = tvm_ffi.load_module(str(path))
    name_add(driver)
    name_softmax(driver)
    for device in (AMPERE, HOPPER):
        x, y = np.random.rand(2, 5000).astype("float32")
        out = np.zeros_like(x)
        module.add(*[on_device(array, device) for array in (x, y, out)])
        assert (out == x + y).all()
        x = np.random.rand(30, 781).astype("float32")
        out = np.zeros_like(x)
        module.softmax(on_device(x, device), on_device(out, device))
        powers = np.exp(x)
        assert np.allclose(out, powers / powers.sum(axis=1, keepdims=True), rtol=1e-5)
    # each device loads its own image of each kernel once
    assert len(driver.log("cuLibraryLoadData")) == 4
    grids = [line.split(",")[0] for line in driver.log("cuLaunchKernelEx")]
    assert grids == ["cuLaunchKernelEx(grid 5 1 1", "cuLaunchKernelEx(grid 30 1 1"] * 2
    wide = np.zeros((2, 2000), "float32")
    with pytest.raises(ValueError, match="columns <= 1024"):
        module.softmax(on_device(wide), on_device(wide))
