"""Functions in this process."""

from __future__ import annotations

import ctypes
import gc
import html
import inspect
import subprocess
import sys
import textwrap
import traceback
import weakref

import numpy as np
import pytest
import tvm_ffi
import tvm_ffi_codegen as tfc

from conftest import SAXPY


def check(function) -> None:
    x, y = np.arange(4, dtype="float32"), np.ones(4, dtype="float32")
    function(2.0, x, y)
    assert y.tolist() == [1, 3, 5, 7]
    with pytest.raises(ValueError, match="Mismatched y.shape"):
        function(2.0, x, y[:3])


def mapped(address: int) -> bool:
    """True if an address is in this process's memory map."""
    with open("/proc/self/maps") as maps:
        ranges = (line.split()[0].split("-") for line in maps)
        return any(int(start, 16) <= address < int(end, 16) for start, end in ranges)


def test_an_object_is_a_function(saxpy):
    function = tfc.compile(SAXPY, tfc.Kernel.symbol("saxpy_kernel"), objects=[saxpy])
    assert isinstance(function, tvm_ffi.Function)
    check(function)
    check(tfc.compile(tfc.Signature(SAXPY), tfc.Kernel.object(saxpy, "saxpy_kernel")))


def test_several_objects_and_archives_refer_to_each_other(cc):
    one = cc.object("long two(long); long one(long n) { return two(n) + 1; }")
    two = cc.object("long three(void); long two(long n) { return n * three(); }")
    archive = cc.archive("long three(void) { return 3; }", "long nobody(void); long unused(void) { return nobody(); }")
    kernel = tfc.Kernel.symbol("one")
    assert tfc.compile("f(n: int64) -> int64", kernel, objects=[one, two, archive])(5) == 16
    assert tfc.compile("f(n: int64) -> int64", tfc.Kernel.object([archive, two, one], "one"))(5) == 16
    assert tfc.compile("f() -> int64", tfc.Kernel.symbol("three"), objects=archive)() == 3


def test_symbols_of_the_process_are_found():
    assert tfc.compile("f(x: float64) -> float64", tfc.Kernel.symbol("sqrt"))(9.0) == 3.0


def test_addresses_keep_their_owners():
    class Owner:
        pass

    @ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)
    def double(n):
        return 2 * n

    owner = Owner()
    seen = weakref.ref(owner)
    function = tfc.compile("f(n: int64) -> int64", tfc.Kernel.address(double, keep_alive=owner))
    del owner, double
    gc.collect()
    assert seen() is not None and function(4) == 8
    del function
    gc.collect()
    assert seen() is None
    libc = ctypes.CDLL(None)
    address = ctypes.cast(libc.labs, ctypes.c_void_p).value
    assert tfc.compile("f(n: int64) -> int64", tfc.Kernel.address(address, keep_alive=libc))(-4) == 4
    with pytest.raises(tfc.KernelError, match="NULL"):
        tfc.compile("f()", tfc.Kernel.address(0))


def test_the_last_reference_unloads_wrapper_and_kernel(cc):
    source = "#include <stdint.h>\nint64_t where(void) { return (int64_t)&where; }"
    function = tfc.compile("where() -> int64", tfc.Kernel.symbol("where"), objects=[cc.object(source)])
    address = function()
    assert mapped(address)
    del function
    gc.collect()
    assert not mapped(address)


def test_checks_alone_need_no_kernel():
    check_only = tfc.compile("check(x: Tensor([n], float32), n: int64)", tfc.Kernel.check_only())
    check_only(np.zeros(3, "float32"), 3)
    with pytest.raises(ValueError, match="expected float32, got float64"):
        check_only(np.zeros(3), 3)


def test_a_status_becomes_an_error(cc):
    source = "int f(long n, double* result) { *result = n / 2.0; return n < 0 ? 7 : 0; }"
    function = tfc.compile(
        "f(n: int64) -> float64", tfc.Kernel.symbol("f", returns="status"), objects=cc.object(source)
    )
    assert function(3) == 1.5
    with pytest.raises(RuntimeError, match="`f`.* 7"):
        function(-1)


