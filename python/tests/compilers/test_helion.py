"""Helion's kernels, compiled without a device and launched on the stand-in driver."""

from __future__ import annotations

import ctypes
import struct

import numpy as np
import pytest

pytest.importorskip("helion")

import helion
import helion.language as hl
import torch
import tvm_ffi
import tvm_ffi_codegen as tfc
import tvm_ffi_codegen.helion

import pages
from triton_programs import array_at, on_device

SMALL = helion.Config(block_sizes=[1024], num_warps=4)
LARGE = helion.Config(block_sizes=[4096], num_warps=8)


@helion.kernel(config=SMALL, static_shapes=False)
def add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for tile in hl.tile(out.size()):
        out[tile] = x[tile] + y[tile]
    return out


@helion.kernel(config=helion.Config(block_sizes=[64, 64, 32], num_warps=4, l2_groupings=[4]), static_shapes=False)
def matmul(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    m, k = x.size()
    k2, n = y.size()
    out = torch.empty([m, n], dtype=torch.promote_types(x.dtype, y.dtype), device=x.device)
    for tile_m, tile_n in hl.tile([m, n]):
        acc = hl.zeros([tile_m, tile_n], dtype=torch.float32)
        for tile_k in hl.tile(k):
            acc = torch.addmm(acc, x[tile_m, tile_k], y[tile_k, tile_n])
        out[tile_m, tile_n] = acc
    return out


@helion.kernel(config=helion.Config(block_sizes=[16, 32], num_warps=4), static_shapes=False)
def biased(x: torch.Tensor, b: torch.Tensor, s: float, k: int) -> torch.Tensor:
    m, n = x.size()
    out = torch.empty_like(x)
    for tm, tn in hl.tile([m, n]):
        out[tm, tn] = x[tm, tn] * s + b[tn] * k
    return out


@helion.kernel(config=helion.Config(block_sizes=[1], num_warps=4), static_shapes=False)
def softmax(x: torch.Tensor) -> torch.Tensor:
    n, _ = x.size()
    out = torch.empty_like(x)
    for tile in hl.tile(n):
        out[tile, :] = torch.nn.functional.softmax(x[tile, :], dim=1)
    return out


@helion.kernel(config=SMALL, static_shapes=False)
def scaled(x: torch.Tensor, factor: hl.constexpr) -> None:
    for tile in hl.tile(x.size()):
        x[tile] = x[tile] * factor


@helion.kernel(config=SMALL, static_shapes=False)
def twice(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for tile in hl.tile(out.size()):
        out[tile] = x[tile] + x[tile]
    return out


@helion.kernel(config=SMALL, static_shapes=True)
def constant(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for tile in hl.tile(out.size()):
        out[tile] = x[tile] + 1
    return out


@helion.kernel(config=helion.Config(block_sizes=[32], num_warps=4), static_shapes=False)
def specialized(x: torch.Tensor) -> torch.Tensor:
    m, n = x.size()
    n = hl.specialize(n)
    out = torch.empty_like(x)
    for tile in hl.tile(m):
        out[tile, :] = x[tile, :] + n
    return out


def tensor(sizes, dtype="float32", more=", align=16"):
    return f'Tensor([{sizes}], {dtype}, device="cuda"{more})'


VECTORS = ", ".join(f"{name}: {tensor('n')}" for name in ("x", "y", "out"))
ADD = f"add({VECTORS}) where n >= 2"
MATMUL = (
    f"matmul(x: {tensor('m, k', 'float16')}, y: {tensor('k, n', 'float16')}, out: {tensor('m, n', 'float16')}) "
    "where m * k <= 2147483647, k * n <= 2147483647, n >= 2, k >= 2"
)
BIASED = (
    f"biased(x: {tensor('m, n')}, b: {tensor('n')}, s: float64, k: int64, out: {tensor('m, n')}) "
    "where m * n <= 2147483647, n >= 2"
)


def text(signature, kernel):
    object = tfc.Library().add(signature, kernel).object()
    (function,) = tfc.inspect(object)["functions"]
    return [of["launch"] for of in function["metadata"]["launches"]]


def name_add(driver, block):
    """Lets Helion's `add` run: each program adds a tile."""

    def run(index, grid, x, y, out, n, *scratch):
        part = slice(index.x * block, min(n, (index.x + 1) * block))
        array_at(out, n)[part] = array_at(x, n)[part] + array_at(y, n)[part]

    pointer = ctypes.c_void_p
    driver.program("_helion_add", [pointer, pointer, pointer, ctypes.c_int32, pointer, pointer], run)


def added(function, n):
    x = np.arange(n, dtype="float32")
    out = np.zeros_like(x)
    function(*map(on_device, (x, x[::-1].copy(), out)))
    return bool((out == n - 1).all())


def test_add_is_launched_from_a_library(driver, tmp_path):
    kernel = tfc.helion.kernel(add, ADD, archs=[80, 90])
    # strides of 1 are constants of the kernel
    assert text(ADD, kernel)[0].endswith("grid=(1023 + n) // 1024 block=128 args=[x, y, out, int32(n), null, null]")
    tfc.Library().add(ADD, kernel).link(tmp_path / "add.so")
    module = tvm_ffi.load_module(str(tmp_path / "add.so"))
    name_add(driver, 1024)
    # no size of the grid is that of the binding
    for n in (2, 2500, 70000):
        assert added(module.add, n)
    grids = [line.partition(",")[0] for line in driver.log("cuLaunchKernelEx")]
    assert grids == [f"cuLaunchKernelEx(grid {-(-n // 1024)} 1 1" for n in (2, 2500, 70000)]
    with pytest.raises(ValueError, match="n >= 2"):
        added(module.add, 1)


def test_matmul_has_symbolic_strides(driver):
    kernel = tfc.helion.kernel(matmul, MATMUL, archs=[90])
    function = tfc.compile(MATMUL, kernel)
    m, n, k = 100, 300, 50
    arrays = [np.zeros(of, "float16") for of in ((m, k), (k, n), (m, n))]
    # addresses are multiples of 16
    function(*map(on_device, map(aligned, arrays)))
    (line,) = driver.log("cuLaunchKernelEx")
    assert line.startswith("cuLaunchKernelEx(grid 10 1 1, block 128 1 1,")
    # out_stride_0, x_stride_0, y_stride_0, m, n, k; strides that are 1 are constants
    assert struct.unpack_from("<6i", driver.parameters(), 24) == (n, k, n, m, n, k)


KEPT = []


def aligned(array):
    memory = np.zeros(array.size + 32, array.dtype)
    KEPT.append(memory)
    start = -memory.ctypes.data % 64 // memory.itemsize
    return memory[start : start + array.size].reshape(array.shape)


def test_numbers_are_passed(driver):
    kernel = tfc.helion.kernel(biased, BIASED, archs=[90])
    (launch,) = text(BIASED, kernel)
    assert "grid=(15 + m) // 16 * ((31 + n) // 32)" in launch
    assert launch.endswith("int32(m), int32(n), cast(s, float32), int32(k), null, null]")
    function = tfc.compile(BIASED, kernel)
    arrays = [aligned(np.zeros(of, "float32")) for of in ((40, 50), (50,), (40, 50))]
    x, b, out = map(on_device, arrays)
    function(x, b, 0.5, 7, out)
    assert struct.unpack("<QQQ4ifiQQ", driver.parameters())[3:9] == (50, 50, 40, 50, 0.5, 7)
    with pytest.raises(ValueError, match="k"):
        function(x, b, 0.5, 1 << 40, out)


def test_a_condition_chooses_the_config(driver, tmp_path):
    kernel = tfc.helion.kernel(add, ADD, archs=[90], config=[("n >= 65536", LARGE), (None, SMALL)])
    assert [of.partition(" args")[0] for of in text(ADD, kernel)] == [
        "launch _helion_add grid=(4095 + n) // 4096 block=256",
        "launch _helion_add grid=(1023 + n) // 1024 block=128",
    ]
    tfc.Library().add(ADD, kernel).link(tmp_path / "add.so")
    module = tvm_ffi.load_module(str(tmp_path / "add.so"))
    for n in (65535, 65536):
        module.add(*[on_device(aligned(np.zeros(n, "float32"))) for _ in range(3)])
    shapes = [line.partition(", shared")[0] for line in driver.log("cuLaunchKernelEx")]
    assert shapes == ["cuLaunchKernelEx(grid 64 1 1, block 128 1 1", "cuLaunchKernelEx(grid 16 1 1, block 256 1 1"]


def test_configs_and_devices():
    config = {"block_sizes": [64, 64, 32], "pid_type": "persistent_blocked"}
    with pytest.raises(tfc.KernelError, match="needs a value that only a call knows"):
        tfc.helion.kernel(matmul, MATMUL, archs=[90], config=helion.Config(**config))
    config["pid_type"] = "xyz"
    kernel = tfc.helion.kernel(matmul, MATMUL, archs=[90], config=helion.Config(**config))
    assert "grid=((63 + m) // 64, (63 + n) // 64) " in text(MATMUL, kernel)[0]
    for_hip = ADD.replace('"cuda"', '"rocm"')
    assert "args=[x, y, out, int32(n)" in text(for_hip, tfc.helion.kernel(add, for_hip, archs=["gfx942"]))[0]


def test_values_that_the_signature_does_not_have():
    signature = f"scaled(x: {tensor('n')}) where n >= 2"
    kernel = tfc.helion.kernel(scaled, signature, archs=[90], arguments={"factor": 3.0})
    assert text(signature, kernel)[0].endswith("args=[x, int32(n), null, null]")
    with pytest.raises(tfc.KernelError, match="expected `factor` in the signature or in arguments"):
        tfc.helion.kernel(scaled, signature, archs=[90])
    with pytest.raises(tfc.KernelError, match="the kernel has no parameter `by`"):
        tfc.helion.kernel(scaled, signature, archs=[90], arguments={"by": 3.0})


def test_constant_sizes():
    signature = f"constant(x: {tensor('4096')}, out: {tensor('4096')})"
    assert "grid=4 " in text(signature, tfc.helion.kernel(constant, signature, archs=[90]))[0]
    free = signature.replace("4096", "n")
    with pytest.raises(tfc.KernelError, match="constant sizes, and the signature has n: state static_shapes"):
        tfc.helion.kernel(constant, free, archs=[90])
    rows = f"specialized(x: {tensor('m, 64')}, out: {tensor('m, 64')}) where m <= 1000000"
    assert "grid=(31 + m) // 32 " in text(rows, tfc.helion.kernel(specialized, rows, archs=[90]))[0]
    with pytest.raises(tfc.KernelError, match="Helion"):
        tfc.helion.kernel(specialized, rows.replace("64", "n") + ", n <= 64, n >= 2", archs=[90])


def test_bound_kernels():
    bound = add.bind((torch.empty(256), torch.empty(256)))
    assert text(ADD, tfc.helion.kernel(bound, ADD, archs=[90]))
    with pytest.raises(tfc.KernelError, match="bound for other arguments than the signature has"):
        tfc.helion.kernel(bound, ADD.replace("float32", "float16"), archs=[90])


@pytest.mark.parametrize(
    "kernel, signature, message",
    [
        (add, f"add({VECTORS})", "Helion has compiled for sizes .*: state `where n != 1` in it"),
        (add, f"add({VECTORS}) where n != 2", "state `where n != 1` in it"),
        (add, ADD.replace(f", out: {tensor('n')}", ""), "allocates `out`: expected a tensor of this name"),
        (add, ADD.replace("out: Tensor([n], float32", "out: Tensor([n], float16"), "`out`: expected float32 of sizes"),
        (add, ADD.replace("out: Tensor([n]", "out: Tensor([n + 1]"), r"`out`: expected float32 of sizes \(n\)"),
        (add, ADD.replace("x: Tensor([n]", "x: Tensor([...]"), "`x`: expected stated sizes and strides"),
        (add, ADD.replace("float32", "any"), "`x`: expected a dtype that PyTorch and Triton have, got any"),
        (add, ADD.replace("x:", "z:"), "expected `x` in the signature or in arguments"),
        (matmul, MATMUL.replace("m * k <= 2147483647, ", ""), r"elements of `x` with 32 bits: state `where m \* k <="),
        (softmax, f"softmax(x: {tensor('m, n')}, out: {tensor('m, n')}) where m * n <= 9, n >= 2", "only a call knows"),
        (twice, f"twice(x: {tensor('n')}, out: {tensor('n')}) where n >= 2", r"computes aten.* outside its"),
    ],
)
def test_what_is_refused(kernel, signature, message):
    with pytest.raises(tfc.KernelError, match=message):
        tfc.helion.kernel(kernel, signature, archs=[90])


def test_wide_indices_pass_64_bits(driver):
    wide = helion.kernel(add.fn, config=SMALL, static_shapes=False, index_dtype=torch.int64)
    kernel = tfc.helion.kernel(wide, ADD, archs=[90])
    assert text(ADD, kernel)[0].endswith("args=[x, y, out, int64(n), null, null]")
    wide = helion.kernel(matmul.fn, config=matmul.configs[0], static_shapes=False, index_dtype=torch.int64)
    without = MATMUL.replace("m * k <= 2147483647, k * n <= 2147483647, ", "")
    assert "int64(m), int64(n), int64(k)" in text(without, tfc.helion.kernel(wide, without, archs=[90]))[0]


def test_stated_facts_are_accepted():
    for where in ("n != 1", "n > 1", "n >= 1024", "n % 16 == 0"):
        signature = f"add({VECTORS}) where {where}"
        assert text(signature, tfc.helion.kernel(add, signature, archs=[90]))
    # a launch passes multiples of 16 as such, and a smaller bound is one
    small = MATMUL.replace("m * k <= 2147483647", "m <= 1024, k <= 1024")
    assert text(small, tfc.helion.kernel(matmul, small, archs=[90]))


def test_wrong_arguments():
    for change, error, message in [
        ({"kernel": add.fn}, TypeError, "kernel: expected a kernel under @helion.kernel"),
        ({"archs": []}, ValueError, "archs: expected at least one"),
        ({"archs": ["sm_90"]}, ValueError, "expected a compute capability such as 90"),
        ({"config": [("n > 5", SMALL)]}, ValueError, "config: expected None as the last condition"),
        ({"config": [(None, SMALL), (None, SMALL)]}, ValueError, "config: expected None as the last condition"),
        ({"config": [SMALL]}, TypeError, "expected a condition and a helion.Config"),
        ({"sizes": {"n": "many"}}, TypeError, "sizes"),
    ]:
        given = {"kernel": add, "signature": ADD, "archs": [90], **change}
        with pytest.raises(error, match=message):
            tfc.helion.kernel(given.pop("kernel"), given.pop("signature"), **given)


def test_the_page(tmp_path):
    pages.check("helion", tmp_path)
