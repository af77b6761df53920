"""Bodies as host text: kernels of a block, programs of several functions, their errors and their memory."""

from __future__ import annotations

import copy
import gc
import pickle
import traceback

import numpy as np
import pytest
import tvm_ffi
import tvm_ffi_codegen as tfc

from conftest import SAXPY

F = "f(n: int64) -> int64"
SAXPY_BLOCK = "{ for i in range(0, n) { y[i] = a * x[i] + y[i]; } }"

#: A TVM FFI function in C, as an object that bodies call by its symbol.
TWICE_C = """
struct any { int type_index, padding; long value; };
int __tvm_ffi_twice(void* self, const struct any* args, int count, struct any* result) {
  result->type_index = 1;
  result->value = 2 * args[0].value;
  return 0;
}
"""
TWICE = "{ let m = call symbol twice(n) -> int64; return m + 1; }"

PROGRAM = f"""
register saxpy_twice as "test.saxpy_twice";
{SAXPY} @ saxpy_kernel;

## y += 2 * a * x.
##
## In two calls.
@ "model.py":3 "forward"
@ y: "model.py":4 "forward"
saxpy_twice(a: float32, x: Tensor([n], float32), y: Tensor([n], float32)) {{
  call symbol saxpy(a, x, y);
  call symbol saxpy(a, x, y);
}}
even(n: int64) -> bool {{ if n == 0 {{ return True; }} let it = call symbol odd(n - 1) -> bool; return it; }}
odd(n: int64) -> bool {{ if n == 0 {{ return False; }} let it = call symbol even(n - 1) -> bool; return it; }}
"""


def vectors():
    return np.arange(4, dtype="float32"), np.ones(4, dtype="float32")


@pytest.mark.parametrize("compiled", ["here", "library", "file"])
def test_a_block_is_a_kernel(compiled, tmp_path):
    kernel = tfc.Kernel.host(SAXPY_BLOCK)
    x, y = vectors()
    if compiled == "here":
        function = tfc.compile(SAXPY, kernel, doc="y += a * x")
        assert function.__doc__ == f"y += a * x\n\n{SAXPY}"
    else:
        library = tfc.Library().add(SAXPY, kernel)
        if compiled == "file":
            library.link(tmp_path / "saxpy.so", linker="cc")
            module = tvm_ffi.load_module(str(tmp_path / "saxpy.so"))
        else:
            module = library.load()
        function = module.saxpy
    function(2.0, x, y)
    assert y.tolist() == [1, 3, 5, 7]
    with pytest.raises(ValueError, match="Mismatched y.shape"):
        function(2.0, x, y[:3])


def test_a_block_calls_functions_of_objects(cc):
    twice = cc.object(TWICE_C)
    assert tfc.compile(F, tfc.Kernel.host(TWICE, objects=[twice]))(20) == 41
    assert tfc.compile(F, tfc.Kernel.host(TWICE), objects=cc.archive(TWICE_C))(20) == 41
    # the function may be another one of the library
    library = (
        tfc.Library()
        .add(F, tfc.Kernel.host(TWICE))
        .add("twice(n: int64) -> int64", tfc.Kernel.host("{ return 3 * n; }"))
    )
    assert library.load().f(2) == 7
    assert tfc.Library().add(F, tfc.Kernel.host(TWICE)).load(objects=twice).f(2) == 5
    with pytest.raises(tfc.UndefinedSymbolError) as raised:
        tfc.compile(
            "lonely(n: int64) -> int64", tfc.Kernel.host("{ let m = call symbol nobody(n) -> int64; return m; }")
        )
    assert [of.name for of in raised.value.symbols] == ["__tvm_ffi_nobody"]
    with pytest.raises(tfc.KernelError, match="comes with objects, which are linked into a running process alone"):
        tfc.Library().add(F, tfc.Kernel.host(TWICE, objects=twice)).object()


