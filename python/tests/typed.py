"""A user's program whose types mypy and pyright check. No test runs it.

Each ``assert_type`` fails in a checker if a public annotation is lost or becomes ``Any``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

import tvm_ffi
import tvm_ffi_codegen as tfc

if TYPE_CHECKING:
    from typing_extensions import assert_type

SAXPY = "saxpy(a: float32, x: Tensor([n], float32), y: Tensor([n], float32))"


@tfc.specialize("pick(n: int64) -> Any", keys=["n % 2 == 0"], max_entries=8)
def pick(key: tfc.Key) -> tuple[str, tfc.Kernel]:
    word = "even" if key["n % 2 == 0"] else "odd"
    return "pick(n: int64) -> Any", tfc.Kernel.host(f'{{ return "{word}"; }}')


def compiled(objects: bytes, address: int) -> None:
    signature = tfc.Signature(SAXPY)
    assert_type(signature.text, str)
    assert_type(signature.returns, "str | None")
    assert_type(signature.arity, "tuple[int, int]")
    assert_type(signature.parameters, "list[tfc.Parameter]")
    kernel = tfc.Kernel.object(objects, "saxpy_kernel", symbols={"helper": address})
    assert_type(kernel, tfc.Kernel)
    assert_type(kernel.header(signature), str)
    function = tfc.compile(signature, kernel, objects=[objects], opt_level="full")
    assert_type(function, tfc.CompiledFunction)
    assert_type(function.signature, tfc.Signature)
    assert_type(tfc.python_callable(function), "Callable[..., Any]")


def linked(folder: str) -> tvm_ffi.Module:
    library = tfc.Library(target="aarch64-unknown-linux-gnu").add(SAXPY, tfc.Kernel.symbol("saxpy_kernel"))
    assert_type(library, tfc.Library)
    assert_type(library.object(), bytes)
    library.link(f"{folder}/saxpy.so", files=[f"{folder}/saxpy.o"], linker="wild")
    return library.load(cache=tfc.Cache(folder))


def dispatched() -> None:
    assert_type(pick, tfc.Dispatch)
    assert_type(pick.entries(), "dict[tfc.Key, tvm_ffi.Function]")
    assert_type(pick.stats(), "dict[str, int]")
    pick.prewarm([True, {"n % 2 == 0": False}])
    assert_type(pick.library(backend="cranelift"), tfc.Library)
    pick.library(bakend="cranelift")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    pick.export("pick.so", linker=1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    pick.library().load(files=["a.o"], cache=None)


def failed(text: str) -> list[str]:
    try:
        tfc.Signature(text)
    except tfc.SignatureError as error:
        assert_type(error.details, "dict[str, Any]")
        assert_type(error.errors, "list[tfc.ErrorDetail]")
        return [f"{each.line or 1}: {each.message}" for each in error.errors]
    return []
