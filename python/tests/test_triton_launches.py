"""Compiled kernels of Triton, launched on the stand-in driver (``tests/gpu/driver``), without a C compiler.

The stand-in reads Triton's own cubins and compares each call with them: the kernel's name, the sizes and offsets of its
parameters, the architecture, shared memory and clusters. If a test names host code (``triton_programs``), that code
runs. Otherwise the launch is only checked and recorded.
"""

from __future__ import annotations

import re
import shutil
import struct

import numpy as np
import pytest
import tvm_ffi
import tvm_ffi_codegen as tfc

pytest.importorskip("triton")

import triton_kernels as kernels
from standin import TensorMap
from triton_kernels import POINTERS, VECTORS
from triton_programs import BLOCK, HOPPER, name_add, on_device

#: The offset of the parameters in the constant bank of a device with compute capability 9.0.
PARAMETERS = 0x210


def add_arrays(n):
    x = np.arange(n, dtype="float32")
    return x, x[::-1].copy(), np.zeros(n, "float32")


def added(module_or_function, n, device=HOPPER):
    """True if a call adds correctly."""
    x, y, out = add_arrays(n)
    module_or_function(*[on_device(array, device) for array in (x, y, out)])
    return bool((out == x + y).all())


def add_kernel(archs=(90,)):
    compiled = [
        kernels.compiled(kernels.add, POINTERS, {"BLOCK": BLOCK}, ["x", "y", "out"], arch=arch) for arch in archs
    ]
    return tfc.triton.from_compiled(compiled, f"add({VECTORS})", grid=[f"ceil_div(n, {BLOCK})"])


def test_add_runs_in_this_process_and_from_a_library(driver, tmp_path):
    assert shutil.which("cc") is None
    kernel = add_kernel()
    name_add(driver)
    function = tfc.compile(f"add({VECTORS})", kernel)
    assert added(function, 2500)
    launch = "cuLaunchKernelEx(grid 3 1 1, block 128 1 1, shared 0, device 1)"
    assert driver.log("cuLaunchKernelEx") == [launch]
    path = tmp_path / "add.so"
    tfc.Library().add(f"add({VECTORS})", kernel).link(str(path))
    assert tfc.inspect(path.read_bytes())["needed_libraries"] == []
    assert added(tvm_ffi.load_module(str(path)).add, 1024)
    assert driver.log("cuLaunchKernelEx")[1:] == [launch.replace("grid 3", "grid 1")]
    # an empty grid doesn't reach the driver
    assert added(function, 0)
    assert len(driver.log("cuLaunchKernelEx")) == 2


def test_the_parameters_of_add_are_its_cubins(driver):
    function = tfc.compile(f"add({VECTORS})", add_kernel())
    arrays = add_arrays(2500)
    function(*map(on_device, arrays))
    # three pointers, an int, and two NULL pointers, since the kernel has no scratch memory
    assert driver.parameters() == struct.pack("<QQQi4xQQ", *[array.ctypes.data for array in arrays], 2500, 0, 0)
    # without host code the launch computes nothing
    assert not arrays[2].any()


def test_each_device_runs_its_own_image(driver):
    signature = f"add({VECTORS})"
    function = tfc.compile(signature, add_kernel([80, 90]))
    name_add(driver)
    for device in (0, 1):
        assert added(function, 100, device)
    # the driver loads one library for each architecture
    assert len(driver.log("cuLibraryLoadData")) == 2
    alone = tfc.compile(signature, add_kernel([90]))
    message = r"no image is for cuda:0, which has compute capability 8\.0; there are images for 9\.0"
    with pytest.raises(RuntimeError, match=message):
        added(alone, 100, 0)


def test_launches_of_several_architectures_are_one(driver):
    signature = f"add({VECTORS})"
    compiled = [
        kernels.compiled(kernels.add, POINTERS, {"BLOCK": 1024}, num_warps=warps, arch=arch)
        for arch, warps in ((80, 4), (90, 8))
    ]
    with pytest.raises(tfc.KernelError, match="the launches for sm_80 and sm_90 differ in `block`: 128 and 256"):
        tfc.triton.from_compiled(compiled, signature, grid=[1])
    with pytest.raises(tfc.KernelError, match="empty list"):
        tfc.triton.from_compiled([], signature, grid=[1])


