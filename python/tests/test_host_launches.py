"""A host function of two launches with a workspace between them, on the stand-in driver (``tests/gpu/driver``)."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import tvm_ffi
import tvm_ffi_codegen as tfc
from standin import OnDevice
from tvm_ffi_codegen import host

TESTS = Path(__file__).parents[2] / "tests"

#: Rows of a softmax in one launch, or in two with the sums in a workspace. One thread computes a row.
KERNELS = """
#include <math.h>
#include "standin.h"
static float sum_of(const float *x, int k) {
  float sum = 0;
  for (int j = 0; j < k; ++j) sum += expf(x[j]);
  return sum;
}
const uint32_t rows_params[] = {8, 8, 4, 0};
void rows(const struct thread *t, void **params) {
  int k = ARG(int32_t, 2), row = t->block_index.x;
  const float *x = ARG(const float *, 0) + row * k, sum = sum_of(x, k);
  for (int j = 0; j < k; ++j) (ARG(float *, 1))[row * k + j] = expf(x[j]) / sum;
}
const uint32_t first_params[] = {8, 8, 4, 0};
void first(const struct thread *t, void **params) {
  int k = ARG(int32_t, 2), row = t->block_index.x;
  (ARG(float *, 1))[row] = sum_of(ARG(const float *, 0) + row * k, k);
}
const uint32_t second_params[] = {8, 8, 8, 4, 0};
void second(const struct thread *t, void **params) {
  int k = ARG(int32_t, 3), row = t->block_index.x;
  for (int j = 0; j < k; ++j)
    (ARG(float *, 2))[row * k + j] = expf((ARG(const float *, 0))[row * k + j]) / (ARG(const float *, 1))[row];
}
"""

#: The allocator of the tests' hosts, which counts its tensors here.
ALLOCATOR = """
#include <stdlib.h>
int live;
static void *counted(size_t align, size_t size) { ++live; return aligned_alloc(align, size); }
static void release(void *memory) { --live; free(memory); }
#define aligned_alloc counted
#define free release
#include "hosts/c/allocator.c"
static DLPackManagedTensorAllocator before;
int install(void) { return TVMFFIEnvSetDLPackManagedTensorAllocator(allocate, 1, &before); }
int restore(void) { return TVMFFIEnvSetDLPackManagedTensorAllocator(before, 1, NULL); }
"""


def shared_library(folder: Path, name: str, source: str, *includes: Path) -> str:
    (folder / f"{name}.c").write_text(source)
    path = str(folder / f"{name}.so")
    paths = [f"-I{include}" for include in includes]
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", *paths, str(folder / f"{name}.c"), "-o", path, "-lm"], check=True)
    return path


@pytest.fixture
def image(tmp_path: Path) -> bytes:
    """PTX whose kernels the stand-in runs as host code."""
    path = shared_library(tmp_path, "kernels", KERNELS, TESTS / "gpu/driver")
    entries = {
        "rows": "u64 x, u64 y, s32 k",
        "first": "u64 x, u64 sums, s32 k",
        "second": "u64 x, u64 sums, u64 y, s32 k",
    }
    text = f"// host: {path}\n.version 8.0\n.target sm_80\n.address_size 64\n"
    for name, params in entries.items():
        text += f".visible .entry {name}({', '.join(f'.param .{param}' for param in params.split(', '))}) {{ ret; }}\n"
    return text.encode()


@pytest.fixture
def allocator(tmp_path: Path) -> Iterator[ctypes.CDLL]:
    """An allocator for all devices."""
    include = Path(tvm_ffi.__file__).parent / "include"
    library = ctypes.CDLL(shared_library(tmp_path, "allocator", ALLOCATOR, TESTS, TESTS / "hosts/c", include))
    assert library.install() == 0
    yield library
    assert library.restore() == 0


def program() -> str:
    program = host.Program()
    b = program.function(
        'softmax(x: Tensor([n, k], float32, device="cuda"), y: Tensor([n, k], float32, device="cuda"), f: Function)',
        location=tfc.SourceLocation("model.py", 1, "softmax"),
    )
    x, y, n, k = map(b.arg, ["x", "y", "n", "k"])
    with b.if_(k <= 1024):
        b.launch("rows", grid=n, args=[x, y, "int32(k)"], image="softmax")
    with b.else_():
        sums = b.alloc([n], "float32", like=x, name="sums")
        b.launch("first", grid=n, args=[x, sums, "int32(k)"])
        b.launch("second", grid=n, args=[x, sums, y, "int32(k)"])
        b.at(tfc.SourceLocation("model.py", 5, "softmax"))
        b.call(b.arg("f"), y, sums)
    return str(program)


def on_device(array):
    return tvm_ffi.from_dlpack(OnDevice(array, 1))


@pytest.mark.parametrize("compiled", ["here", "library"])
def test_two_launches_have_a_workspace_between_them(image, allocator, driver, compiled):
    read = tfc.program(program(), images={"softmax": image})
    softmax = read.compile()["softmax"] if compiled == "here" else read.library().load().softmax
    seen = []
    for k in (1000, 1025):
        x = np.random.default_rng(3).random((3, k), dtype="float32")
        y = np.zeros_like(x)
        softmax(on_device(x), on_device(y), lambda y, sums: seen.append(sums.shape))
        assert np.allclose(y, np.exp(x) / np.exp(x).sum(axis=1, keepdims=True))
    launch = "cuLaunchKernelEx(grid 3 1 1, block 1 1 1, shared 0, device 1)"
    assert driver.log("cuLaunchKernelEx") == [launch] * 3
    assert driver.log("cuLibraryGetKernel") == [f"cuLibraryGetKernel({name})" for name in ("rows", "first", "second")]
    assert seen == [(3,)]
    assert ctypes.c_int.in_dll(allocator, "live").value == 0


@pytest.mark.parametrize("compiled", ["here", "library"])
def test_launches_go_out_as_a_graph(image, allocator, driver, compiled):
    program = host.Program()
    b = program.function(
        'softmax(x: Tensor([n, k], float32, device="cuda"), y: Tensor([n, k], float32, device="cuda"))'
    )
    x, y, n, k = map(b.arg, ["x", "y", "n", "k"])
    sums = b.alloc([n], "float32", like=x, name="sums")
    with b.graph():
        with b.if_(k > 1024):
            b.launch("first", grid=n, args=[x, sums, "int32(k)"])
            b.launch("second", grid=n, args=[x, sums, y, "int32(k)"])
        with b.else_():
            b.launch("rows", grid=n, args=[x, y, "int32(k)"])
    read = tfc.program(str(program), images={"softmax": image})
    softmax = read.compile()["softmax"] if compiled == "here" else read.library().load().softmax
    for k in (1000, 1025, 1026, 7):
        x = np.random.default_rng(3).random((3, k), dtype="float32")
        y = np.zeros_like(x)
        softmax(on_device(x), on_device(y))
        assert np.allclose(y, np.exp(x) / np.exp(x).sum(axis=1, keepdims=True))
    graphs = [["rows"], ["first", "second"], ["first", "second"], ["rows"]]
    assert driver.log("cuGraphLaunch") == [f"cuGraphLaunch({', '.join(kernels)})" for kernels in graphs]
    assert len(driver.log("cuGraphInstantiateWithFlags")) == 2
    assert driver.log("cuLaunch") == []
    assert ctypes.c_int.in_dll(allocator, "live").value == 0


def test_the_workspace_is_released_whatever_fails(image, allocator, driver):
    softmax = tfc.program(program(), images={"softmax": image}).compile()["softmax"]
    live = ctypes.c_int.in_dll(allocator, "live")
    x, y = np.ones((2, 1030), "float32"), np.zeros((2, 1030), "float32")
    arguments = on_device(x), on_device(y)

    def refuses(y, sums):
        assert live.value == 1
        raise KeyError("never")

    with pytest.raises(KeyError, match="never"):
        softmax(*arguments, refuses)
    assert live.value == 0
    driver.fail("cuLaunchKernelEx", 719)
    with pytest.raises(RuntimeError, match="CUDA_ERROR_LAUNCH_FAILED"):
        softmax(*arguments, refuses)
    assert live.value == 0


def by_dtype() -> str:
    """Rows of float32 in one launch or in two, rows of float64 by the callback."""
    program = host.Program()
    b = program.function(
        'softmax(x: Tensor([n, k], any, device="cuda"), y: Tensor([n, k], any, device="cuda"), f: Function)'
    )
    x, y, n = map(b.arg, ["x", "y", "n"])
    with b.if_(host.and_(x.dtype == host.type_("float32"), y.dtype == host.type_("float32"))):
        sums = b.alloc([n], "float32", like=x, name="sums")
        b.launch("first", grid=n, args=[x, sums, "int32(k)"])
        b.launch("second", grid=n, args=[x, sums, y, "int32(k)"])
    with b.elif_(x.dtype == host.type_("float64")):
        b.call(b.arg("f"), x, y)
    with b.else_():
        b.raise_("TypeError", "no kernel of {}", x.dtype)
    return str(program)


def test_a_branch_on_the_dtype_chooses_the_launches(image, allocator, driver):
    softmax = tfc.program(by_dtype(), images={"softmax": image}).compile()["softmax"]
    x, seen = np.random.default_rng(3).random((3, 20)), []
    for dtype in ("float32", "float64", "int32"):
        given, y = x.astype(dtype), np.zeros(x.shape, dtype)
        arguments = on_device(given), on_device(y), lambda x, y: seen.append(x.dtype)
        if dtype == "int32":
            with pytest.raises(TypeError, match="no kernel of int32"):
                softmax(*arguments)
        else:
            softmax(*arguments)
            assert np.allclose(y, np.exp(x) / np.exp(x).sum(axis=1, keepdims=True)) == (dtype == "float32")
    assert len(driver.log("cuLaunchKernelEx")) == 2
    assert seen == [tvm_ffi.dtype("float64")]
    assert ctypes.c_int.in_dll(allocator, "live").value == 0


def test_a_body_asks_for_the_capability_of_a_device(driver):
    program = host.Program()
    b = program.function("capability(x: Tensor([n], float32, device=any)) -> int64")
    x = b.arg("x")
    with b.if_(host.and_(x.device.kind == "cuda", x.device.capability >= 90)):
        b.ret(x.device.id * 1000 + x.device.capability)
    b.ret(0)
    read = tfc.program(str(program))
    for capability in (read.compile()["capability"], read.library().load().capability):
        array = np.zeros(1, "float32")
        assert [capability(tvm_ffi.from_dlpack(OnDevice(array, number))) for number in (0, 1)] == [0, 1090]
        assert capability(array) == 0
    assert not driver.log("cuLibraryLoadData")
    driver.fail("cuDevicePrimaryCtxRetain", 2)
    text = "Cannot ask for the compute capability of a device when calling: `capability"
    with pytest.raises(RuntimeError, match=text):
        read.compile()["capability"](tvm_ffi.from_dlpack(OnDevice(np.zeros(1, "float32"), 1)))


def test_launches_are_compared_with_their_images(image):
    wrong = program().replace("args=[x, sums, y, int32(k)]", "args=[x, sums, y, k]")
    with pytest.raises(tfc.KernelError) as raised:
        tfc.program(wrong, images={"softmax": image}).compile()
    assert [(of.path, of.line) for of in raised.value.errors] == [("softmax", 8)]
    with pytest.raises(tfc.KernelError, match="no image is called `softmax`"):
        tfc.program(program())
