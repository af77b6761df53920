"""Triton's kernels, launched by us on a GPU."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
import tvm_ffi_codegen as tfc

pytest.importorskip("triton")

import triton
import triton.language as tl
import triton_kernels as kernels
from triton_kernels import POINTERS, VECTORS

ARCH = 10 * torch.cuda.get_device_capability()[0] if torch.cuda.is_available() else 90


@triton.jit
def cooperative_sum(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out, tl.sum(tl.load(x + at, mask=at < n, other=0.0)))


def vectors(n):
    x = torch.rand(n, device="cuda")
    return x, torch.rand(n, device="cuda"), torch.zeros(n, device="cuda")


@pytest.mark.parametrize("options", [{}, {"num_warps": 8}, {"num_ctas": 2}, {"launch_pdl": True}])
def test_add(options):
    if options.get("num_ctas", 1) > 1 and ARCH < 90:
        pytest.skip("clusters need compute capability 9.0")
    compiled = kernels.compiled(kernels.add, POINTERS, {"BLOCK": 1024}, ["x", "y", "out"], arch=ARCH, **options)
    signature = f"add({VECTORS})"
    function = tfc.compile(signature, tfc.triton.from_compiled(compiled, signature, grid="ceil_div(n, 1024)"))
    for n in (1, 1000, 5000, 0):
        x, y, out = vectors(n)
        function(x, y, out)
        assert torch.equal(out, x + y)


def test_cooperative():
    types = {"x": "*fp32", "out": "*fp32", "n": "i32"}
    compiled = kernels.compiled(cooperative_sum, types, {"BLOCK": 256}, arch=ARCH, launch_cooperative_grid=True)
    signature = 'total(x: Tensor([n], float32, device="cuda"), out: Tensor([1], float32, device="cuda"))'
    function = tfc.compile(signature, tfc.triton.from_compiled(compiled, signature, grid="ceil_div(n, 256)"))
    x, out = torch.ones(1000, device="cuda"), torch.zeros(1, device="cuda")
    function(x, out)
    assert out.item() == 1000


def matmul():
    types = {"a": "*fp16", "b": "*fp16", "c": "*fp32"}
    numbers = {name: "i32" for name in ("m", "n", "k", "stride_a", "stride_b", "stride_c")}
    constants = {"M": 64, "N": 64, "K": 32}
    compiled = kernels.compiled(kernels.matmul, {**types, **numbers}, constants, num_warps=8, arch=ARCH)
    signature = (
        'matmul(a: Tensor([m, k], float16, device="cuda"), b: Tensor([k, n], float16, device="cuda"), '
        'c: Tensor([m, n], float32, device="cuda"))'
    )
    bind = {"stride_a": "k", "stride_b": "n", "stride_c": "n"}
    grid = ["ceil_div(m, 64)", "ceil_div(n, 64)"]
    return signature, tfc.triton.from_compiled(compiled, signature, grid=grid, bind=bind)


def test_matmul():
    function = tfc.compile(*matmul())
    for m, n, k in [(100, 300, 50), (64, 64, 64), (257, 129, 511)]:
        a = torch.rand(m, k, device="cuda", dtype=torch.float16)
        b = torch.rand(k, n, device="cuda", dtype=torch.float16)
        c = torch.zeros(m, n, device="cuda")
        function(a, b, c)
        torch.testing.assert_close(c, a.float() @ b.float(), rtol=1e-2, atol=1e-2)


def test_a_library_runs_in_another_process(tmp_path):
    """That process imports neither Triton nor this package."""
    path = tmp_path / "matmul.so"
    signature, kernel = matmul()
    prepare = tfc.Kernel.prepare([kernel])
    tfc.Library().add(signature, kernel).add("prepare(device: device)", prepare).link(str(path))
    code = f"""
import sys, torch, tvm_ffi
module = tvm_ffi.load_module({str(path)!r})
module.prepare(tvm_ffi.device("cuda", 0))
a = torch.eye(64, device="cuda", dtype=torch.float16)
c = torch.zeros(64, 64, device="cuda")
module.matmul(a, a + a, c)
assert torch.equal(c, (a + a).float())
assert "triton" not in sys.modules and "tvm_ffi_codegen" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_descriptors_on_the_host():
    if ARCH < 90:
        pytest.skip("tensor maps need compute capability 9.0")
    types = {"source": "tensordesc<fp16[64,64]>", "target": "tensordesc<fp16[64,64]>"}
    compiled = kernels.compiled(kernels.copy, types, {"M": 64}, arch=ARCH)
    tensors = ", ".join(f'{name}: Tensor([m, n], float16, device="cuda", align=16)' for name in types)
    signature = f"copy({tensors}) where n % 8 == 0"
    function = tfc.compile(signature, tfc.triton.from_compiled(compiled, signature, grid="ceil_div(m, 64)"))
    for m, n in [(200, 64), (64, 56), (1, 8)]:
        source = torch.rand(m, n, device="cuda", dtype=torch.float16)
        target = torch.zeros_like(source)
        function(source, target)
        assert torch.equal(source, target), (m, n)


def test_jit_compiles_variants():
    tensors = ", ".join(f'{name}: Tensor([n], any, device="cuda")' for name in ("x", "y", "out"))
    add = tfc.triton.jit(kernels.add, f"add({tensors}, BLOCK: int32 = 1024)", grid="ceil_div(n, BLOCK)")
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.int32):
        for n in (1, 17, 4096):
            for block in (64, 1024):
                x = torch.arange(n, device="cuda").to(dtype)
                out = torch.zeros_like(x)
                add(x, x, out, block)
                assert torch.equal(out, x + x)
    # an address that isn't a multiple of 16
    x = torch.rand(101, device="cuda")[1:]
    out = torch.zeros(101, device="cuda")[1:]
    add(x, x, out)
    assert torch.equal(out, x + x)
    assert add.stats()["misses"] == add.stats()["entries"] == 25
