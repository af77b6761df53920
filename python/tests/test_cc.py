"""Kernels in C and C++, compiled with the machine's compiler."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
import tvm_ffi
import tvm_ffi_codegen as tfc

SAXPY = "saxpy(a: float32, x: Tensor([n], float32), y: Tensor([n], float32))"
DOT = "dot(x: Tensor([n], float64), y: Tensor([n], float64)) -> float64"
SOURCE = """
#include "step.h"
void saxpy(float a, const float* restrict x, float* restrict y, int64_t n) {
  for (int64_t i = 0; i < n; i += STEP) y[i] += a * x[i];
}
double dot(const double* x, const double* y, long long n) {
  double sum = 0;
  for (long long i = 0; i < n; i++) sum += x[i] * y[i];
  return sum;
}
"""
HEADERS = {"step.h": "#define STEP 1"}


def test_source_becomes_functions():
    module = tfc.cc.load_inline(SOURCE, [SAXPY, DOT], headers=HEADERS)
    x, y = np.arange(4, dtype="float32"), np.ones(4, "float32")
    module.saxpy(2.0, x, y)
    assert (y == 2 * x + 1).all()
    assert module.dot(np.arange(3.0), np.ones(3)) == 3.0
    assert module.dot.__name__ == "dot"
    with pytest.raises(ValueError, match=r"y\.shape\[0\]"):
        module.saxpy(2.0, x, y[:2])


def test_an_object_is_for_libraries(tmp_path):
    built = tfc.cc.compile(SOURCE, [SAXPY, DOT], ["-O3"], headers=HEADERS)
    path = tmp_path / "kernels.so"
    library = tfc.Library().add(SAXPY, tfc.Kernel.symbol("saxpy")).add(DOT, tfc.Kernel.symbol("dot"))
    library.link(str(path), objects=built)
    assert tvm_ffi.load_module(str(path)).dot(np.arange(3.0), np.ones(3)) == 3.0


def test_kernels_state_their_call():
    source = """int add(float* A, float* B, float* C, int n) {
      for (int i = 0; i < n; i++) C[i] = A[i] + B[i];
      return n == 3;
    }"""
    signature = "add(A: Tensor([n], float32), B: Tensor([n], float32), C: Tensor([n], float32))"
    kernel = tfc.Kernel.symbol("add", args=["A", "B", "C", "int32(n)"], returns="status")
    module = tfc.cc.load_inline(source, (signature, kernel))
    a, c = np.arange(4, dtype="float32"), np.zeros(4, "float32")
    module.add(a, a, c)
    assert (c == a + a).all()
    with pytest.raises(RuntimeError):
        module.add(a[:3], a[:3], c[:3])


def test_types_that_differ_are_errors_of_the_compiler():
    for wrong in [
        "void saxpy(float a, double* x, float* y, int64_t n) {}",
        "void saxpy(float a, float* x, float* y, int n) {}",
        "void saxpy(float a, float* x, float* y) {}",
        "void saxpy(float* x, float* y, int64_t n, float a) {}",
    ]:
        with pytest.raises(tfc.CodegenError, match="the signature of saxpy:1:"):
            tfc.cc.compile(wrong, [SAXPY])
    with pytest.raises(tfc.CodegenError, match="the signature of dot:1:"):
        tfc.cc.compile("float* dot(double* x, double* y, int64_t n) { return 0; }", [DOT])
    with pytest.raises(tfc.CodegenError, match="saxpy_of_the_source"):
        tfc.cc.compile("int unrelated;", [SAXPY])
    # a wider number is converted
    tfc.cc.compile("void saxpy(double a, const void* x, float* y, __int128 n) {}", [SAXPY])


def test_mistakes_have_the_sources_lines():
    with pytest.raises(tfc.CodegenError, match=r"(?s)can't compile k\.c: `.*k\.c:2:.*error"):
        tfc.cc.compile("\nvoid f(void) { g(; }", file="k.c")
    with pytest.raises(tfc.SignatureError):
        tfc.cc.compile("", ["saxpy("])
    with pytest.raises(TypeError, match="functions"):
        tfc.cc.compile("", SAXPY)
    with pytest.raises(ValueError, match="inside the source's directory"):
        tfc.cc.compile("", headers={"../there.h": ""})
    with pytest.raises(ValueError, match=r"expected one with \{object\}"):
        tfc.cc.compile("", command="cc -c {source}")
    with pytest.raises(tfc.CodegenError, match="`no-such-compiler` doesn't start"):
        tfc.cc.compile("", command="no-such-compiler {source} {object}")
    with pytest.raises(tfc.CodegenError, match="wrote no object"):
        tfc.cc.compile("", command="true {source} {object}")


@pytest.mark.skipif(shutil.which("c++") is None, reason="this machine has no C++ compiler")
def test_source_may_be_cpp():
    source = """
    #include <algorithm>
    template <class T> static void fill(T* x, T value, long n) { std::fill(x, x + n, value); }
    void fill_with(float* x, double value, int64_t n) { fill(x, (float)value, n); }
    """
    signature = "fill_with(x: Tensor([n], float32), value: float64)"
    x = np.zeros(3, "float32")
    tfc.cc.load_inline(source, signature, file="fill.cpp").fill_with(x, 2.5)
    assert (x == 2.5).all()
    with pytest.raises(tfc.CodegenError, match="the signature of fill_with"):
        tfc.cc.compile("void fill_with(double* x, double value, long n) {}", [signature], file="fill.cpp")