def test_undefined_symbols_are_listed(cc):
    source = "void nobody(void); void f(void) { nobody(); }"
    with pytest.raises(tfc.UndefinedSymbolError) as raised:
        tfc.compile("f()", tfc.Kernel.symbol("f"), objects=[cc.object(source)])
    assert str(raised.value).startswith("undefined symbol: `nobody` (referred to by ")
    (symbol,) = raised.value.symbols
    assert symbol.name == "nobody" and "f" in symbol.references[0]
    with pytest.raises(tfc.UndefinedSymbolError) as raised:
        tfc.compile("g()", tfc.Kernel.symbol("nobody_has_this"))
    assert [symbol.name for symbol in raised.value.symbols] == ["nobody_has_this"]


def test_bad_input_is_an_error(saxpy):
    with pytest.raises(tfc.LinkError):
        tfc.compile("f()", tfc.Kernel.object(b"no object", "f"))
    with pytest.raises(tfc.LinkError):
        tfc.compile("f()", tfc.Kernel.object([saxpy, saxpy[:100]], "f"))
    with pytest.raises(ValueError, match="at least one object"):
        tfc.Kernel.object([], "f")
    with pytest.raises(tfc.KernelError) as raised:
        tfc.compile("f(x: Tensor([...], float32))", tfc.Kernel.symbol("f", convention="memref"), objects=saxpy)
    assert raised.value.errors
    with pytest.raises(ValueError, match="backend"):
        tfc.compile("f()", tfc.Kernel.check_only(), backend="gcc")


def test_errors_end_in_the_places_of_the_caller():
    locations = {"signature": tfc.SourceLocation("model.py", 3, "forward"), "x": tfc.SourceLocation("model.py", 7, "forward")}
    function = tfc.compile(tfc.Signature(SAXPY, locations=locations), tfc.Kernel.check_only())
    with pytest.raises(TypeError) as raised:
        function(1.0, None, None)
    lines = traceback.extract_tb(raised.value.__traceback__)
    assert ("model.py", 7, "forward") in [(line.filename, line.lineno, line.name) for line in lines]


def test_the_kernel_of_a_text_runs_on_the_cpu(cc):
    source = """
    #include <stdint.h>
    void add(const float* x, float* y, int64_t n, uint32_t bx, uint32_t by, uint32_t bz,
             uint32_t gx, uint32_t gy, uint32_t gz) {
      for (int64_t i = 128l * bx; i < n && i < 128l * (bx + 1); ++i) y[i] = x[i] + 1;
    }
    """
    block = tfc.Kernel.object(cc.object(source), "add")
    kernel = tfc.Kernel.launch_on_cpu("launch add grid=ceil_div(n, 128)", block)
    function = tfc.compile("add(x: Tensor([n], float32), y: Tensor([n], float32))", kernel)
    x, y = np.arange(1000, dtype="float32"), np.zeros(1000, "float32")
    function(x, y)
    assert (y == x + 1).all()
    assert tvm_ffi.get_global_func("tvm_ffi_codegen.parallel_for")() is not None


def test_objects_serve_every_kernel_that_refers_to_symbols(cc):
    block = """
    #include <stdint.h>
    float add_one(float);
    void add(const float* x, float* y, int64_t n, uint32_t bx, uint32_t by, uint32_t bz,
             uint32_t gx, uint32_t gy, uint32_t gz) {
      for (int64_t i = 128l * bx; i < n && i < 128l * (bx + 1); ++i) y[i] = add_one(x[i]);
    }
    """
    block, one = cc.object(block), cc.object("float add_one(float x) { return x + 1; }")
    launch, signature = "launch add grid=ceil_div(n, 128)", "add(x: Tensor([n], float32), y: Tensor([n], float32))"
    x, y = np.arange(1000, dtype="float32"), np.zeros(1000, "float32")
    for kernel, objects in [
        # the objects define the block's symbol, or the kernel has an object that refers to others
        (tfc.Kernel.symbol("add"), [block, one]),
        (tfc.Kernel.object([block, one], "add"), ()),
        (tfc.Kernel.object(block, "add"), one),
        (tfc.Kernel.object(block, "add"), cc.archive(one)),
    ]:
        y[:] = 0
        tfc.compile(signature, tfc.Kernel.launch_on_cpu(launch, kernel), objects=objects)(x, y)
        assert (y == x + 1).all()
        # the same kernel, called without a launch
        f = "f(x: Tensor([n], float32), y: Tensor([n], float32), bx: uint32)"
        args = ["x", "y", "int64(n)", "bx", *["uint32(0)"] * 5]
        if objects == [block, one]:
            tfc.compile(f, tfc.Kernel.symbol("add", args=args), objects=objects)(x, y, 0)
        elif objects:
            tfc.compile(f, tfc.Kernel.object(block, "add", args=args), objects=objects)(x, y, 0)
    with pytest.raises(tfc.UndefinedSymbolError) as raised:
        tfc.compile(signature, tfc.Kernel.launch_on_cpu(launch, tfc.Kernel.symbol("add")), objects=block)
    assert [symbol.name for symbol in raised.value.symbols] == ["add_one"]


