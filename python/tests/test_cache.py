"""The cache of libraries."""

from __future__ import annotations

import gc
import os

import numpy as np
import pytest
import tvm_ffi_codegen as tfc

from conftest import SAXPY

KERNEL = tfc.Kernel.symbol("saxpy_kernel")


def artifacts(folder):
    return sorted(os.path.join(root, name) for root, _, names in os.walk(folder) for name in names)


def check(saxpy) -> None:
    x, y = np.arange(4, dtype="float32"), np.ones(4, dtype="float32")
    saxpy(2.0, x, y)
    assert y.tolist() == [1, 3, 5, 7]


def test_a_function_is_compiled_once(saxpy, tmp_path):
    cache = tfc.Cache(tmp_path / "cache")
    check(tfc.compile(SAXPY, KERNEL, objects=[saxpy], cache=cache))
    (artifact,) = artifacts(tmp_path / "cache")
    made = os.stat(artifact).st_ino
    function = tfc.compile(SAXPY, KERNEL, objects=saxpy, cache=tfc.Cache(tmp_path / "cache"))
    check(function)
    assert artifacts(tmp_path / "cache") == [artifact] and os.stat(artifact).st_ino == made
    with open("/proc/self/maps") as maps:
        assert artifact in maps.read()
    del function
    gc.collect()
    with open("/proc/self/maps") as maps:
        assert artifact not in maps.read()


def test_other_inputs_are_other_libraries(cc, saxpy, tmp_path):
    cache = tfc.Cache(tmp_path / "cache")
    for number in range(3):
        object = cc.object(f"long f(void) {{ return {number}; }}")
        assert tfc.compile("f() -> int64", tfc.Kernel.symbol("f"), objects=object, cache=cache)() == number
    # the contents of files count, and not their names
    path = tmp_path / "k.o"
    for number in range(10, 12):
        path.write_bytes(cc.object(f"long f(void) {{ return {number}; }}"))
        library = tfc.Library().add("f() -> int64", tfc.Kernel.symbol("f"))
        assert library.load(files=[path], cache=cache).f() == number
    assert len(artifacts(tmp_path / "cache")) == 5


def test_broken_libraries_are_made_again(saxpy, tmp_path):
    cache = tfc.Cache(tmp_path / "cache")
    tfc.compile(SAXPY, KERNEL, objects=saxpy, cache=cache)
    gc.collect()
    (artifact,) = artifacts(tmp_path / "cache")
    with open(artifact, "r+b") as file:
        file.truncate(1000)
    check(tfc.compile(SAXPY, KERNEL, objects=saxpy, cache=cache))
    assert artifacts(tmp_path / "cache") == [artifact] and os.path.getsize(artifact) > 1000


def test_failures_leave_nothing(tmp_path):
    cache = tfc.Cache(tmp_path)
    with pytest.raises(tfc.UndefinedSymbol):
        tfc.compile(SAXPY, KERNEL, cache=cache)
    with pytest.raises(tfc.CodegenError, match="an address"):
        tfc.compile(SAXPY, tfc.Kernel.address(4096), cache=cache)
    assert artifacts(tmp_path) == []
    (tmp_path / "file").write_text("")
    with pytest.raises(tfc.CodegenError, match="file"):
        tfc.Cache(tmp_path / "file")


def test_the_oldest_go(cc, tmp_path):
    cache = tfc.Cache(tmp_path / "cache", max_bytes=100_000)
    for number in range(30):
        object = cc.object(f"const char pad[20000] = {{1}}; long f(void) {{ return pad[0] + {number}; }}")
        assert tfc.compile("f() -> int64", tfc.Kernel.symbol("f"), objects=object, cache=cache)() == number + 1
    assert sum(os.path.getsize(path) for path in artifacts(tmp_path / "cache")) < 150_000