def test_matmul_is_called_rightly(driver):
    types = {"a": "*fp16", "b": "*fp16", "c": "*fp32"}
    numbers = {name: "i32" for name in ("m", "n", "k", "stride_a", "stride_b", "stride_c")}
    constants = {"M": 64, "N": 64, "K": 32}
    compiled = kernels.compiled(kernels.matmul, {**types, **numbers}, constants, num_warps=8)
    signature = (
        'matmul(a: Tensor([m, k], float16, device="cuda"), b: Tensor([k, n], float16, device="cuda"), '
        'c: Tensor([m, n], float32, device="cuda"))'
    )
    bind = {"stride_a": "k", "stride_b": "n", "stride_c": "n"}
    grid = ["ceil_div(m, 64)", "ceil_div(n, 64)"]
    function = tfc.compile(signature, tfc.triton.from_compiled(compiled, signature, grid=grid, bind=bind))
    m, n, k = 100, 300, 50
    arrays = [np.zeros((m, k), "float16"), np.zeros((k, n), "float16"), np.zeros((m, n), "float32")]
    function(*map(on_device, arrays))
    shared = compiled.metadata.shared
    assert shared > 0
    assert driver.log("cuLaunchKernelEx") == [f"cuLaunchKernelEx(grid 2 5 1, block 256 1 1, shared {shared}, device 1)"]
    pointers = [array.ctypes.data for array in arrays]
    assert driver.parameters() == struct.pack("<QQQ6iQQ", *pointers, m, n, k, k, n, n, 0, 0)


def test_clusters_are_the_drivers_attribute(driver):
    compiled = kernels.compiled(kernels.add, POINTERS, {"BLOCK": 1024}, num_ctas=2)
    signature = f"add({VECTORS})"
    function = tfc.compile(signature, tfc.triton.from_compiled(compiled, signature, grid=["ceil_div(n, 1024)"]))
    function(*map(on_device, add_arrays(2500)))
    (call,) = driver.log("cuLaunchKernelEx")
    expected = r"cuLaunchKernelEx\(grid 6 1 1, block 128 1 1, shared \d+, device 1, attribute 4 = 2 1 1"
    assert re.match(expected, call), call


def test_descriptors_are_the_drivers_tensor_maps(driver):
    types = {"source": "tensordesc<fp16[64,64]>", "target": "tensordesc<fp16[64,64]>"}
    compiled = kernels.compiled(kernels.copy, types, {"M": 64})
    tensors = ", ".join(f'{name}: Tensor([m, n], float16, device="cuda", align=16)' for name in types)
    signature = f"copy({tensors}) where n % 8 == 0"
    function = tfc.compile(signature, tfc.triton.from_compiled(compiled, signature, grid=["ceil_div(m, 64)"]))
    m, n = 200, 72
    arrays = [np.zeros((m, n), "float16"), np.zeros((m, n), "float16")]
    function(*map(on_device, arrays))
    shared = compiled.metadata.shared
    assert driver.log("cuLaunchKernelEx") == [f"cuLaunchKernelEx(grid 4 1 1, block 128 1 1, shared {shared}, device 1)"]
    assert len(driver.log("cuTensorMapEncodeTiled")) == 2
    parameters, at = driver.parameters(), 0
    for array in arrays:
        # a tensor map is aligned to 64 bytes in the constant bank; the sizes and strides follow it
        at = -(-(at + PARAMETERS) // 64) * 64 - PARAMETERS
        described = TensorMap.from_buffer_copy(parameters, at)
        assert (described.magic, described.address) == (0x70616D, array.ctypes.data)
        # sizes begin with the innermost dimension; strides are in bytes, and omit that dimension
        assert list(described.dims)[:2] == [n, m] and described.strides[0] == 2 * n
        assert list(described.box)[:2] == [64, 64]
        assert (described.rank, described.bytes) == (2, 2)
        assert struct.unpack_from("<iiqq", parameters, at + 128) == (m, n, n, 1)
        at += 128 + 24
    assert struct.unpack_from("<QQ", parameters, at) == (0, 0) and len(parameters) == at + 16


def test_the_stand_in_refuses_what_a_device_refuses(driver):
    function = tfc.compile(f"add({VECTORS})", add_kernel())
    assert not added(function, 100)
    # the wrapper has already chosen the image for this device
    driver.capability(HOPPER, 100)
    with pytest.raises(RuntimeError, match=r"CUDA_ERROR_NO_BINARY_FOR_GPU \(209\)"):
        added(function, 100)


def test_a_failing_launch_is_an_error(driver):
    function = tfc.compile(f"add({VECTORS})", add_kernel())
    driver.fail("cuLaunchKernelEx", 719)
    with pytest.raises(RuntimeError, match=r"`cuLaunchKernelEx` failed with CUDA_ERROR_LAUNCH_FAILED \(719\)"):
        added(function, 100)
