"""Objects, libraries and their functions."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import tvm_ffi
import tvm_ffi_codegen as tfc

from conftest import SAXPY

KERNEL = tfc.Kernel.symbol("saxpy_kernel")


def check(module) -> None:
    x, y = np.arange(4, dtype="float32"), np.ones(4, dtype="float32")
    module.saxpy(2.0, x, y)
    assert y.tolist() == [1, 3, 5, 7]


def library() -> tfc.Library:
    return tfc.Library().add(SAXPY, KERNEL, doc="y += a * x")


@pytest.mark.parametrize("linker", ["wild", "cc"])
def test_a_library_is_a_file(saxpy, tmp_path, linker):
    path = tmp_path / "lib.so"
    library().link(path, objects=[saxpy], linker=linker)
    check(tvm_ffi.load_module(path))
    assert [name for name in os.listdir(tmp_path) if name.startswith((".", "tvm"))] == []


def test_a_library_is_in_memory(saxpy):
    module = library().load(objects=[saxpy])
    assert isinstance(module, tvm_ffi.Module)
    check(module)
    assert module.get_function_doc("saxpy") == "y += a * x"
    assert module.get_function_metadata("saxpy")["signature"] == SAXPY
    with open("/proc/self/maps") as maps:
        assert "memfd:tvm-ffi-codegen" in maps.read()
    del module
    gc.collect()
    with open("/proc/self/maps") as maps:
        assert "memfd:tvm-ffi-codegen" not in maps.read()


def test_a_library_in_memory_has_all_that_one_in_a_file_has(cc, saxpy, tmp_path):
    source = """
    static long runs;
    __attribute__((constructor)) static void begin(void) { runs = 40; }
    long counted(long n) { return runs + n; }
    """

    def functions():
        counted = tfc.Kernel.symbol("counted")
        return library().add("counted(n: int64) -> int64", counted).register_global("counted", "test.counted")

    path = tmp_path / "lib.so"
    objects = [saxpy, cc.object(source)]
    functions().link(path, objects=objects)
    for load in (lambda: functions().load(objects=objects), lambda: tvm_ffi.load_module(path, keep_module_alive=False)):
        module = load()
        check(module)
        assert module.counted(2) == 42
        assert tvm_ffi.get_global_func("test.counted")(3) == 43
        assert module.kind == "library" and module.imports == []
        assert module.implements_function("counted") and not module.implements_function("other")
        # a function keeps its library loaded
        counted = module.counted
        del module
        gc.collect()
        assert counted(4) == 44
        del counted
        gc.collect()
        assert tvm_ffi.get_global_func("test.counted", allow_missing=True) is None


def test_what_no_loader_takes_is_linked(cc):
    object = cc.object("static __thread long n; long f(void) { return ++n; }")
    module = tfc.Library().add("f() -> int64", tfc.Kernel.symbol("f")).load(objects=object)
    assert [module.f(), module.f()] == [1, 2]
    with open("/proc/self/maps") as maps:
        assert "/library.so" in maps.read()
    kept = tfc.Library().add("f() -> int64", tfc.Kernel.symbol("f"))
    assert kept.load(objects=cc.object("long f(void) { return 5; }"), keep_module_alive=True).f() == 5


def test_two_libraries_in_memory_are_two(cc):
    def module(number):
        object = cc.object(f"long f(void) {{ return {number}; }}")
        return tfc.Library().add("f() -> int64", tfc.Kernel.symbol("f")).load(objects=object)

    modules = [module(number) for number in range(4)]
    assert [module.f() for module in modules] == [0, 1, 2, 3]


def test_a_library_that_is_loaded_stays_as_it_is(cc, tmp_path):
    path = tmp_path / "lib.so"

    def link(number):
        object = cc.object(f"long f(void) {{ return {number}; }}")
        tfc.Library().add("f() -> int64", tfc.Kernel.symbol("f")).link(path, objects=object)

    link(1)
    loaded = tvm_ffi.load_module(path)
    link(2)
    assert loaded.f() == 1
    assert tfc.inspect(path)["linked"]


def test_archives_and_files_are_linked(cc, saxpy, tmp_path):
    archive = cc.archive("long two(void) { return 2; }", "long three(void) { return 3; }")
    kernel = tfc.Kernel.symbol("three")
    assert tfc.Library().add("f() -> int64", kernel).load(objects=[archive]).f() == 3
    (tmp_path / "k.a").write_bytes(archive)
    assert tfc.Library().add("f() -> int64", kernel).load(files=[tmp_path / "k.a"]).f() == 3
    library().archive(tmp_path / "lib.a", objects={"saxpy.o": saxpy})
    out = tmp_path / "lib.so"
    subprocess.run(
        ["cc", "-shared", "-o", out, "-Wl,--whole-archive", tmp_path / "lib.a", "-Wl,--no-whole-archive"], check=True
    )
    check(tvm_ffi.load_module(out))


def test_inspect_reads_bytes_and_paths(saxpy, tmp_path):
    object = library().object()
    binary = tfc.inspect(object)
    assert binary["format"] == "ELF" and not binary["linked"]
    (function,) = binary["functions"]
    assert (function["name"], function["doc"], function["signature"]) == ("saxpy", "y += a * x", SAXPY)
    assert "saxpy_kernel" in binary["needed_symbols"]
    (tmp_path / "f.o").write_bytes(object)
    assert tfc.inspect(tmp_path / "f.o") == binary
    with pytest.raises(tfc.CodegenError, match="the bytes"):
        tfc.inspect(b"nothing")
    with pytest.raises(tfc.CodegenError, match="nowhere.so"):
        tfc.inspect("nowhere.so")


def test_undefined_symbols_are_errors_unless_allowed(tmp_path):
    path = tmp_path / "lib.so"
    with pytest.raises(tfc.UndefinedSymbolError) as raised:
        library().link(path)
    assert [symbol.name for symbol in raised.value.symbols] == ["saxpy_kernel"] and not path.exists()
    library().link(path, allow_undefined=["saxpy_*"])
    assert path.exists()


def test_other_targets_are_objects(tmp_path):
    for target, format in [("aarch64-apple-darwin", "Mach-O"), ("x86_64-pc-windows-msvc", "COFF")]:
        object = tfc.Library(target=target).add(SAXPY, KERNEL).object()
        assert tfc.inspect(object)["format"] == format
    with pytest.raises(tfc.UnsupportedTargetError) as raised:
        tfc.Library(target="wasm32-unknown-unknown").add(SAXPY, KERNEL).object()
    assert raised.value.details["target"] == "wasm32-unknown-unknown"
    with pytest.raises(ValueError, match="target: expected a triple such as"):
        tfc.Library(target="my machine").object()
    with pytest.raises(tfc.UnsupportedTargetError):
        tfc.Library(target="aarch64-apple-darwin").add(SAXPY, KERNEL).link(tmp_path / "x.dylib", linker="wild")


def test_all_errors_of_a_library_are_one_error():
    wrong = tfc.Kernel.symbol("f", convention="memref")
    with pytest.raises(tfc.KernelError) as raised:
        tfc.Library().add("f(x: Tensor([...], float32))", wrong).add("g(x: Tensor([...], int8))", wrong).object()
    assert len(raised.value.errors) == 2
    with pytest.raises(tfc.KernelError, match="address of this process"):
        tfc.Library().add("f()", tfc.Kernel.address(4096)).object()


def test_options_and_globals(saxpy):
    plain = tfc.Library(opt_level="none").add(SAXPY, KERNEL).object()
    assert plain != tfc.Library(opt_level="full").add(SAXPY, KERNEL).object()
    module = library().register_global("saxpy", "test.saxpy").load(objects=saxpy)
    assert tvm_ffi.get_global_func("test.saxpy") is not None
    del module
    with pytest.raises(ValueError, match="opt_level: .*none, speed or full"):
        tfc.Library(opt_level="fastest").object()


CHECKED = """
f(x: Tensor([n], float32), by: float64 = 1.5, to: device = "cuda:1", kind: dtype = "float16", raw: bytes = "ab",
  name: Optional[str] = None, limit: float64 = inf, on: bool = True) -> int64
