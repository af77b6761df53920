"""Arguments of the package: the accepted values, and the errors for wrong ones."""

from __future__ import annotations

import ctypes
import re

import numpy as np
import pytest
import tvm_ffi
import tvm_ffi_codegen as tfc

from conftest import SAXPY

F = "f(n: int64) -> int64"
KERNEL = tfc.Kernel.symbol("f")


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: tfc.compile(F, KERNEL, objects="k.o"),
            TypeError,
            "objects: expected bytes, as `pathlib.Path(...).read_bytes()` gives them, got 'k.o'",
        ),
        (lambda: tfc.compile(F, KERNEL, objects=[b"", "k.o"]), TypeError, "objects[1]: expected bytes, as"),
        (lambda: tfc.compile(F, KERNEL, objects=[5]), TypeError, "objects[0]: expected bytes, got 5"),
        (lambda: tfc.compile(F, KERNEL, objects=5), TypeError, "objects: expected a list of bytes, got 5"),
        (lambda: tfc.compile(F, "f"), TypeError, "kernel: expected a Kernel, such as Kernel.symbol(name), got 'f'"),
        (lambda: tfc.compile(3, KERNEL), TypeError, "signature: expected a Signature, or its text as a str, got 3"),
        (
            lambda: tfc.compile(F, KERNEL, backend="gcc"),
            ValueError,
            "backend: expected a backend that this build has (cranelift or llvm), got `gcc`",
        ),
        (lambda: tfc.compile(F, KERNEL, backend=1), TypeError, "backend: expected a str, got 1"),
        (
            lambda: tfc.compile(F, KERNEL, opt_level="O3"),
            ValueError,
            "opt_level: expected none, speed or full, got `O3`",
        ),
        (lambda: tfc.compile(F, KERNEL, opt_level=3), TypeError, "opt_level: expected a str, got 3"),
        (lambda: tfc.compile(F, KERNEL, cache="folder"), TypeError, "cache: expected a Cache, got 'folder'"),
        (lambda: tfc.compile(F, KERNEL, doc=3), TypeError, "doc: expected a str"),
        (lambda: tfc.compile(F, KERNEL, symbols=["g"]), TypeError, "symbols: expected a mapping of addresses by names"),
        (
            lambda: tfc.compile(F, KERNEL, symbols={"g": "h"}),
            TypeError,
            "symbols['g']: expected an address, which is an int or a function of ctypes, got 'h'",
        ),
        (
            lambda: tfc.compile(F, KERNEL, symbols={"g": 1 << 64}),
            ValueError,
            "symbols['g']: expected an address of 64 bits",
        ),
        (
            lambda: tfc.compile("f()", tfc.Kernel.check_only(), objects=b"x"),
            ValueError,
            "objects: expected none for a kernel that refers to no symbol",
        ),
        (
            lambda: tfc.compile("f()", tfc.Kernel.address(1), symbols={"g": 1}),
            ValueError,
            "symbols: expected none for a kernel that refers to no symbol",
        ),
        (lambda: tfc.explain(F, KERNEL, stage="c"), ValueError, "stage: expected "),
        (lambda: tfc.explain(F, "f"), TypeError, "kernel: expected a Kernel"),
        (lambda: tfc.inspect(3), TypeError, "binary: expected a path, got 3"),
        (lambda: tfc.Kernel.symbol(3), TypeError, "name: expected a str, got 3"),
        (
            lambda: tfc.Kernel.symbol("f", convention="fast"),
            ValueError,
            "convention: expected flat, dltensor, memref or packed, got `fast`",
        ),
        (lambda: tfc.Kernel.symbol("f", convention=1), TypeError, "convention: expected a str, got 1"),
        (
            lambda: tfc.Kernel.symbol("f", returns="int"),
            ValueError,
            "returns: expected nothing, status or value, got `int`",
        ),
        (lambda: tfc.Kernel.symbol("f", args="n"), TypeError, "args: expected a list of str, got 'n'"),
        (lambda: tfc.Kernel.object("k.o", "f"), TypeError, "objects: expected bytes, as"),
        (lambda: tfc.Kernel.object([], "f"), ValueError, "objects: expected at least one object"),
        (lambda: tfc.Kernel.llvm_ir(b"", "f"), TypeError, "text: expected a str, got b''"),
        (lambda: tfc.Kernel.bitcode("", "f"), TypeError, "bitcode: expected bytes"),
        (lambda: tfc.Kernel.address("f"), TypeError, "address: expected an address"),
        (lambda: tfc.Kernel.launch("launch f", "k.cubin"), TypeError, "images: expected bytes, as"),
        (lambda: tfc.Kernel.launch_on_cpu("launch f", "f"), TypeError, "function: expected a Kernel"),
        (lambda: tfc.Kernel.prepare(KERNEL), TypeError, "kernels: expected a list of Kernels"),
        (lambda: tfc.Kernel.cuda(b"", "f", grid=[]), ValueError, "grid: expected one to three extents, got 0"),
        (lambda: tfc.Kernel.cuda(b"", "f", grid=lambda: 1), TypeError, "grid: expected numbers or expressions such as"),
        (lambda: tfc.Kernel.cuda(b"", "f", block=1.5), TypeError, "block: expected an int, or an expression as a str"),
        (lambda: tfc.Kernel.cuda(b"", "f", shared_memory=[1]), TypeError, "shared_memory: expected an int"),
        (lambda: tfc.Kernel.cuda(b"", "f", priority="high"), TypeError, "priority: expected an int, got 'high'"),
        (lambda: tfc.Kernel.cuda(b"", "f", completion_event=7), TypeError, "completion_event: expected a str, got 7"),
        (lambda: tfc.Kernel.cuda(b"", "f", globals=["a"]), TypeError, "globals: expected a mapping of str by names"),
        (lambda: tfc.Kernel.cuda(b"", "f", globals={"a": 1}), TypeError, "globals: expected a str, got 1"),
        (lambda: tfc.Library(target="nowhere"), None, ""),
        (
            lambda: tfc.Library(target="nowhere").object(),
            ValueError,
            "target: expected a triple such as `x86_64-unknown-linux-gnu`, got `nowhere`",
        ),
        (lambda: tfc.Library(features="+avx2"), TypeError, "features: expected a list of str, got '+avx2'"),
        (lambda: tfc.Library().add(F, "f"), TypeError, "kernel: expected a Kernel"),
        (lambda: tfc.Library().add(F, KERNEL, doc=b""), TypeError, "doc: expected a str"),
        (lambda: tfc.Library().register_global("f", None), TypeError, "name: expected a str, got None"),
        (lambda: tfc.Library().link("f.so", files="k.o"), TypeError, "files: expected a list of paths, got 'k.o'"),
        (
            lambda: tfc.Library().link("f.so", allow_undefined="g"),
            TypeError,
            "allow_undefined: expected a list of str, got 'g'",
        ),
        (lambda: tfc.Library().link("f.so", linker="ld"), ValueError, "linker: expected wild or cc, got `ld`"),
        (lambda: tfc.Library().load(flags=["-g"]), TypeError, "got an unexpected keyword argument 'flags'"),
        (
            lambda: tfc.Library().load(flags=["-g"], cache=tfc.Cache("c")),
            TypeError,
            "got an unexpected keyword argument 'flags'",
        ),
        (
            lambda: tfc.Library().archive("f.a", objects=b"x"),
            TypeError,
            "objects: expected a mapping of bytes by the names of members",
        ),
        (lambda: tfc.functions(tfc.Library(), "f"), TypeError, "names: expected a list of str, got 'f'"),
        (lambda: tfc.Cache(3), TypeError, "folder: expected a path, got 3"),
        (lambda: tfc.Cache("cache", "1 GB"), TypeError, "max_bytes: expected an int, got '1 GB'"),
        (lambda: tfc.Signature(b"f()"), TypeError, "text: expected a str, got b'f()'"),
        (
            lambda: tfc.Signature("f()", locations={"signature": 3}),
            TypeError,
            "locations['signature']: expected a tvm_ffi_codegen.SourceLocation",
        ),
        (lambda: tfc.Signature.build("f", {"x": 3}), TypeError, "parameters['x']: expected a type as a str"),
        (lambda: tfc.Signature.build("f", {}, where="n > 0"), TypeError, "where: expected a list of str, got 'n > 0'"),
        (
            lambda: tfc.python_callable("f"),
            TypeError,
            "source: expected a tvm_ffi.Module, or a function of tvm_ffi_codegen.compile, got 'f'",
        ),
    ],
)
def test_wrong_arguments_are_named(call, error, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if error is None:
        call()
        return
    with pytest.raises(error, match=re.escape(message)) as raised:
        call()
    # the message doesn't mention the native library
    assert not re.search(r"tfc_|::|Optional<|options:", str(raised.value)), raised.value


def test_scalars_of_numpy_are_defaults():
    types = {"i": "int64", "f": "float32", "b": "bool", "s": "str", "t": "dtype", "d": "device", "h": "float64"}
    values = [
        np.int8(3),
        np.float32(0.5),
        np.bool_(True),
        np.str_("a"),
        np.float16,
        tvm_ffi.device("cuda:1"),
        np.array(2.5),
    ]
    built = tfc.Signature.build("f", types, defaults=dict(zip(types, values)))
    assert [of.default for of in built.parameters] == ["3", "0.5", "True", '"a"', '"float16"', '"cuda:1"', "2.5"]
    for value in ([1], np.zeros(3), object(), 1j):
        with pytest.raises(
            TypeError, match=r"defaults\['i'\]: expected None, a bool, a number, a str, a dtype or a device"
        ):
            tfc.Signature.build("f", {"i": "int64"}, defaults={"i": value})


def test_dtypes_of_frameworks_are_types():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    types = [
        np.float32,
        np.dtype("int8"),
        tvm_ffi.dtype("uint16"),
        ml_dtypes.bfloat16,
        np.dtype(ml_dtypes.bfloat16),
        np.bool_,
    ]
    built = tfc.Signature.build("f", {f"p{number}": type for number, type in enumerate(types)}, returns=np.float64)
    assert [of.type for of in built.parameters] == ["float32", "int8", "uint16", "bfloat16", "bfloat16", "bool"]
    assert built.returns == "float64"


def test_numbers_of_numpy_are_extents_and_addresses():
    image = b".version 8.0\n.target sm_80\n.visible .entry f() { ret; }\n"
    kernel = tfc.Kernel.cuda(image, "f", grid=np.int64(3), block=(np.int32(32), "2"), shared_memory=np.uint8(64), args=[])
    assert "grid=3 block=(32, 2) shared_memory=64" in repr(kernel)
    libc = ctypes.CDLL(None)
    address = np.uint64(ctypes.cast(libc.labs, ctypes.c_void_p).value)
    assert tfc.compile(F, tfc.Kernel.address(address, keep_alive=libc))(-4) == 4


def test_attributes_with_values_are_text():
    image = b".version 8.0\n.target sm_90\n.visible .entry f() { ret; }\n"
    kernel = tfc.Kernel.cuda(
        image, "f", args=[], cluster=2, cluster_scheduling="spread", memory_sync_domain="remote",
        shared_memory_carveout=40, completion_event="event",
    )
    for stated in ["cluster_scheduling=spread", "memory_sync_domain=remote", "shared_memory_carveout=40", "completion_event=event"]:
        assert f" {stated}" in repr(kernel)
    kernel = tfc.Kernel.cuda(image, "f", globals={"scale": "float32(a)", "b.c": "n"}, on_load="pkg.load", on_unload="un load")
    assert 'globals=["scale"=float32(a), "b.c"=n] on_load="pkg.load" on_unload="un load"' in repr(kernel)
    with pytest.raises(ValueError, match="expected `spread` or `load_balancing`, found `all`"):
        tfc.Kernel.cuda(image, "f", cluster_scheduling="all")


def test_a_library_for_one_function_takes_one_of_each(saxpy, tmp_path):
    path = tmp_path / "k.o"
    path.write_bytes(saxpy)
    library = tfc.Library().add(SAXPY, tfc.Kernel.symbol("saxpy_kernel"))
    library.link(tmp_path / "f.so", files=[path], library_folders=[tmp_path])
    assert [of.name for of in tfc.functions(tmp_path / "f.so", ["saxpy"])] == ["saxpy"]
