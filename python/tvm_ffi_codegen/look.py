"""The build, the contents of binaries, and the stages of a compilation."""

from __future__ import annotations

import os
from html import escape
from typing import Any, Callable

from . import _check
from ._native import decode, function
from .kernel import Kernel, as_kernel
from .signature import Signature, as_signature

_build = function("build")
_inspect = function("inspect")
_inspect_bytes = function("inspect_bytes")
_explain = function("explain")
_llvm_version = function("llvm_version")
_install_cpu_allocator = function("install_cpu_allocator")


def build_info() -> dict[str, Any]:
    """Describes this build: ``version``, ``build_id``, ``target``, ``backends`` and ``linkers``, defaults first.

    The build id is the version with a hash of the sources. Use it as a key if you store code that this package made.
    """
    info: dict[str, Any] = decode(_build())
    return info


def llvm_version() -> str:
    """The version of LLVM, such as ``22.1.8``.

    The package doesn't include LLVM. ``libLLVM.so.22.1`` is loaded on first use: by the backend ``llvm``, a kernel in
    LLVM's IR, or this function. To use another file, set the environment variable ``TVM_FFI_CODEGEN_LIBLLVM``. If LLVM
    is not found, the error is :class:`LlvmNotFoundError`.
    """
    return str(_llvm_version())


def install_cpu_allocator() -> None:
    """Installs an allocator of CPU tensors in the process.

    A function that returns a tensor takes its memory from the process's allocator. A framework such as PyTorch sets one
    while its tensors are passed; NumPy and JAX don't. Without an allocator such a function fails with an error that
    names this function; call it once.
    """
    _install_cpu_allocator()


def inspect(binary: str | os.PathLike[str] | bytes) -> dict[str, Any]:
    """The contents of an object or shared library of any format. ``binary`` is its path or its bytes. No code of it
    runs.

    The dictionary has ``format``, ``architecture``, ``linked``, ``functions`` (each with ``name``, ``signature``,
    ``metadata`` and ``doc``), ``modules``, ``needed_symbols``, ``needed_tvm_ffi`` (the min version of
    ``tvm_ffi`` that has these symbols, or None) and ``needed_libraries``, as ``tvm-ffi-codegen inspect --json`` prints
    them.
    """
    if isinstance(binary, (bytes, bytearray, memoryview)):
        contents: dict[str, Any] = decode(_inspect_bytes(bytes(binary), "the bytes"))
    else:
        contents = decode(_inspect(_check.path("binary", binary)))
    return contents


def explain(
    signature: Signature | str,
    kernel: Kernel | None = None,
    *,
    stage: str = "ir",
    backend: str | None = None,
    opt_level: str | None = None,
) -> Explanation:
    """The text of a function at a stage of its compilation: ``ir``, ``clif`` or ``llvm`` (the backend's own), ``asm``,
    ``header``, ``launch``.

    The stage ``html`` is a page with all stages side by side; notebooks show this page for every stage. Without a
    kernel the function only checks its arguments. ``backend`` and ``opt_level`` are those of :class:`Library`.
    """
    signature = as_signature(signature)
    kernel = Kernel.check_only() if kernel is None else as_kernel("kernel", kernel)
    backend, opt_level = _check.optional_text("backend", backend), _check.optional_text("opt_level", opt_level)

    def text(stage: str) -> str:
        return str(_explain(signature._native, kernel._native, stage, backend, opt_level))

    return Explanation._of(text(_check.text("stage", stage)), lambda: text("html"))


class Explanation(str):
    """The text of a stage. Notebooks show it as a page with all stages side by side."""

    _html: Callable[[], str]

    @classmethod
    def _of(cls, text: str, page: Callable[[], str]) -> Explanation:
        explanation = cls(text)
        explanation._html = page
        return explanation

    def to_html(self) -> str:
        """The page with all stages side by side: one file that loads no others."""
        return self._html()

    def _repr_html_(self) -> str:
        # a separate document, so its styles and script don't mix with the notebook's
        page = escape(self.to_html(), quote=True)
        return (
            f'<iframe srcdoc="{page}" sandbox="allow-scripts" style="width: 100%; height: 40rem; border: 0"></iframe>'
        )