"""


def checked_module(cc):
    source = """
    #include <stdint.h>
    typedef struct { int32_t type, id; } Device;
    typedef struct { uint8_t code, bits; uint16_t lanes; } DType;
    int64_t f(float* x, double by, Device to, DType kind, const char* raw, int64_t raw_len, const char* name,
              int64_t name_len, double limit, uint8_t on, int64_t n) {
      return n * 1000 + to.type * 100 + to.id * 10 + on;
    }
    """
    library = tfc.Library().add(CHECKED, tfc.Kernel.symbol("f"), doc='Counts "things".\nSlowly.')
    return library, cc.object(source)


def test_callables_take_keywords_and_have_defaults(cc):
    library, object = checked_module(cc)
    f = tfc.python_callable(library.load(objects=object), "f")
    assert f.__name__ == "f" and f.__doc__.startswith('Counts "things".\nSlowly.')
    defaults = {name: parameter.default for name, parameter in f.__signature__.parameters.items()}
    assert defaults["to"] == tvm_ffi.device("cuda", 1) and defaults["kind"] == tvm_ffi.dtype("float16")
    assert (defaults["raw"], defaults["name"], defaults["limit"]) == (b"ab", None, float("inf"))
    assert str(f.__signature__).startswith("(x: 'SupportsDLPack', by: 'float' = 1.5, to: 'tvm_ffi.Device' = ")
    x = np.zeros(3, "float32")
    assert f(x) == 3211 and f(x, on=False) == 3210 and f(x=x, to=tvm_ffi.device("cpu", 0)) == 3101
    assert f(x, 2.0, to=tvm_ffi.device("cpu", 2)) == 3121
    with pytest.raises(TypeError, match="unexpected keyword"):
        f(x, off=True)
    with pytest.raises(TypeError, match="Mismatched type"):
        f("x")


def test_keyword_only_parameters_are_passed_by_name(cc, tmp_path):
    source = "#include <stdint.h>\nint64_t f(int64_t a, int64_t b, int64_t c) { return a * 100 + b * 10 + c; }"
    object = cc.object(source)
    library = tfc.Library()
    library.add("f(a: int64, *, b: int64, c: int64 = 3) -> int64", tfc.Kernel.symbol("f"))
    path = tmp_path / "lib.so"
    library.link(path, objects=object)
    module = tvm_ffi.load_module(path)
    f = tfc.python_callable(module, "f")
    assert str(f.__signature__) == "(a: 'int', *, b: 'int', c: 'int' = 3) -> 'int'"
    assert f(1, b=2) == 123 and f(c=7, b=2, a=1) == 127
    for wrong in [lambda: f(1, 2), lambda: f(1), lambda: f(1, 2, c=3)]:
        with pytest.raises(TypeError):
            wrong()
    # calls of the ABI pass them by position
    assert module.f(1, 2) == 123
    assert "def f(a: int, *, b: int, c: int = ...) -> int: ...\n" in tfc.stubs(path)


def test_c_parameters_are_stated(cc):
    object = cc.object(
        "void f(float* x, int n, int device, float by) { for (int i = 0; i < n; ++i) x[i] = x[i] * by + device; }"
    )
    signature = "f(x: Tensor([n], float32), by: float64)"
    args = ["x", "int32(x.shape[0] * x.ndim)", "x.device_id", "cast(by, float32)"]
    assert str(tfc.Kernel.symbol("f", args=args).prototype(signature)) == (
        "void f(float* x, int32_t arg1, int32_t x_device_id, float by);"
    )
    x = np.arange(3, dtype="float32")
    tfc.compile(signature, tfc.Kernel.object(object, "f", args=args))(x, 2.0)
    assert x.tolist() == [0, 2, 4]
    narrow = tfc.Library().add("f(n: int64)", tfc.Kernel.symbol("g", args=["int8(n * 2)"]))
    message = r"n \* 2 = 200, n from n, which doesn't fit in the kernel's int8|n \* 2 = 200"
    with pytest.raises(ValueError, match=message):
        narrow.load(objects=cc.object("void g(signed char n) {}")).f(100)
    with pytest.raises(tfc.CodegenError, match="this isn.t a tensor or scalar parameter"):
        tfc.compile("f(n: int64)", tfc.Kernel.symbol("g", args=["z"]))
    with pytest.raises(TypeError, match="args: expected a list of str"):
        tfc.Kernel.symbol("g", args="n")


def test_several_tensors_are_returned(cc):
    tfc.install_cpu_allocator()
    text = "split(x: Tensor([n], float32), k: int64) -> Tuple[Tensor([k], float32), Tensor([n - k], float32)]"
    object = cc.object(
        """
        #include <stdint.h>
        void split(const float* x, int64_t k, float* first, float* rest, int64_t n) {
          for (int64_t i = 0; i < n; ++i) (i < k ? first : rest - k)[i] = x[i];
        }
        """
    )
    assert "float* result_0, float* result_1" in str(tfc.Signature(text).prototype())
    split = tfc.compile(text, tfc.Kernel.symbol("split"), objects=object)
    first, rest = split(np.arange(5, dtype="float32"), 2)
    assert np.from_dlpack(first).tolist() == [0, 1] and np.from_dlpack(rest).tolist() == [2, 3, 4]
    with pytest.raises(ValueError, match=r"result\[1\].shape\[0\].*got -1"):
        split(np.zeros(1, "float32"), 2)


def test_stubs_are_python(cc, tmp_path):
    library, object = checked_module(cc)
    library.add("empty()", tfc.Kernel.check_only())
    path = tmp_path / "lib.so"
    library.link(path, objects=object)
    text = tfc.stubs(path)
    compile(text, "lib.pyi", "exec")
    assert "def empty() -> None: ...\n" in text
    assert "def f(x: SupportsDLPack, by: float = ..., to: tvm_ffi.Device = ..., " in text
    assert "name: str | None = ..., limit: float = ..., on: bool = ...) -> int:\n" in text
    assert tfc.stubs(path, ["empty"]) == tfc.stubs(tvm_ffi.load_module(path), ["empty"]) != text
    with pytest.raises(ValueError, match="can't list its functions"):
        tfc.stubs(tvm_ffi.load_module(path))
    with pytest.raises(ValueError, match="`g`"):
        tfc.stubs(path, ["g"])


def test_stubs_have_no_names_that_python_refuses():
    library = tfc.Library()
    for text in ("package.f()", "class()", "f(in: int64, n: int64)"):
        library.add(text, tfc.Kernel.check_only())
    text = tfc.stubs(library)
    compile(text, "lib.pyi", "exec")
    assert text.count("def ") == 2 and "def f(in_: int, n: int) -> None: ...\n" in text
    assert '# `package.f` isn\'t a name in Python: use `module["package.f"]`\n' in text


def test_functions_are_used_by_many_threads(saxpy):
    script = f"""
    import threading
    import numpy as np
    import tvm_ffi_codegen as tfc

    object = {saxpy!r}
    failures = []

    def work():
        try:
            for _ in range(20):
                f = tfc.compile({SAXPY!r}, tfc.Kernel.symbol("saxpy_kernel"), objects=[object])
                x, y = np.ones(8, "float32"), np.ones(8, "float32")
                f(2.0, x, y)
                assert y.tolist() == [3.0] * 8
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not failures, failures
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=True)
