"""LLVM, which is loaded on first use."""

from __future__ import annotations

import gc
import os
import re
import subprocess
import sys
import textwrap
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest
import tvm_ffi
import tvm_ffi_codegen as tfc

from conftest import SAXPY
from test_compile import check, mapped

#: Adds x to y, and returns its own address.
KERNEL = """
define i64 @kernel(ptr %x, ptr %y, i64 %n) {
entry:
  %some = icmp sgt i64 %n, 0
  br i1 %some, label %loop, label %end
loop:
  %i = phi i64 [0, %entry], [%next, %loop]
  %from = getelementptr float, ptr %x, i64 %i
  %to = getelementptr float, ptr %y, i64 %i
  %a = load float, ptr %from
  %b = load float, ptr %to
  %sum = fadd float %a, %b
  store float %sum, ptr %to
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  ret i64 ptrtoint (ptr @kernel to i64)
}
"""
SIGNATURE = "add(x: Tensor([n], float32), y: Tensor([n], float32)) -> int64"


def machine() -> llvm.TargetMachine:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_triple(llvm.get_process_triple())
    return target.create_target_machine(reloc="pic", codemodel="default")


def by_address() -> tfc.Kernel:
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(KERNEL), machine())
    engine.finalize_object()
    return tfc.Kernel.address(engine.get_function_address("kernel"), keep_alive=engine, returns="value")


def in_every_form(cc) -> dict[str, tfc.Kernel]:
    module = llvm.parse_assembly(KERNEL)
    target = machine()
    module.triple, module.data_layout = target.triple, str(target.target_data)
    object_bytes = target.emit_object(module)
    returns: dict[str, Any] = {"returns": "value"}
    return {
        "object": tfc.Kernel.object(object_bytes, "kernel", **returns),
        "archive": tfc.Kernel.object(cc.archive(object_bytes, "int other;"), "kernel", **returns),
        "bitcode": tfc.Kernel.bitcode(module.as_bitcode(), "kernel", **returns),
        "IR": tfc.Kernel.llvm_ir(str(module), "kernel", **returns),
        "address": by_address(),
    }


@pytest.mark.parametrize("backend", ["cranelift", "llvm"])
def test_one_kernel_in_every_form_is_called_and_unloaded(cc, backend):
    kernels = in_every_form(cc)
    assert len(kernels) == 5
    while kernels:
        form, kernel = kernels.popitem()
        function = tfc.compile(SIGNATURE, kernel, backend=backend)
        x, y = np.arange(5, dtype="float32"), np.ones(5, dtype="float32")
        address = function(x, y)
        assert y.tolist() == [1, 2, 3, 4, 5], form
        with pytest.raises(ValueError, match="Mismatched y.shape"):
            function(x, y[:3])
        assert mapped(address), form
        del function, kernel
        gc.collect()
        assert not mapped(address), form


def test_the_backend_makes_functions_objects_and_libraries(saxpy):
    kernel = tfc.Kernel.symbol("saxpy_kernel")
    check(tfc.compile(SAXPY, kernel, objects=[saxpy], backend="llvm", opt_level="full"))
    library = tfc.Library(backend="llvm").add(SAXPY, kernel)
    check(library.load(objects=[saxpy]).get_function("saxpy"))
    # LLVM writes objects for Windows on AArch64; Cranelift doesn't
    for target in ("aarch64-pc-windows-msvc", "riscv64gc-unknown-linux-gnu", "aarch64-apple-darwin"):
        other = tfc.Library(backend="llvm", target=target).add(SAXPY, kernel).object()
        assert [function["name"] for function in tfc.inspect(other)["functions"]] == ["saxpy"]
    with pytest.raises(tfc.UnsupportedTargetError, match="s390x"):
        tfc.Library(backend="llvm", target="s390x-unknown-linux-gnu").add(SAXPY, kernel).object()
    assert "define" in tfc.explain(SAXPY, stage="llvm", backend="llvm")


