"""Kernels in CUDA C++, compiled by NVRTC and launched on the stand-in driver, which reads their cubins."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
import tvm_ffi_codegen as tfc
from triton_programs import array_at, on_device

pytest.importorskip("nvidia.cuda_nvrtc")

SAXPY = """
#include "index.h"
extern "C" __global__ void saxpy(float a, const float* x, float* y, index_t n) {
  index_t i = blockIdx.x * (index_t)blockDim.x + threadIdx.x;
  if (i < n) y[i] += a * x[i];
}
namespace lib {
template <class T> __global__ void scale(T* x, index_t n, T by) {
  for (index_t i = threadIdx.x; i < n; i += blockDim.x) x[i] *= by;
}
}
"""
HEADERS = {"index.h": "typedef long long index_t;"}
SIGNATURE = 'saxpy(a: float32, x: Tensor([n], float32, device="cuda"), y: Tensor([n], float32, device="cuda"))'
LAUNCH = "launch saxpy grid=ceil_div(n, 256) block=256"
SCALE = (
    'scale(x: Tensor([n], float32, device="cuda"), by: float32) '
    '@ launch "lib::scale<float>" block=256 args=[x, int64(n), by]'
)

POINTER, LONG, FLOAT = ctypes.c_void_p, ctypes.c_longlong, ctypes.c_float


def test_inline_source_becomes_functions(driver):
    module = tfc.cuda.load_inline(SAXPY, [f"{SIGNATURE} @ {LAUNCH}", SCALE], ["sm_80", "sm_90"], headers=HEADERS)

    def saxpy(index, grid, a, x, y, n):
        part = slice(index.x * 256, min(n, (index.x + 1) * 256))
        array_at(y, n)[part] += a * array_at(x, n)[part]

    driver.program("saxpy", [FLOAT, POINTER, POINTER, LONG], saxpy)
    x, y = np.arange(600, dtype="float32"), np.ones(600, "float32")
    module.saxpy(2.0, on_device(x), on_device(y))
    assert (y == 2 * x + 1).all()
    assert driver.log("cuLaunchKernelEx") == ["cuLaunchKernelEx(grid 3 1 1, block 256 1 1, shared 0, device 1)"]
    # a device of another architecture gets the other image; the kernel has a mangled name
    entry = tfc.cuda.compile(SAXPY, ["sm_80"], kernels=["lib::scale<float>"], headers=HEADERS).entries
    name = entry["lib::scale<float>"]
    assert name.startswith("_Z") and "scale" in name

    def scale(index, grid, x, n, by):
        array_at(x, n)[:] *= by

    driver.program(name, [POINTER, LONG, FLOAT], scale)
    module.scale(on_device(x, 0), 3.0)
    assert x[7] == 21
    with pytest.raises(TypeError, match="scale"):
        module.scale(on_device(x, 0), "3")
    with pytest.raises(ValueError, match=r"y\.shape\[0\]"):
        module.saxpy(1.0, on_device(x), on_device(np.zeros(3, "float32")))


def test_without_architectures_it_is_ptx_for_the_oldest_one():
    capabilities = tfc.cuda.capabilities()
    assert capabilities == sorted(capabilities) and 90 in capabilities
    module = tfc.cuda.load_inline(SAXPY, f"{SIGNATURE} @ {LAUNCH}", headers=HEADERS, backend="cranelift")
    assert module.saxpy.__name__ == "saxpy"
    [image] = tfc.cuda.compile(SAXPY, [f"compute_{capabilities[0]}"], headers=HEADERS).images
    assert image.startswith(b"//") and b".entry saxpy" in image


def test_a_cache_keeps_what_was_compiled(driver, tmp_path, monkeypatch):
    cache = tfc.Cache(tmp_path / "cache")
    functions = [f"{SIGNATURE} @ {LAUNCH}", SCALE]
    first = tfc.cuda.load_inline(SAXPY, functions, ["sm_80", "sm_90"], headers=HEADERS, cache=cache)

    def compiled(*args, **kwargs):
        raise AssertionError("NVRTC was called")

    monkeypatch.setattr(tfc.cuda, "compile", compiled)
    again = tfc.cuda.load_inline(SAXPY, functions, ["sm_80", "sm_90"], headers=HEADERS, cache=cache)
    assert repr(again.saxpy) == repr(first.saxpy) and again.scale.__name__ == "scale"
    x = np.ones(600, "float32")
    again.saxpy(2.0, on_device(x), on_device(x))
    assert driver.log("cuLaunchKernelEx") == ["cuLaunchKernelEx(grid 3 1 1, block 256 1 1, shared 0, device 1)"]
    # each argument is part of the key
    for changed in [
        {"options": ["-DN=1"]},
        {"headers": {"index.h": "typedef long index_t;"}},
        {"archs": ["sm_90"]},
        {"functions": functions[:1]},
        {"source": SAXPY + " "},
        {"opt_level": "none"},
    ]:
        stated = {"source": SAXPY, "functions": functions, "archs": ["sm_80", "sm_90"], "headers": HEADERS}
        with pytest.raises(AssertionError, match="NVRTC was called"):
            tfc.cuda.load_inline(**{**stated, **changed}, cache=cache)
    with pytest.raises(TypeError, match="cache"):
        tfc.cuda.load_inline(SAXPY, functions, cache="folder")


def test_images_are_for_kernels_and_libraries(tmp_path):
    compiled = tfc.cuda.compile(SAXPY, ["sm_90a"], ["-lineinfo"], headers=HEADERS, file="dir/saxpy.cu")
    assert compiled.entries == {} and compiled.log == ""
    kernel = tfc.Kernel.cuda(compiled.images, "saxpy", grid="ceil_div(n, 256)", block=256)
    path = tmp_path / "saxpy.so"
    tfc.Library().add(SIGNATURE, kernel).link(str(path))
    [function] = tfc.inspect(path.read_bytes())["functions"]
    assert function["name"] == "saxpy"


def test_mistakes_are_errors():
    with pytest.raises(tfc.CodegenError, match=r"can't compile k\.cu for sm_90:\nk\.cu\(1\): error: "):
        tfc.cuda.compile("__global__ void f() { g(); }", ["sm_90"], file="k.cu")
    with pytest.raises(tfc.CodegenError, match="unknown architecture `sm90`"):
        tfc.cuda.compile("", ["sm90"])
    with pytest.raises(tfc.CodegenError, match="no architectures are stated"):
        tfc.cuda.load_inline(SAXPY, f"{SIGNATURE} @ {LAUNCH}", [], headers=HEADERS)
    with pytest.raises(TypeError, match="archs"):
        tfc.cuda.compile("", "sm_90")
    with pytest.raises(tfc.CodegenError, match="can't be loaded"):
        tfc.cuda.compile("", ["sm_90"], nvrtc="/there/is/none.so")
    wrong = SIGNATURE.replace("a: float32", "a: float64")
    with pytest.raises(tfc.CodegenError, match="kernel `saxpy` takes parameters of 4, 8, 8, 8 bytes"):
        tfc.cuda.load_inline(SAXPY, f"{wrong} @ {LAUNCH}", ["sm_90"], headers=HEADERS)
    with pytest.raises(tfc.CodegenError, match="lib::nothing"):
        tfc.cuda.load_inline(SAXPY, SCALE.replace("scale<float>", "nothing"), ["sm_90"], headers=HEADERS)
    with pytest.raises(tfc.SignatureError):
        tfc.cuda.load_inline(SAXPY, "saxpy(", ["sm_90"], headers=HEADERS)


