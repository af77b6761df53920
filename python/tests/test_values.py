"""Signatures, kernels and errors as values: pickled, copied and shown."""

from __future__ import annotations

import copy
import ctypes
import pickle
import subprocess
import sys
import traceback

import numpy as np
import pytest
import tvm_ffi_codegen as tfc

from conftest import SAXPY

LAUNCH = "launch add grid=ceil_div(n, 128)"
ADD = "add(x: Tensor([n], float32), y: Tensor([n], float32))"
ADD_C = """
#include <stdint.h>
void add(const float* x, float* y, int64_t n, uint32_t bx, uint32_t by, uint32_t bz, uint32_t gx, uint32_t gy,
         uint32_t gz) {
  for (int64_t i = 128l * bx; i < n && i < 128l * (bx + 1); ++i) y[i] = x[i] + 1;
}
"""
PTX = b".version 8.0\n.target sm_80\n.visible .entry f(.param .u64 x) { ret; }\n"


def through_pickle(value):
    return pickle.loads(pickle.dumps(value))


@pytest.mark.parametrize("made_again", [through_pickle, copy.copy, copy.deepcopy])
def test_signatures_are_values(made_again):
    locations = {"signature": tfc.SourceLocation("model.py", 3, "forward"), "x": tfc.SourceLocation("model.py", 7, "forward")}
    signature = tfc.Signature(SAXPY + " where n > 0", locations=locations)
    again = made_again(signature)
    assert again == signature and hash(again) == hash(signature) and repr(again) == repr(signature)
    # the copy keeps its locations
    with pytest.raises(TypeError) as raised:
        tfc.compile(again, tfc.Kernel.check_only())(1.0, None, None)
    lines = traceback.extract_tb(raised.value.__traceback__)
    assert ("model.py", 7, "forward") in [(line.filename, line.lineno, line.name) for line in lines]


@pytest.mark.parametrize("made_again", [through_pickle, copy.copy, copy.deepcopy])
def test_kernels_are_values(made_again, saxpy, cc):
    add = cc.object(ADD_C)
    kernels = {
        "Kernel.symbol('saxpy_kernel', convention='flat')": tfc.Kernel.symbol("saxpy_kernel", convention="flat"),
        f"Kernel.object([<{len(saxpy)} bytes>], 'saxpy_kernel')": tfc.Kernel.object(saxpy, "saxpy_kernel"),
        f"Kernel.launch('launch f', [<{len(PTX)} bytes>])": tfc.Kernel.launch("launch f", PTX),
        "Kernel.check_only()": tfc.Kernel.check_only(),
        "Kernel.symbol('g', returns='status', args=['x', 'int32(n)'])": tfc.Kernel.symbol(
            "g", returns="status", args=["x", "int32(n)"]
        ),
        f"Kernel.launch_on_cpu('{LAUNCH}', Kernel.object([<{len(add)} bytes>], 'add'))": tfc.Kernel.launch_on_cpu(
            LAUNCH, tfc.Kernel.object(add, "add")
        ),
        f"Kernel.prepare([Kernel.launch('launch f', [<{len(PTX)} bytes>])])": tfc.Kernel.prepare(
            [tfc.Kernel.launch("launch f", PTX)]
        ),
    }
    again = {shown: made_again(kernel) for shown, kernel in kernels.items()}
    assert [repr(kernel) for kernel in again.values()] == list(kernels)
    x, y = np.arange(300, dtype="float32"), np.ones(300, "float32")
    of = list(again.values())
    tfc.compile(SAXPY, of[0], objects=saxpy)(2.0, x, y)
    tfc.compile(SAXPY, of[1])(1.0, x, y)
    assert (y == 3 * x + 1).all()
    tfc.compile(ADD, of[5])(x, y)
    assert (y == x + 1).all()
    symbol = again["Kernel.symbol('g', returns='status', args=['x', 'int32(n)'])"]
    assert symbol.prototype("g(x: Tensor([n], int8))").text == "int32_t g(int8_t* x, int32_t n);"


def test_addresses_are_copied_and_not_pickled(cc):
    libc = ctypes.CDLL(None)
    kernel = tfc.Kernel.address(libc.labs, keep_alive=libc)
    assert copy.copy(kernel) is kernel and copy.deepcopy(kernel) is kernel
    object = cc.object("long other(long); long f(long n) { return other(n); }")
    given = tfc.Kernel.object(object, "f", symbols={"other": libc.labs})
    for of in (kernel, given, tfc.Kernel.launch_on_cpu("launch f", kernel)):
        message = "has an address of this process, which means nothing in another: it can't be pickled"
        with pytest.raises(TypeError, match=message):
            pickle.dumps(of)
    assert repr(given).startswith("Kernel.object([<") and "symbols={'other': <_FuncPtr object at " in repr(given)


@pytest.mark.parametrize("made_again", [through_pickle, copy.copy, copy.deepcopy])
def test_errors_keep_their_errors(made_again, cc):
    with pytest.raises(tfc.SignatureError) as raised:
        tfc.Signature("f(x: fp16,\n  y: int99)")
    error = raised.value
    again = made_again(error)
    assert type(again) is type(error) and str(again) == str(error) and repr(again) == repr(error)
    assert again.errors == error.errors and len(again.errors) == 2 and again.details == error.details
    with pytest.raises(tfc.UndefinedSymbolError) as raised:
        tfc.compile("f()", tfc.Kernel.object(cc.object("void nobody(void); void f(void) { nobody(); }"), "f"))
    again = made_again(raised.value)
    assert [of.name for of in again.symbols] == ["nobody"] and again.symbols == raised.value.symbols
    # an error that was made in Python has no parts
    assert made_again(tfc.KernelError("text")).args == ("text",) and made_again(tfc.KernelError("text")).errors == []


def test_another_process_reads_what_was_pickled(saxpy, tmp_path):
    try:
        tfc.Signature("f(x: fp16)")
    except tfc.SignatureError as raised:
        error = raised
    path = tmp_path / "values"
    path.write_bytes(pickle.dumps((tfc.Signature(SAXPY), tfc.Kernel.object(saxpy, "saxpy_kernel"), error)))
    script = f"""
import pickle, numpy as np, tvm_ffi_codegen as tfc
signature, kernel, error = pickle.load(open({str(path)!r}, "rb"))
x, y = np.arange(4, dtype="float32"), np.ones(4, "float32")
tfc.compile(signature, kernel)(2.0, x, y)
assert y.tolist() == [1, 3, 5, 7] and error.errors[0].got == "`fp16`"
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_libraries_and_caches_show_themselves(tmp_path):
    library = tfc.Library().add(SAXPY, tfc.Kernel.symbol("saxpy_kernel")).add("f()", tfc.Kernel.symbol("f"))
    assert repr(library) == "<Library of saxpy, f, for this machine>"
    assert repr(tfc.Library(target="aarch64-linux-gnu")) == "<Library of no functions, for aarch64-linux-gnu>"
    assert repr(tfc.Cache(tmp_path / "cache", 1000)) == f"Cache({str(tmp_path / 'cache')!r}, max_bytes=1000)"
