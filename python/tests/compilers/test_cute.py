"""Kernels of the CuTe DSL: cubins that it compiles without a device, launched on the stand-in driver."""

import ctypes
import os
import struct
from pathlib import Path

import numpy as np
import pages
import pytest
import tvm_ffi
import tvm_ffi_codegen as tfc
from triton_programs import AMPERE, HOPPER, on_device

cutlass = pytest.importorskip("cutlass")
cute = pytest.importorskip("cutlass.cute")
nvidia_cutlass_dsl = pytest.importorskip("nvidia_cutlass_dsl")

from tvm_ffi_codegen import cute as tc

SCALE = (
    'scale(a: Tensor([n, m], float32, device="cuda", align=16), '
    'b: Tensor([n, 8], float32, strides=[s, 1], device="cuda", align=16), f: float32, q: int64)'
)
LAUNCH = {"grid": "ceil_div(n, 128)", "block": 128}


@cute.kernel
def scale_kernel(a: cute.Tensor, b: cute.Tensor, f: cutlass.Float32, q: cutlass.Int64):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    i = block * 128 + thread
    if i < cute.size(a, mode=[0]):
        b[i, 0] = a[i, 1] * f + cutlass.Float32(q)


@cute.jit
def scale(a: cute.Tensor, b: cute.Tensor, f: cutlass.Float32, q: cutlass.Int64):
    blocks = cute.ceil_div(cute.size(a, mode=[0]), 128)
    scale_kernel(a, b, f, q).launch(grid=[blocks, 1, 1], block=[128, 1, 1])


