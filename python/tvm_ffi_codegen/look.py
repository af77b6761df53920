"""What there is, and what becomes of it."""

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


def build() -> dict[str, Any]:
    """What this build has: ``version``, ``target``, ``backends`` and ``linkers``, the default ones first."""
    return decode(_build())


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
    """What a function becomes at a stage: ``ir``, ``clif`` or ``llvm`` (the backend's own), ``asm``, ``header``, ``launch``.

    Without a kernel the function only checks its arguments.
    """
    signature = as_signature(signature)
    kernel = Kernel.check_only() if kernel is None else kernel
    return str(_explain(signature._native, kernel._native, stage, backend, opt_level))