def test_addresses_stand_for_symbols(cc):
    source = "extern long table[2]; long twice(long); long f(long n) { return twice(n) + table[1]; }"
    one = cc.object(source)
    table = (ctypes.c_long * 2)(1, 40)

    class Owner:
        pass

    @ctypes.CFUNCTYPE(ctypes.c_long, ctypes.c_long)
    def twice(n):
        return 2 * n

    owner = twice.owner = Owner()
    seen = weakref.ref(owner)
    symbols = {"twice": twice, "table": ctypes.addressof(table)}
    signature = "f(n: int64) -> int64"
    with pytest.raises(tfc.UndefinedSymbolError):
        tfc.compile(signature, tfc.Kernel.symbol("f"), objects=one)
    by_call = tfc.compile(signature, tfc.Kernel.symbol("f"), objects=one, symbols=symbols)
    by_kernel = tfc.compile(signature, tfc.Kernel.object(one, "f", symbols=symbols))
    by_both = tfc.compile(
        signature,
        tfc.Kernel.object(one, "f", symbols={"twice": twice}),
        symbols={"table": ctypes.addressof(table)},
    )
    # `symbols` may also define the kernel itself
    itself = tfc.compile(signature, tfc.Kernel.symbol("no_such_symbol"), symbols={"no_such_symbol": twice})
    assert [by_call(1), by_kernel(2), by_both(3), itself(4)] == [42, 44, 46, 8]
    # `ctypes` functions live as long as the compiled functions
    del owner, twice, symbols
    gc.collect()
    assert seen() is not None and by_call(1) == 42
    del by_call, by_kernel, by_both, itself
    gc.collect()
    assert seen() is None
    # addresses are valid only in this process
    kernel = tfc.Kernel.object(one, "f", symbols={"twice": 1 << 40})
    with pytest.raises(tfc.KernelError, match="an address of `twice` in this process, which means nothing in a file"):
        tfc.Library().add(signature, kernel).object()
    with pytest.raises(ValueError, match="symbols: expected none with a cache"):
        tfc.compile(signature, tfc.Kernel.symbol("f"), symbols={"twice": 1}, cache=tfc.Cache(cc.folder / "cache"))
    # two addresses for one name are an error
    message = "`twice` is defined twice: by the address 0x10000000000, and by the address 0x1"
    with pytest.raises(tfc.LinkError, match=message):
        tfc.compile(signature, kernel, symbols={"twice": 1})


def test_what_code_defines_itself_comes_before_addresses(cc):
    one = cc.object("long g(void) { return 1; } long f(void) { return g(); }")
    assert tfc.compile("f() -> int64", tfc.Kernel.object(one, "f"), symbols={"g": 8})() == 1


def test_a_function_tells_what_it_is():
    signature = 'f(x: float64, *, d: device = "cpu", times: int64 = 1) -> float64'
    kernel = tfc.Kernel.symbol("pow", args=["x", "cast(times, float64)"])
    function = tfc.compile(signature, kernel, doc="x to that power.")
    assert isinstance(function, tvm_ffi.Function) and isinstance(function, tfc.CompiledFunction)
    assert function.signature == tfc.Signature(signature) and function.__name__ == "f"
    assert function.__doc__ == f"x to that power.\n\n{function.signature.text}"
    assert inspect.signature(function).parameters["times"].default == 1
    assert repr(function) == f"<CompiledFunction {function.signature.text}>"
    assert function(3.0, tvm_ffi.device("cpu"), 2) == 9.0
    # you can pass it on like any function
    assert tvm_ffi.convert([function])[0](3.0, tvm_ffi.device("cpu"), 2) == 9.0
    call = tfc.python_callable(function)
    assert (call.__name__, call.__doc__) == ("f", function.__doc__)
    assert inspect.signature(call) == inspect.signature(function)
    assert call(3.0) == 3.0 and call(x=3.0, times=2) == 9.0 and call(3.0, times=3) == 27.0
    with pytest.raises(TypeError, match="unexpected keyword argument 'time'"):
        call(3.0, time=2)
    with pytest.raises(TypeError, match="name: expected None for a function"):
        tfc.python_callable(function, "f")


