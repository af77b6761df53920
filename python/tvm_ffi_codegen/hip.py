"""Kernels in HIP C++, compiled in this process with AMD's hiprtc: without hipcc, C++ compiler and device.

hiprtc is a library of ROCm. The launches of these kernels have never run on a device.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import SimpleNamespace

from . import _check, _source
from ._native import function
from ._source import CompiledSource
from .library import Cache

__all__ = ["CompiledSource", "compile", "load_inline"]

_hip_compile = function("hip_compile")


def compile(
    source: str,
    archs: Iterable[str],
    options: Iterable[str] = (),
    *,
    kernels: Iterable[str] = (),
    headers: Mapping[str, str] | None = None,
    file: str = "kernels.hip",
    hiprtc: str | None = None,
) -> CompiledSource:
    """Compiles HIP C++ to code objects. ``archs`` are architectures: ``["gfx942", "gfx90a:xnack-"]``.

    ``hiprtc`` is the library's file; the default is the machine's. All else is as in
    :func:`tvm_ffi_codegen.cuda.compile`.
    """
    hiprtc = None if hiprtc is None else _check.path("hiprtc", hiprtc)
    return _source.compile(_hip_compile, hiprtc, source, archs, options, kernels, headers, file)


def load_inline(
    source: str,
    functions: str | Iterable[str],
    archs: Iterable[str],
    options: Iterable[str] = (),
    *,
    headers: Mapping[str, str] | None = None,
    file: str = "kernels.hip",
    hiprtc: str | None = None,
    cache: Cache | None = None,
    backend: str | None = None,
    opt_level: str | None = None,
) -> SimpleNamespace:
    """Compiles HIP C++ and returns functions that launch its kernels, as attributes.

    ``functions`` are as in :func:`tvm_ffi_codegen.cuda.load_inline`, with tensors on ``device="rocm"``, and so are
    ``cache``, ``backend`` and ``opt_level``. ``archs``, ``options``, ``headers``, ``file`` and ``hiprtc`` are those of
    :func:`compile`.
    """
    source, options = _check.text("source", source), _check.texts("options", options)
    stated = _check.texts("archs", archs)
    hiprtc = None if hiprtc is None else _check.path("hiprtc", hiprtc)

    def compiled(kernels: list[str]) -> CompiledSource:
        return compile(source, stated, options, kernels=kernels, headers=headers, file=file, hiprtc=hiprtc)

    def key() -> list[object]:
        return ["hip", *_source.version(hiprtc), source, stated, options, headers, file]

    return _source.load(functions, compiled, key, cache, backend, opt_level)
