"""The cache of libraries."""

from __future__ import annotations

import gc
import os
import shutil
import tempfile
import traceback
import warnings

import numpy as np
import pytest
import tvm_ffi_codegen as tfc

from conftest import SAXPY

KERNEL = tfc.Kernel.symbol("saxpy_kernel")


def artifacts(folder):
    return sorted(
        os.path.join(root, name) for root, _, names in os.walk(folder) for name in names if name.endswith(".so")
    )


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
    # the contents of files count, not their names
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
    with pytest.raises(tfc.UndefinedSymbolError):
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


def check_uncached(saxpy, cache, **options) -> None:
    """Checks that a library is made each time, that one warning says so, and that no file stays."""
    before = set(os.listdir(tempfile.gettempdir()))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            check(tfc.compile(SAXPY, KERNEL, objects=saxpy, cache=cache, **options))
    (warning,) = caught
    assert warning.category is RuntimeWarning
    assert str(warning.message).startswith(f"the cache {cache._folder} can't take a library")
    left = set(os.listdir(tempfile.gettempdir())) - before
    assert not [name for name in left if name.startswith("tvm-ffi-codegen-")]


def test_a_folder_that_is_of_no_use_is_done_without(saxpy, tmp_path):
    folder = tmp_path / "cache"
    cache = tfc.Cache(folder)
    shutil.rmtree(folder)
    folder.write_text("a file in the folder's place")
    check_uncached(saxpy, cache)


@pytest.mark.skipif(os.name != "posix", reason="it is about users of Unix")
def test_a_read_only_folder_has_hits_and_takes_nothing(saxpy):
    # other users have no access to pytest's directories
    folder = tempfile.mkdtemp()
    try:
        os.chmod(folder, 0o755)
        place = os.path.join(folder, "cache")
        check(tfc.compile(SAXPY, KERNEL, objects=saxpy, cache=tfc.Cache(place)))
        for root, folders, names in os.walk(place):
            os.chmod(root, 0o555)
            for name in names:
                os.chmod(os.path.join(root, name), 0o444)
        made = artifacts(place)
        child = os.fork()
        if child == 0:
            status = 1
            try:
                if os.getuid() == 0:
                    # root may write in spite of the mode
                    os.setgid(65534)
                    os.setuid(65534)
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    check(tfc.compile(SAXPY, KERNEL, objects=saxpy, cache=tfc.Cache(place)))
                check_uncached(saxpy, tfc.Cache(place), opt_level="none")
                status = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(status)
        assert os.waitpid(child, 0)[1] == 0
        assert artifacts(place) == made
    finally:
        os.chmod(os.path.join(folder, "cache"), 0o755)
        for root, _, _ in os.walk(folder):
            os.chmod(root, 0o755)
        shutil.rmtree(folder)


@pytest.mark.skipif(os.name != "posix", reason="it is about users of Unix")
def test_folders_of_others_are_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("all of it")
    message = 'expected an empty folder, or one that is marked as a cache by its `CACHEDIR.TAG`: it has "thesis.tex"'
    with pytest.raises(tfc.CodegenError, match=message):
        tfc.Cache(tmp_path)
    folder = tmp_path / "cache"
    tfc.Cache(folder)
    assert os.stat(folder).st_mode & 0o777 == 0o700
    os.chmod(folder, 0o770)
    with pytest.raises(tfc.CodegenError, match="other users can write to the folder: its mode is 770"):
        tfc.Cache(folder)
