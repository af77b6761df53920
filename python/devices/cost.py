"""Prints host times on this machine's GPU: of a launch, and from CUDA C++ source to a function, beside other packages.

    python cost.py

Medians of rounds in one run, in microseconds for a call. Each round begins with an empty queue of the device.
"""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path

import torch
import tvm_ffi
import tvm_ffi_codegen as tfc

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

ROUNDS, CALLS = 31, 500
ADD = """extern "C" __global__ void add(const float* x, const float* y, float* z, long long n) {
  long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; if (i < n) z[i] = x[i] + y[i]; }"""
VECTORS = ", ".join(f'{name}: Tensor([n], float32, device="cuda")' for name in "xyz")
FUNCTION = f"add({VECTORS}) @ launch add grid=ceil_div(n, 128) block=128"
#: The same in C++, as a user of `tvm_ffi.cpp` writes it.
CPP = """
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/function.h>
__global__ void add_kernel(const float* x, const float* y, float* z, int64_t n) {
  int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
  if (i < n) z[i] = x[i] + y[i];
}
void add(tvm::ffi::TensorView x, tvm::ffi::TensorView y, tvm::ffi::TensorView z) {
  int64_t n = x.size(0);
  TVM_FFI_CHECK(x.ndim() == 1 && y.ndim() == 1 && z.ndim() == 1, ValueError) << "expected vectors";
  TVM_FFI_CHECK(y.size(0) == n && z.size(0) == n, ValueError) << "expected one size";
  DLDevice device = x.device();
  cudaStream_t stream = static_cast<cudaStream_t>(TVMFFIEnvGetStream(device.device_type, device.device_id));
  add_kernel<<<(n + 127) / 128, 128, 0, stream>>>(static_cast<float*>(x.data_ptr()), static_cast<float*>(y.data_ptr()),
                                                  static_cast<float*>(z.data_ptr()), n);
}
"""


def measure(call) -> float:
    for _ in range(CALLS):
        call()
    rounds = []
    for _ in range(ROUNDS):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(CALLS):
            call()
        rounds.append((time.perf_counter() - start) / CALLS * 1e6)
    return statistics.median(rounds)


def source_to_function() -> tuple:
    """Prints the seconds from CUDA C++ to a function; returns the functions."""
    seconds = []
    for number in range(4):
        # another text, so nothing is found in a cache
        source = ADD + f"\n// {number}\n"
        start = time.perf_counter()
        ours = tfc.cuda.load_inline(source, FUNCTION, ["sm_90"]).add
        seconds.append(time.perf_counter() - start)
    print(f"{'tfc.cuda.load_inline, first':44} {seconds[0]:8.3f} s")
    print(f"{'tfc.cuda.load_inline, later':44} {statistics.median(seconds[1:]):8.3f} s")
    theirs = None
    try:
        start = time.perf_counter()
        theirs = tvm_ffi.cpp.load_inline("add_cpp", cuda_sources=CPP, functions="add").add
        print(f"{'tvm_ffi.cpp.load_inline':44} {time.perf_counter() - start:8.3f} s")
    except Exception as error:
        print("left out: tvm_ffi.cpp.load_inline:", str(error)[-600:])
    return ours, theirs


def main() -> None:
    print(torch.cuda.get_device_name(), "PyTorch", torch.__version__)
    ours, theirs = source_to_function()
    x, y, z = (torch.ones(128, device="cuda") for _ in range(3))
    a, b, c = map(tvm_ffi.from_dlpack, (x, y, z))
    rows = [
        ("ours, PyTorch's tensors", lambda: ours(x, y, z)),
        ("ours, tvm_ffi's tensors", lambda: ours(a, b, c)),
        ("torch.add(x, y, out=z)", lambda: torch.add(x, y, out=z)),
    ]
    if theirs is not None:
        rows[2:2] = [("tvm_ffi.cpp, PyTorch's tensors", lambda: theirs(x, y, z)),
                     ("tvm_ffi.cpp, tvm_ffi's tensors", lambda: theirs(a, b, c))]  # fmt: skip
    try:
        import triton_kernels as kernels

        vectors = ", ".join(f'{name}: Tensor([n], any, device="cuda")' for name in ("x", "y", "out"))
        jit = tfc.triton.jit(kernels.add, f"add({vectors}, BLOCK: int32)", grid="ceil_div(n, BLOCK)")
        jit(x, y, z, 128)
        (variant,) = jit.entries().values()
        rows += [
            ("Triton's own launcher", lambda: kernels.add[(1,)](x, y, z, 128, BLOCK=128)),
            (f"tfc.triton.jit, {len(jit.keys)} keys", lambda: jit(x, y, z, 128)),
            ("the variant that it finds", lambda: variant(x, y, z, 128)),
        ]
    except ImportError as error:
        print("left out: triton:", error)
    try:
        import cupy

        raw = cupy.RawKernel(ADD, "add")
        u, v, w = map(cupy.asarray, (x, y, z))
        n = cupy.int64(128)
        rows.append(("cupy.RawKernel", lambda: raw((1,), (128,), (u, v, w, n))))
    except ImportError as error:
        print("left out: cupy:", error)
    body = "launch add grid=ceil_div(n, 128) block=128 args=[x, y, z, int64(n)];"
    for count in (4, 16):
        for what, text in [("launches", body * count), ("launches in a graph", f"graph {{ {body * count} }}")]:
            image = tfc.cuda.compile(ADD, ["sm_90"]).images[0]
            function = tfc.program(f"add({VECTORS}) {{ {text} }}", images={"kernels": image}).compile()["add"]
            rows.append((f"a body of {count} {what}", lambda function=function: function(x, y, z)))
    for name, call in rows:
        print(f"{name:44} {measure(call):8.2f} us a call")
    assert torch.equal(z, x + y)


if __name__ == "__main__":
    main()
