"""Kernels in CUDA C++, compiled by NVRTC, with PyTorch's tensors on a GPU."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch
import tvm_ffi
import tvm_ffi_codegen as tfc

SOURCE = """
template <class T> __global__ void scale(T* x, long long n, T by) {
  long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i < n) x[i] *= by;
}
extern "C" __global__ void saxpy(float a, const float* x, float* y, long long n) {
  long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i < n) y[i] += a * x[i];
}
"""
SCALE = (
    'scale{0}(x: Tensor([n], {0}, device="cuda"), by: {0}) '
    '@ launch "scale<{1}>" grid=ceil_div(n, 256) block=256 args=[x, int64(n), by]'
)
SAXPY = (
    'saxpy(a: float32, x: Tensor([n], float32, device="cuda"), y: Tensor([n], float32, device="cuda")) '
    "@ launch saxpy grid=ceil_div(n, 256) block=256"
)
LAUNCHED = (
    "launch saxpy grid=(2, 1, 1) block=(256, 1, 1) shared_memory=0 stream=0x0 device=cuda:0 params=[0x"
)
CAPABILITY = "".join(map(str, torch.cuda.get_device_capability())) if torch.cuda.is_available() else "90"


def saxpy_kernel():
    images = tfc.cuda.compile(SOURCE, [f"sm_{CAPABILITY}"]).images
    return tfc.Kernel.cuda(images, "saxpy", grid="ceil_div(n, 256)", block=256)


@pytest.mark.parametrize("archs", [None, [f"sm_{CAPABILITY}"], ["compute_80"], ["sm_80", f"sm_{CAPABILITY}"]])
def test_inline_source_runs(archs):
    functions = [SCALE.format("float32", "float"), SCALE.format("float64", "double"), SAXPY]
    module = tfc.cuda.load_inline(SOURCE, functions, archs)
    x, y = torch.arange(1000.0, device="cuda"), torch.ones(1000, device="cuda")
    module.saxpy(2.0, x, y)
    assert torch.equal(y, 2 * x + 1)
    module.scalefloat32(x, 3.0)
    assert torch.equal(x, 3 * torch.arange(1000.0, device="cuda"))
    z = torch.ones(77, dtype=torch.float64, device="cuda")
    module.scalefloat64(z, 0.1)
    assert torch.equal(z, torch.full_like(z, 0.1))
    module.saxpy(1.0, x[:0], y[:0])
    with pytest.raises(ValueError, match="expected cuda"):
        module.saxpy(1.0, x.cpu(), y)


def test_machine_code_for_another_device_is_an_error():
    other = "sm_80" if CAPABILITY >= "90" else "sm_90"
    module = tfc.cuda.load_inline(SOURCE, SAXPY, [other])
    x = torch.ones(3, device="cuda")
    with pytest.raises(RuntimeError, match="no image is for cuda:0, which has compute capability"):
        module.saxpy(1.0, x, x)


def test_streams_and_graphs():
    module = tfc.cuda.load_inline(SOURCE, SAXPY)
    x, y = torch.arange(100_000.0, device="cuda"), torch.zeros(100_000, device="cuda")
    module.saxpy(0.0, x, y)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream), tvm_ffi.use_torch_stream():
        module.saxpy(1.0, x, y)
    stream.synchronize()
    assert torch.equal(y, x)
    graph = torch.cuda.CUDAGraph()
    with tvm_ffi.use_torch_stream(torch.cuda.graph(graph)):
        module.saxpy(1.0, x, y)
        module.saxpy(2.0, x, y)
    torch.cuda.synchronize()
    assert torch.equal(y, x)
    graph.replay()
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(y, 7 * x)


def test_a_body_launches_graphs():
    text = """twice(x: Tensor([n], float32, device="cuda"), y: Tensor([n], float32, device="cuda"), more: bool) {
      graph {
        launch saxpy grid=ceil_div(n, 256) block=256 args=[float32(2.0), x, y, int64(n)];
        if more { launch saxpy grid=ceil_div(n, 256) block=256 args=[float32(1.0), y, y, int64(n)]; }
      }
    }"""
    image = tfc.cuda.compile(SOURCE, [f"sm_{CAPABILITY}"]).images[0]
    twice = tfc.program(text, images={"kernels": image}).compile()["twice"]
    x, y = torch.arange(1000.0, device="cuda"), torch.zeros(1000, device="cuda")
    expected = torch.zeros_like(y)
    for more in (True, False, False, True, True):
        twice(x, y, more)
        expected += 2 * x
        expected *= 1 + more
        assert torch.equal(y, expected), more


def test_launches_are_logged():
    code = f"""
import torch, tvm_ffi_codegen as tfc
module = tfc.cuda.load_inline({SOURCE!r}, {SAXPY!r})
x = torch.ones(300, device="cuda")
module.saxpy(1.0, x, x)
torch.cuda.synchronize()
seen = []
tfc.set_launch_hook(lambda launch: seen.append(launch))
module.saxpy(1.0, x, x)
tfc.set_launch_hook()
print(seen[0].name, seen[0].grid, seen[0].block, seen[0].device)
"""
    env = {**os.environ, "TVM_FFI_CODEGEN_LOG_LAUNCHES": "1"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "saxpy (2, 1, 1) (256, 1, 1) cuda:0\n"
    assert LAUNCHED in done.stderr


def test_an_operator_of_pytorch_runs(tmp_path):
    import tvm_ffi_codegen.torch as tfc_torch

    path = str(tmp_path / "saxpy.so")
    kernel = saxpy_kernel()
    signature = tfc.Signature(SAXPY.partition(" @ ")[0])
    tfc.Library().add(signature, kernel).link(path)
    saxpy = tfc_torch.register(tvm_ffi.load_module(path), "tfc_devices::saxpy", inouts=["y"])
    x, y = torch.arange(64.0, device="cuda"), torch.ones(64, device="cuda")
    compiled = torch.compile(lambda x, y: saxpy.functional(2.0, x, y) * 2, fullgraph=True)
    assert torch.equal(compiled(x, y), 2 * (2 * x + 1))
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        out = saxpy.functional(2.0, x, y)
    stream.synchronize()
    assert torch.equal(out, 2 * x + 1)


def test_jax_calls_a_launch():
    pytest.importorskip("jax_tvm_ffi")
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    import jax
    import jax.numpy as jnp
    import tvm_ffi_codegen.jax as tfc_jax

    kernel = saxpy_kernel()
    signature = SAXPY.partition(" @ ")[0]
    function = tfc.compile(signature, kernel)
    for name, graphs in [("tfc_devices_saxpy", False), ("tfc_devices_saxpy_graphs", True)]:
        saxpy = tfc_jax.register(function, name, signature, inouts=["y"], platform="gpu", allow_cuda_graph=graphs)
        x, y = jnp.arange(64.0), jnp.ones(64)
        out = jax.jit(lambda x, y: saxpy(2.0, x, y) + 1)(x, y)
        assert jnp.array_equal(out, 2 * x + 2)