@cute.kernel
def first_kernel(x: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    x[thread] = x[thread] + x[thread]


@cute.jit
def fixed(x: cute.Tensor):
    first_kernel(x).launch(grid=[1, 1, 1], block=[64, 1, 1])


@cute.jit
def twice(x: cute.Tensor):
    first_kernel(x).launch(grid=[1, 1, 1], block=[64, 1, 1])
    scale_kernel(x, x, cutlass.Float32(1), cutlass.Int64(1)).launch(grid=[1, 1, 1], block=[64, 1, 1])


@cute.jit
def clustered(x: cute.Tensor):
    first_kernel(x).launch(grid=[4, 1, 1], block=[64, 1, 1], cluster=[2, 1, 1])


class Tensors(ctypes.Structure):
    """The parameters of ``scale_kernel``."""

    _fields_ = [
        ("a", ctypes.c_uint64), ("rows", ctypes.c_int32), ("columns", ctypes.c_int32), ("stride", ctypes.c_int64),
        ("b", ctypes.c_uint64), ("size", ctypes.c_int32), ("step", ctypes.c_int64), ("f", ctypes.c_float),
        ("q", ctypes.c_int64),
    ]  # fmt: skip


def test_a_launch_on_each_architecture(driver, tmp_path):
    before = os.listdir()
    kernel = tc.compile(scale, SCALE, archs=["sm_80", "sm_90a"], **LAUNCH)
    assert os.listdir() == before
    call = tfc.compile(SCALE, kernel)
    a, b = np.zeros((300, 5), "float32"), np.zeros((300, 12), "float32")[:, :8]
    for device in (AMPERE, HOPPER):
        call(on_device(a, device), on_device(b, device), 0.5, 7)
        [log] = driver.log("cuLaunchKernelEx")
        assert log == f"cuLaunchKernelEx(grid 3 1 1, block 128 1 1, shared 0, device {device})"
        got = Tensors.from_buffer_copy(driver.parameters())
        assert [getattr(got, name) for name, _ in Tensors._fields_] == [
            a.ctypes.data, 300, 5, 5, b.ctypes.data, 300, 12, 0.5, 7
        ]  # fmt: skip
        driver.reset()
    with pytest.raises(ValueError, match=r"b\.shape\[0\]"):
        call(on_device(a), on_device(b[:3]), 0.5, 7)
    with pytest.raises(ValueError, match="align"):
        call(on_device(a.reshape(-1)[1:1486].reshape(297, 5)), on_device(b[:297]), 0.5, 7)
    with pytest.raises(TypeError, match="f"):
        call(on_device(a), on_device(b), "0.5", 7)


def test_a_library(driver, tmp_path):
    kernel, path = tc.compile(scale, SCALE, archs=["sm_90a"], **LAUNCH), tmp_path / "scale.so"
    tfc.Library().add(SCALE, kernel).link(path)
    a, b = np.zeros((128, 5), "float32"), np.zeros((128, 8), "float32")
    tvm_ffi.load_module(str(path)).scale(on_device(a), on_device(b), 0.5, 7)
    assert driver.log("cuLaunchKernelEx") == ["cuLaunchKernelEx(grid 1 1 1, block 128 1 1, shared 0, device 1)"]


def test_a_tensor_whose_layout_is_known_is_an_address(driver):
    text = 'fixed(x: Tensor([64], float16, device="cuda"))'
    call, x = tfc.compile(text, tc.compile(fixed, text, archs=["sm_90"], grid=1, block=64)), np.zeros(64, "float16")
    call(on_device(x))
    assert driver.parameters() == struct.pack("<Q", x.ctypes.data)


@pytest.mark.parametrize("dtype", sorted(tc._TYPES))
def test_elements(driver, dtype):
    text = f'fixed(x: Tensor([n], {dtype}, device="cuda"))'
    if dtype.startswith("float8") or dtype == "bool":
        # the DSL has no arithmetic for them
        assert tc.arguments(text)["x"].element_type is getattr(cutlass, tc._TYPES[dtype])
    else:
        tfc.compile(text, tc.compile(fixed, text, archs=["sm_90"], grid=1, block=64))


@pytest.mark.parametrize("dtype", sorted(of for of in tc._TYPES if "float8" not in of and of != "float32"))
def test_scalars(driver, dtype):
    @cute.kernel
    def fill_kernel(x: cute.Tensor, value):
        thread, _, _ = cute.arch.thread_idx()
        x[thread] = cutlass.Float32(value)

    @cute.jit
    def fill(x: cute.Tensor, value):
        fill_kernel(x, value).launch(grid=[1, 1, 1], block=[64, 1, 1])

    text = f'fill(x: Tensor([64], float32, device="cuda"), value: {dtype})'
    call, x = tfc.compile(text, tc.compile(fill, text, archs=["sm_90"], grid=1, block=64)), np.zeros(64, "float32")
    call(on_device(x), 1)
    bits = {"float16": 0x3C00, "bfloat16": 0x3F80, "float64": 0x3FF0000000000000}
    assert int.from_bytes(driver.parameters()[8:], "little") == bits.get(dtype, 1)


def test_clusters(driver):
    text = 'clustered(x: Tensor([64], float32, device="cuda"))'
    compiled = tc.compile(clustered, text, archs=["sm_90a"], grid=4, block=64, cluster=(2, 1, 1))
    tfc.compile(text, compiled)(on_device(np.zeros(64, "float32")))
    [log] = driver.log("cuLaunchKernelEx")
    assert "grid 4 1 1, block 64 1 1" in log and "attribute 4 = 2 1 1" in log


def test_the_host_code_of_the_dsl_behind_checks(tmp_path):
    compiled = cute.compile(scale, *tc.arguments(SCALE).values(), options="--gpu-arch sm_90a --enable-tvm-ffi")
    compiled.export_to_c(object_file_path=str(tmp_path / "scale.o"), function_name="scale")
    kernel = tfc.Kernel.symbol("__tvm_ffi_scale", convention="packed")
    folder, path = Path(nvidia_cutlass_dsl.__path__[0], "cu12/lib"), tmp_path / "scale.so"
    tfc.Library().add(f"checked.{SCALE}", kernel).link(
        path, objects=[(tmp_path / "scale.o").read_bytes()], libraries=["cute_dsl_runtime"], library_folders=[folder]
    )
    ctypes.CDLL(str(folder / "libcute_dsl_runtime.so"), ctypes.RTLD_GLOBAL)
    module, arrays = tvm_ffi.load_module(str(path)), (np.zeros((4, 5), "float32"), np.zeros((3, 8), "float32"))
    with pytest.raises(ValueError, match=r"b\.shape\[0\].* expected 4 \(n, from a\.shape\[0\]\), got 3"):
        module.get_function("checked.scale")(*map(on_device, arrays), 0.5, 7)
    # equal symbols are one symbol for the DSL, too
    with pytest.raises(ValueError, match=r"b\.shape\[0\]"):
        module.get_function("scale")(*map(on_device, arrays), 0.5, 7)


def test_mistakes():
    for wrong, message in (
        ({"block": 64}, r"blocks of \[128, 1, 1\] threads"),
        ({"args": ["a", "b", "f"]}, r"takes 4 parameters \(of 24, 24, 4, 8 bytes\)"),
        ({"args": ["a", "b", "f", "int32(q)"]}, "4, 8 bytes"),
        ({"args": ["a", "b", "f", "c"]}, "c"),
    ):
        with pytest.raises(tfc.CodegenError, match=message):
            tfc.compile(SCALE, tc.compile(scale, SCALE, archs=["sm_90a"], **{**LAUNCH, **wrong}))
    with pytest.raises(tfc.KernelError, match="launches one kernel, got 2"):
        text = 'twice(x: Tensor([8, 8], float32, device="cuda"))'
        tc.compile(twice, text, archs=["sm_90a"], **LAUNCH)
    with pytest.raises(ValueError, match="archs: expected at least one"):
        tc.compile(scale, SCALE, archs=[], **LAUNCH)
    with pytest.raises(TypeError, match="compiled: expected what cute.compile returns, with the option --keep-cubin"):
        tc.kernel(scale, SCALE, **LAUNCH)
    with pytest.raises(tfc.KernelError, match="expected a compiled function, got an empty list"):
        tc.kernel([], SCALE, **LAUNCH)
    for type, message in (
        ("str", "`x`: expected a tensor or a number, got str"),
        ("Tensor([...], int8)", "`x`: expected a tensor of stated sizes"),
        ("Tensor([n], any)", "`x`: expected a tensor of stated sizes"),
        ("Tensor([n], int8, strides=any)", "`x`: expected a tensor of stated sizes"),
        ("Tensor([n], complex64)", "`x`: expected a dtype of the CuTe DSL, got complex64"),
    ):
        with pytest.raises(tfc.KernelError, match=message.replace("[", r"\[")):
            tc.arguments(f"f(x: {type})")


def test_the_page(tmp_path):
    pages.check("cute", tmp_path)
