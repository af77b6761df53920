"""Prints the host time for a launch of a small kernel: with a library, and with the other installed packages."""

import statistics
import sys
import time

import torch
import tvm_ffi

ROUNDS, CALLS = 41, 1000


def measure(call):
    """The median time of the rounds, in microseconds per call. Each round begins with an empty queue of the device."""
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


def ours(library):
    module = tvm_ffi.load_module(library)
    x, y, z = (torch.ones(128, device="cuda") for _ in range(3))
    add = module.add
    yield "this library, PyTorch's tensors", lambda: add(x, y, z)
    a, b, c = map(tvm_ffi.from_dlpack, (x, y, z))
    yield "this library, tvm_ffi's tensors", lambda: add(a, b, c)


def others():
    x, y, z = (torch.ones(128, device="cuda") for _ in range(3))
    yield "torch.add(x, y, out=z)", lambda: torch.add(x, y, out=z)
    try:
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(x, y, z, n, BLOCK: tl.constexpr):
            at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            tl.store(z + at, tl.load(x + at, mask=at < n) + tl.load(y + at, mask=at < n), mask=at < n)

        yield "triton.jit", lambda: kernel[(1,)](x, y, z, 128, BLOCK=128)
    except (ImportError, OSError) as error:
        print("left out: triton:", error)
    try:
        import cupy

        source = """extern "C" __global__ void add(const float* x, const float* y, float* z, long long n) {
          long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; if (i < n) z[i] = x[i] + y[i]; }"""
        raw = cupy.RawKernel(source, "add")
        a, b, c = map(cupy.asarray, (x, y, z))
        n = cupy.int64(128)
        yield "cupy.RawKernel", lambda: raw((1,), (128,), (a, b, c, n))
    except ImportError as error:
        print("left out: cupy:", error)


def main(library):
    for name, call in [*ours(library), *others()]:
        print(f"{name:<34} {measure(call):6.2f} us a launch")


main(*sys.argv[1:])