def test_a_library_in_the_ir_joins_its_kernels_module(cc, tmp_path):
    library = tfc.Library().add(SIGNATURE, tfc.Kernel.symbol("kernel", returns="value"))
    module = llvm.parse_assembly(library.llvm_ir())
    assert not module.get_function("__tvm_ffi_add").is_declaration
    kernel = llvm.parse_assembly(KERNEL)
    kernel.triple, kernel.data_layout = module.triple, module.data_layout
    module.link_in(kernel)
    assert not module.get_function("kernel").is_declaration
    path = tmp_path / "module.o"
    path.write_bytes(machine().emit_object(module))
    shared = tmp_path / "module.so"
    subprocess.run(["cc", "-shared", str(path), "-o", str(shared), "-lm"], check=True)
    x, y = np.ones(3, "float32"), np.ones(3, "float32")
    assert tvm_ffi.load_module(str(shared)).get_function("add")(x, y) and y.tolist() == [2, 2, 2]
    assert library.llvm_ir(optimized=True) != library.llvm_ir()


def test_what_llvm_refuses_is_an_error(cc):
    def refused(kernel: tfc.Kernel) -> str:
        with pytest.raises(tfc.LinkError) as raised:
            tfc.compile(SIGNATURE, kernel)
        return str(raised.value)

    returns: dict[str, Any] = {"returns": "value"}
    assert ":3:1" in refused(tfc.Kernel.llvm_ir("; text\n\nno IR", "kernel", **returns))
    bitcode = llvm.parse_assembly(KERNEL).as_bitcode()
    assert refused(tfc.Kernel.bitcode(bitcode[: len(bitcode) // 8 * 4], "kernel", **returns))
    assert refused(tfc.Kernel.bitcode(b"no bitcode", "kernel", **returns))
    assert "another type" in refused(tfc.Kernel.llvm_ir("define void @kernel() { ret void }", "kernel", **returns))
    foreign = 'target triple = "aarch64-unknown-linux-gnu"\n' + KERNEL
    assert "expected a module for this machine" in refused(tfc.Kernel.llvm_ir(foreign, "kernel", **returns))
    with pytest.raises(tfc.UndefinedSymbolError, match="doesn't define it; it defines `kernel`") as raised:
        tfc.compile(SIGNATURE, tfc.Kernel.llvm_ir(KERNEL, "nobody", **returns))
    assert [symbol.name for symbol in raised.value.symbols] == ["nobody"]


def test_the_version_is_that_of_the_library():
    assert re.fullmatch(r"22\.1\.\d+", tfc.llvm_version())
    assert "llvm" in tfc.build_info()["backends"]


def run(script: str, **environment: str) -> None:
    """Runs a script in a separate process."""
    start = f"""
    import re
    import numpy as np
    import tvm_ffi_codegen as tfc

    IR = {KERNEL!r}
    SIGNATURE = {SIGNATURE!r}

    def libraries():
        with open("/proc/self/maps") as maps:
            return sorted(set(re.findall(r"\\S*libLLVM\\S*", maps.read())))

    def check(backend=None, kernel=None):
        kernel = tfc.Kernel.llvm_ir(IR, "kernel", returns="value") if kernel is None else kernel
        x, y = np.ones(3, "float32"), np.ones(3, "float32")
        assert tfc.compile(SIGNATURE, kernel, backend=backend)(x, y) and y.tolist() == [2, 2, 2]
    """
    text = textwrap.dedent(start) + textwrap.dedent(script)
    subprocess.run([sys.executable, "-c", text], check=True, env={**os.environ, **environment})


def test_nothing_is_loaded_before_it_is_needed(saxpy):
    script = f"""
    assert libraries() == []
    saxpy = tfc.compile({SAXPY!r}, tfc.Kernel.symbol("saxpy_kernel"), objects={saxpy!r})
    y = np.ones(3, "float32")
    saxpy(2.0, np.ones(3, "float32"), y)
    tfc.Library().add({SAXPY!r}, tfc.Kernel.symbol("saxpy_kernel")).load(objects={saxpy!r})
    kernel = tfc.Kernel.llvm_ir(IR, "kernel", returns="value")
    assert y.tolist() == [3, 3, 3] and libraries() == []
    check(kernel=kernel)
    assert len(libraries()) == 1
    """
    run(script)


def test_without_the_library_the_error_says_what_was_tried(tmp_path):
    none, other = tmp_path / "none.so", tmp_path / "other.so"
    source = tmp_path / "other.c"
    source.write_text("void LLVMGetVersion(unsigned* a, unsigned* b, unsigned* c) { *a = 21; *b = 1; *c = 8; }")
    subprocess.run(["cc", "-shared", "-fPIC", str(source), "-o", str(other)], check=True)
    script = f"""
    import os
    import pytest

    # all but LLVM works
    tfc.compile("f(n: int64)", tfc.Kernel.check_only())(1)
    tfc.Library().add("f(n: int64)", tfc.Kernel.check_only()).load().get_function("f")(1)
    for use in (
        tfc.llvm_version,
        check,
        lambda: check(kernel=tfc.Kernel.bitcode(b"", "kernel", returns="value")),
        lambda: tfc.compile("f()", tfc.Kernel.check_only(), backend="llvm"),
        lambda: tfc.Library(backend="llvm").add("f()", tfc.Kernel.check_only()).object(),
        lambda: tfc.Library().add("f()", tfc.Kernel.check_only()).llvm_ir(),
        lambda: tfc.explain("f()", stage="asm", backend="llvm"),
        lambda: tfc.compile(
            "f()", tfc.Kernel.check_only(), backend="llvm", cache=tfc.Cache({str(tmp_path / "cache")!r})
        ),
    ):
        with pytest.raises(tfc.LlvmNotFoundError) as raised:
            use()
        for text in ("LLVM 22.1", "libllvm22", "TVM_FFI_CODEGEN_LIBLLVM", {f"{none}: cannot open"!r}, "No such file"):
            assert text in str(raised.value), raised.value
        assert raised.value.details["kind"] == "LlvmNotFoundError"
    for file, problem in (({str(other)!r}, "it is LLVM 21.1.8"), ("libm.so.6", "it is not LLVM")):
        os.environ["TVM_FFI_CODEGEN_LIBLLVM"] = file
        with pytest.raises(tfc.LlvmNotFoundError, match=problem):
            tfc.llvm_version()
    # without a wrong name, LLVM is found
    del os.environ["TVM_FFI_CODEGEN_LIBLLVM"]
    check()
    check("llvm")
    """
    run(script, TVM_FFI_CODEGEN_LIBLLVM=str(none))


def test_other_llvms_of_the_process_stay_apart(tmp_path):
    # a library that exports LLVM's C interface to the whole process, and crashes if it is called
    command = ["nm", "-D", "--defined-only", library_path()]
    names = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    functions = sorted(set(re.findall(r" T (LLVM\w+)", names)))
    assert len(functions) > 1000
    source, decoy = tmp_path / "decoy.c", tmp_path / "decoy.so"
    source.write_text("\n".join(f"void {name}(void) {{ __builtin_trap(); }}" for name in functions))
    subprocess.run(["cc", "-shared", "-fPIC", str(source), "-o", str(decoy)], check=True)
    script = f"""
    import ctypes
    import os
    import sys

    ctypes.CDLL({str(decoy)!r}, mode=ctypes.RTLD_GLOBAL)
    sys.setdlopenflags(os.RTLD_NOW | os.RTLD_GLOBAL)
    import triton._C.libtriton
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(IR), target)
    engine.finalize_object()
    for _ in range(2):
        check()
        check("llvm")
        check(kernel=tfc.Kernel.address(engine.get_function_address("kernel"), keep_alive=engine, returns="value"))
        assert target.emit_object(llvm.parse_assembly(IR))
    """
    run(script)


def library_path() -> str:
    """The path of the LLVM that is loaded."""
    tfc.llvm_version()
    with open("/proc/self/maps") as maps:
        (path,) = set(re.findall(r"\S*libLLVM\S*", maps.read()))
    return path


def test_threads_load_it_once():
    script = """
    import threading

    errors = []

    def work(number):
        try:
            check("llvm" if number % 2 else None)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not errors and len(libraries()) == 1, errors
    """
    run(script)
