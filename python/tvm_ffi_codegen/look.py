"""The build, the contents of binaries, and the stages of a compilation."""

from __future__ import annotations

import os
from typing import Any

from ._native import decode, function
from .kernel import Kernel
from .signature import Signature, as_signature

_build = function("build")
_inspect = function("inspect")
_inspect_bytes = function("inspect_bytes")
_explain = function("explain")
_install_cpu_allocator = function("install_cpu_allocator")


def build() -> dict[str, Any]:
    """What this build has: ``version``, ``build_id``, ``target``, ``backends`` and ``linkers``, the default ones first.

    The build id is that of the sources: a key for what a compiler keeps of this package's code.
    """
    return decode(_build())


def install_cpu_allocator() -> None:
    """Gives the process an allocator of tensors on the CPU.

    A function that returns a tensor takes its memory from the process's allocator. A framework such as PyTorch sets one while its tensors
    are passed; with NumPy and JAX there is none, and such a function fails, until this is called once.
    """
    _install_cpu_allocator()


def inspect(binary: str | os.PathLike[str] | bytes) -> dict[str, Any]:
    """The contents of an object or shared library of any format, by its path or as bytes. Nothing of it is run.

    The dictionary has ``format``, ``architecture``, ``linked``, ``functions`` (each with ``name``, ``signature``, ``metadata``, ``doc``),
    ``modules``, ``needed_symbols`` and ``needed_libraries``, as ``tvm-ffi-codegen inspect --json`` writes them.
    """
    if isinstance(binary, (bytes, bytearray, memoryview)):
        return decode(_inspect_bytes(bytes(binary), "the bytes"))
    return decode(_inspect(os.fspath(binary)))


def explain(
    signature: Signature | str,
    kernel: Kernel | None = None,
    *,
    stage: str = "ir",
    backend: str | None = None,
    opt_level: str | None = None,
) -> str:
    """The text of a function at a stage of its compilation: ``ir``, ``clif`` or ``llvm`` (the backend's own), ``asm``, ``header``, ``launch``.

    Without a kernel the function only checks its arguments.
    """
    signature = as_signature(signature)
    kernel = Kernel.check_only() if kernel is None else kernel
    return str(_explain(signature._native, kernel._native, stage, backend, opt_level))
