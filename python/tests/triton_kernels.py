"""Triton kernels, compiled for a device that this machine needn't have."""

from __future__ import annotations

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget

#: The parameters of `add`, in a signature and in Triton.
VECTORS = ", ".join(f'{name}: Tensor([n], float32, device="cuda", align=16)' for name in ("x", "y", "out"))
POINTERS = {"x": "*fp32", "y": "*fp32", "out": "*fp32", "n": "i32"}


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out + at, tl.load(x + at, mask=mask) + tl.load(y + at, mask=mask), mask=mask)


@triton.jit
def scale(x, by, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + at, tl.load(x + at, mask=at < n) * by, mask=at < n)


@triton.jit
def biased(x, b, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n)
    if b is not None:
        value += tl.load(b + at, mask=at < n)
    tl.store(x + at, value, mask=at < n)


@triton.jit
def matmul(a, b, c, m, n, k, stride_a, stride_b, stride_c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    columns = tl.program_id(1) * N + tl.arange(0, N)
    total = tl.zeros((M, N), dtype=tl.float32)
    for start in range(0, k, K):
        inner = start + tl.arange(0, K)
        left = tl.load(
            a + rows[:, None] * stride_a + inner[None, :], mask=(rows[:, None] < m) & (inner[None, :] < k), other=0.0
        )
        right = tl.load(
            b + inner[:, None] * stride_b + columns[None, :],
            mask=(inner[:, None] < k) & (columns[None, :] < n),
            other=0.0,
        )
        total = tl.dot(left, right, total)
    tl.store(c + rows[:, None] * stride_c + columns[None, :], total, mask=(rows[:, None] < m) & (columns[None, :] < n))


@triton.jit
def copy(source, target, M: tl.constexpr):
    at = tl.program_id(0) * M
    target.store([at, 0], source.load([at, 0]))


def compiled(kernel, signature, constants, multiples=(), arch=90, **options):
    """Compiles a kernel for an architecture. ``multiples`` are the parameters that are multiples of 16."""
    names = kernel.arg_names
    source = triton.compiler.ASTSource(
        kernel,
        signature={name: signature.get(name, "constexpr") for name in names},
        constexprs={(names.index(name),): value for name, value in constants.items()},
        attrs={(names.index(name),): [["tt.divisibility", 16]] for name in multiples},
    )
    return triton.compile(source, target=GPUTarget("cuda", arch, 32), options=options)
