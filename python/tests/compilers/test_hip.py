"""Kernels in HIP C++, compiled with hiprtc. No driver of HIP runs them: a launch is compared with the code objects."""

from __future__ import annotations

import pytest
import tvm_ffi
import tvm_ffi_codegen as tfc

SOURCE = """
#include "index.h"
template <class T> __global__ void scale(T* x, index_t n, T by) {
  index_t i = blockIdx.x * (index_t)blockDim.x + threadIdx.x;
  if (i < n) x[i] *= by;
}
"""
HEADERS = {"index.h": "typedef long long index_t;"}
SIGNATURE = 'scale(x: Tensor([n], float32, device="rocm"), by: float32)'
SCALE = f'{SIGNATURE} @ launch "scale<float>" grid=ceil_div(n, 256) block=256 args=[x, int64(n), by]'


def compiled(archs, **options):
    return tfc.hip.compile(SOURCE, archs, kernels=["scale<float>"], headers=HEADERS, **options)


def test_source_becomes_code_objects(tmp_path):
    made = compiled(["gfx90a", "gfx1030"])
    assert len(made.images) == 2 and all(image.startswith(b"\x7fELF") for image in made.images)
    entry = made.entries["scale<float>"]
    assert entry.startswith("_Z") and "scale" in entry
    kernel = tfc.Kernel.cuda(made.images[0], entry, grid="ceil_div(n, 256)", block=256, args=["x", "int64(n)", "by"])
    path = tmp_path / "scale.so"
    tfc.Library().add(SIGNATURE, kernel).link(str(path))
    (launch,) = tfc.inspect(path.read_bytes())["functions"][0]["metadata"]["launches"]
    assert launch["images"][0]["targets"][0].startswith("gfx90a")
    assert hasattr(tvm_ffi.load_module(str(path)), "scale")


def test_inline_source_becomes_functions(tmp_path):
    cache = tfc.Cache(tmp_path / "cache")
    for _ in range(2):
        module = tfc.hip.load_inline(SOURCE, SCALE, ["gfx90a"], headers=HEADERS, cache=cache)
        assert module.scale.__name__ == "scale"
    wrong = SCALE.replace("int64(n), by", "int64(n)")
    with pytest.raises(tfc.CodegenError, match="takes 3 parameters"):
        tfc.hip.load_inline(SOURCE, wrong, ["gfx90a"], headers=HEADERS)


def test_mistakes_are_errors():
    with pytest.raises(tfc.CodegenError, match=r"can't compile k\.hip for gfx90a:\nk\.hip:\d+:\d+: error: "):
        tfc.hip.compile("__global__ void f() { g(); }", ["gfx90a"], file="k.hip")
    with pytest.raises(tfc.CodegenError, match="unknown architecture `sm_90`, expected one such as `gfx942`"):
        compiled(["sm_90"])
    with pytest.raises(tfc.CodegenError, match="no architectures are stated"):
        compiled([])
    with pytest.raises(tfc.CodegenError, match="hiprtc can't be loaded"):
        compiled(["gfx90a"], hiprtc="/there/is/none.so")
    with pytest.raises(TypeError, match="archs"):
        compiled("gfx90a")
