"""Kernels of other compilers, from libraries, with PyTorch's tensors on a GPU."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import tvm_ffi


@pytest.fixture(scope="module")
def load(tmp_path_factory):
    """Loads an adapter's library: one that was built before, or one that a process with the compiler builds."""

    def loaded(name):
        if folder := os.environ.get("TVM_FFI_CODEGEN_ADAPTERS"):
            return tvm_ffi.load_module(str(Path(folder, f"{name}.so")))
        folder = tmp_path_factory.mktemp(name)
        major, minor = torch.cuda.get_device_capability()
        env = {**os.environ, "TVM_FFI_CODEGEN_ARCH": f"{major}{minor}"}
        script = Path(__file__).with_name("adapters.py")
        done = subprocess.run([sys.executable, script, folder, name], capture_output=True, text=True, env=env)
        if done.returncode != 0:
            pytest.skip(f"{name} doesn't compile here: {done.stderr.strip().splitlines()[-1]}")
        return tvm_ffi.load_module(str(folder / f"{name}.so"))

    return loaded


def random(*shape, **options):
    return torch.randn(*shape, device="cuda", **options)


def test_numba(load):
    module = load("numba")
    for n in (1, 100, 5000):
        x, y = random(2 * n), random(n)
        expected = y + 2 * x[::2]
        module.saxpy(2.0, x[::2], y)
        torch.testing.assert_close(y, expected)
    x, out = random(30, 20, dtype=torch.float64), torch.zeros(1, dtype=torch.float64, device="cuda")
    for view in (x, x.T, x[::2, ::3]):
        module.total(view, out.zero_())
        torch.testing.assert_close(out[0], view.sum())


def test_warp(load):
    module = load("warp")
    x, y = random(1000), random(1000)
    expected = y + 2 * x
    module.saxpy(2.0, x, y)
    torch.testing.assert_close(y, expected)
    a, b = random(7, 10), random(5, 7)
    expected = b + a[:, ::2].T
    module.add(a[:, ::2].T, b)
    torch.testing.assert_close(b, expected)
    # a quarter of a turn around the last axis
    v, half = random(100, 3), 2**-0.5
    expected = torch.stack([-v[:, 1], v[:, 0], v[:, 2]], 1)
    module.rotate(v, (0.0, 0.0, half, half))
    torch.testing.assert_close(v, expected, rtol=1e-4, atol=1e-5)


def test_cutile(load):
    module = load("cutile")
    for n in (1, 1000, 5000):
        x, y = random(n), random(n)
        out = torch.zeros_like(x)
        module.add(x, y, out)
        assert torch.equal(out, x + y)
    x = random(100, 70)
    expected = 3 * x
    module.scale(x, 3.0)
    torch.testing.assert_close(x, expected)


def test_helion(load):
    module = load("helion")
    for n in (2, 1000, 70_000, 100_001):
        x, y = random(n), random(n)
        out = torch.zeros_like(x)
        module.add(x, y, out)
        assert torch.equal(out, x + y)


def test_tilelang(load):
    module = load("tilelang")
    a, b, c = (random(1000) for _ in range(3))
    module.add(a, b, c)
    assert torch.equal(c, a + b)
    left, right, out = (random(*of, dtype=torch.half) for of in [(300, 64), (64, 256), (300, 256)])
    module.matmul(left, right, out)
    torch.testing.assert_close(out, left @ right, rtol=1e-2, atol=1e-1)
    x, y = random(5, 12), torch.zeros(5, 16, device="cuda")
    module.rows(x[:, 4:], y, 3, 0.5)
    expected = torch.zeros_like(y)
    expected[:, :8] = x[:, 4:] * 0.5
    expected[0, :3] += 1
    assert torch.equal(y, expected)
    module.workspace(a, b, 2000)
    torch.testing.assert_close(b, 2 * a + 1)
    p, q = random(1024), random(1024)
    module.cooperative(p, q)
    assert (q == 1).all()
    module.clusters(p, q)
    torch.testing.assert_close(q, p)


def test_cute(load):
    module = load("cute")
    u, v = random(300, 5), torch.zeros(300, 8, device="cuda")
    module.scale(u, v, 0.5, 7)
    torch.testing.assert_close(v[:, 0], 0.5 * u[:, 1] + 7)