def test_grammar_is_checked_at_once_and_names_when_compiling():
    with pytest.raises(tfc.KernelError) as raised:
        tfc.Kernel.host("{\n  let m = n +;\n  return m ** 2;\n}")
    error = raised.value
    assert [(of.line, of.column, of.span, of.expected, of.got) for of in error.errors] == [
        (2, 14, (15, 16), "a value", "`;`"),
        (3, 13, (29, 30), "a value", "`*`"),
    ]
    assert "    let m = n +;\n               ^" in str(error)
    assert error.details["kind"] == "KernelError" and error.details["errors"][1]["line"] == 3
    assert pickle.loads(pickle.dumps(error)).errors == error.errors
    kernel = tfc.Kernel.host("{\n  let m = k;\n  return n + 1.5;\n}")
    for compiled in (lambda: tfc.compile(F, kernel), tfc.Library().add(F, kernel).object):
        with pytest.raises(tfc.KernelError) as raised:
            compiled()
        assert [(of.path, of.line, of.column) for of in raised.value.errors] == [("f", 2, 11), ("f", 3, 12)]
        assert "    return n + 1.5;\n             ^" in str(raised.value)


def test_programs_are_functions_and_libraries(saxpy, tmp_path):
    program = tfc.program(PROGRAM, objects=saxpy)
    assert [of.name for of in program.signatures] == ["saxpy", "saxpy_twice", "even", "odd"]
    assert program.globals == (("saxpy_twice", "test.saxpy_twice"),)
    assert repr(program) == "<Program of saxpy, saxpy_twice, even, odd>"
    compiled = program.compile()
    x, y = vectors()
    compiled["saxpy_twice"](2.0, x, y)
    assert y.tolist() == [1, 5, 9, 13]
    assert compiled["even"](10) is True and compiled["odd"](10) is False
    assert compiled["saxpy_twice"].__doc__.startswith("y += 2 * a * x.\n\nIn two calls.\n\nsaxpy_twice(")
    with pytest.raises(ValueError, match="Mismatched y.shape") as raised:
        compiled["saxpy_twice"](2.0, x, y[:3])
    lines = traceback.extract_tb(raised.value.__traceback__)
    assert ("model.py", 4, "forward") in [(line.filename, line.lineno, line.name) for line in lines]
    assert tvm_ffi.get_global_func("test.saxpy_twice", allow_missing=True) is None

    module = program.library().load()
    assert module.even(7) is False
    x, y = vectors()
    tvm_ffi.get_global_func("test.saxpy_twice")(2.0, x, y)
    assert y.tolist() == [1, 5, 9, 13]
    path = tmp_path / "program.so"
    program.library(opt_level="full").link(path, linker="cc")
    assert [of.name for of in tfc.functions(path)] == ["even", "odd", "saxpy", "saxpy_twice"]
    program.library().archive(tmp_path / "program.a")
    assert b"saxpy_kernel" in (tmp_path / "program.a").read_bytes()
    assert repr(program.library()) == "<Library of saxpy, saxpy_twice, even, odd, for this machine>"


@pytest.mark.parametrize("made_again", [lambda value: pickle.loads(pickle.dumps(value)), copy.copy, copy.deepcopy])
def test_programs_and_kernels_of_text_are_values(made_again, saxpy, cc):
    program = made_again(tfc.program(PROGRAM, objects=[saxpy]))
    x, y = vectors()
    program.compile()["saxpy"](2.0, x, y)
    assert y.tolist() == [1, 3, 5, 7]
    assert program.signatures[1]._locations["y"] == tfc.SourceLocation("model.py", 4, "forward")
    twice = cc.object(TWICE_C)
    kernel = made_again(tfc.Kernel.host(TWICE, objects=[twice]))
    assert repr(kernel) == f"Kernel.host({TWICE!r}, objects=[<{len(twice)} bytes>])"
    assert tfc.compile(F, kernel)(1) == 3


def test_c_functions_are_in_libraries():
    program = tfc.program("extern half(n: int64) -> int64 { return n // 2; }\nf(n: int64) -> int64 { return n; }")
    assert [of.text for of in program.c_functions] == ["half(n: int64) -> int64"]
    assert list(program.compile()) == ["f"]
    assert b"half" in program.library().object()