def test_a_function_of_a_cache_tells_what_it_is(saxpy, tmp_path):
    for _ in range(2):
        kernel, cache = tfc.Kernel.symbol("saxpy_kernel"), tfc.Cache(tmp_path / "cache")
        function = tfc.compile(SAXPY, kernel, objects=saxpy, cache=cache, doc="y += a x")
        check(function)
        assert function.__doc__.startswith("y += a x\n\nsaxpy(")
        assert list(inspect.signature(function).parameters) == ["a", "x", "y"]


def test_many_functions_are_independent(cc):
    objects = [cc.object(f"long f(void) {{ return {number}; }}") for number in range(8)]
    functions = [tfc.compile("f() -> int64", tfc.Kernel.symbol("f"), objects=one) for one in objects]
    assert [function() for function in functions] == list(range(8))


def test_explain_shows_every_stage(saxpy):
    kernel = tfc.Kernel.symbol("saxpy_kernel")
    assert "export fn __tvm_ffi_saxpy" in tfc.explain(SAXPY, kernel)
    assert "brif" in tfc.explain(SAXPY, kernel, stage="clif")
    assert "saxpy_kernel" in tfc.explain(SAXPY, kernel, stage="header")
    assert tfc.explain(SAXPY, stage="asm")
    with pytest.raises(ValueError, match="clif"):
        tfc.explain(SAXPY, stage="c")
    with pytest.raises(tfc.KernelError):
        tfc.explain("f(x: Tensor([...], float32))", tfc.Kernel.symbol("f", convention="memref"))


def test_notebooks_show_the_stages_side_by_side():
    signature = 'f(x: Tensor([n], float32), mode: str = "a<b")'
    explained = tfc.explain(signature, stage="clif")
    page = explained.to_html()
    assert isinstance(explained, str)
    assert page == tfc.explain(signature, stage="html") and page.startswith("<!DOCTYPE html>")
    assert "a&lt;b" in page and 'data-stage="asm"' in page
    frame = explained._repr_html_()
    attribute = frame.removeprefix('<iframe srcdoc="').partition('"')[0]
    assert frame.endswith("></iframe>") and html.unescape(attribute) == page


def test_the_build_tells_what_it_has():
    build = tfc.build_info()
    assert build["version"] == tfc.__version__ and build["build_id"].startswith(build["version"])
    assert "cranelift" in build["backends"] and "linux" in build["target"]


def test_tensors_are_returned_to_numpy(cc):
    source = """
    #include <stdint.h>
    void f(const float* x, float* result, int64_t n) { for (int64_t i = 0; i < n; ++i) result[i] = 2 * x[i]; }
    """
    script = f"""
    import threading
    import numpy as np
    import pytest
    import tvm_ffi_codegen as tfc

    signature = "f(x: Tensor([n], float32)) -> Tensor([n], float32)"
    f = tfc.compile(signature, tfc.Kernel.symbol("f"), objects={cc.object(source)!r})
    x = np.arange(5, dtype="float32")
    message = r"no tensor allocator is set.*tvm_ffi_codegen.install_cpu_allocator\\(\\)"
    with pytest.raises(RuntimeError, match=message):
        f(x)

    def elsewhere():
        with pytest.raises(RuntimeError, match="install_cpu_allocator"):
            f(x)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    tfc.install_cpu_allocator()
    y = np.from_dlpack(f(x))
    assert y.tolist() == [0, 2, 4, 6, 8] and y.dtype == np.float32
    del x, f
    assert y.tolist() == [0, 2, 4, 6, 8]
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=True)