def test_mistakes_of_a_program_come_together():
    with pytest.raises(tfc.KernelError) as raised:
        tfc.program('f(x: fp16);\ng(n: int64) { n = ; }\nregister h as "x";')
    assert [(of.line, of.got) for of in raised.value.errors] == [(1, "`fp16`"), (2, "`;`")]
    with pytest.raises(tfc.KernelError) as raised:
        tfc.program("f(n: int64) -> int64 {\n  return m;\n}\ng() -> int64 { }").compile()
    assert [(of.path, of.line) for of in raised.value.errors] == [("f", 2), ("g", 4)]
    with pytest.raises(tfc.KernelError, match="no image is called `gem`"):
        tfc.program("f() { launch gemm image=gem; }", images={"gemm": b".version 8.0\n.target sm_80\n"})


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: tfc.Kernel.host(b"{}"), TypeError, "text: expected a str, got b'{}'"),
        (
            lambda: tfc.Kernel.host("{}", images=[b""]),
            TypeError,
            r"images: expected a mapping of bytes by names, got \[b''\]",
        ),
        (lambda: tfc.Kernel.host("{}", images={1: b""}), TypeError, "images: expected a str, got 1"),
        (
            lambda: tfc.Kernel.host("{}", images={"a": "a.cubin"}),
            TypeError,
            r"images\['a'\]: expected bytes, as `pathlib",
        ),
        (lambda: tfc.Kernel.host("{}", images={"a": b"a"}), tfc.CodegenError, "image `a`: expected a cubin"),
        (lambda: tfc.Kernel.host("{}", objects="a.o"), TypeError, "objects: expected bytes, as"),
        (lambda: tfc.program(None), TypeError, "text: expected a str, got None"),
        (lambda: tfc.program("", images=b""), TypeError, "images: expected a mapping of bytes by names"),
        (lambda: tfc.program("", objects=[1]), TypeError, r"objects\[0\]: expected bytes, got 1"),
        (lambda: tfc.program("").compile(backend=1), TypeError, "backend: expected a str, got 1"),
        (lambda: tfc.program("").compile(backend="gcc"), ValueError, "backend: expected a backend"),
        (lambda: tfc.program("").library(level=1), TypeError, "unexpected keyword argument 'level'"),
    ],
)
def test_wrong_arguments_are_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


class Refused(Exception):
    """An exception of a callback."""


tvm_ffi.error.register_error(Refused)

CALLBACKS = """
@ "model.py":1 "apply"
apply(n: int64, f: Function) -> int64 {
  @ "model.py":2 "apply";
  let doubled = call f(n, 2) -> int64;
  return doubled;
}
tries(n: int64, f: Function) -> int64 {
  try {
    let m = call f(n) -> int64;
    return m;
  } catch e {
    if e.kind == "KeyError" { return -1; }
    if e.kind == "ValueError" { raise RuntimeError("no {} today", n) from e; }
    raise e;
  }
}
"""


def test_errors_of_callbacks_arrive_as_themselves():
    functions = tfc.program(CALLBACKS).compile()
    assert functions["apply"](4, lambda n, scale: scale * n) == 8

    def refuses(n, scale=1):
        raise Refused(f"never {n}")

    for name in ("apply", "tries"):
        with pytest.raises(Refused, match="never 3") as raised:
            functions[name](3, refuses)
        names = [(line.filename, line.lineno, line.name) for line in traceback.extract_tb(raised.value.__traceback__)]
        assert names[-1][2] == "refuses"
        assert (("model.py", 2, "apply") in names) == (name == "apply")
    with pytest.raises(TypeError, match="expected int64, got str"):
        functions["apply"](3, lambda n, scale: "text")

    def raises(kind):
        def f(n):
            raise kind("reason")

        return f

    assert functions["tries"](3, raises(KeyError)) == -1
    with pytest.raises(RuntimeError, match="no 3 today"):
        functions["tries"](3, raises(ValueError))


def resident_kib() -> int:
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS:"))


def test_a_thousand_compilations_are_flat_in_memory():
    def compile_all(count):
        for number in range(count):
            assert tfc.compile(F, tfc.Kernel.host(f"{{ return n + {number}; }}"))(1) == number + 1
            with pytest.raises(tfc.KernelError):
                tfc.Kernel.host("{ return ; ")
            if number % 50 == 0:
                functions = tfc.program(CALLBACKS).compile()
                assert functions["apply"](number, lambda n, scale: scale * n) == 2 * number
        gc.collect()

    compile_all(100)
    before = resident_kib()
    compile_all(1000)
    grown = resident_kib() - before
    assert grown < 4096, f"{grown} KiB more"
