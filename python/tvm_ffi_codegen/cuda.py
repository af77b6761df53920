"""Kernels in CUDA C++, compiled in this process by NVIDIA's NVRTC: without nvcc, C++ compiler and device.

NVRTC is a package of PyPI (``nvidia-cuda-nvrtc-cu12``, or ``nvidia-cuda-nvrtc`` for CUDA 13), or the machine's.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import SimpleNamespace

from . import _check, _source
from ._native import function
from ._source import CompiledSource
from .library import Cache

__all__ = ["CompiledSource", "capabilities", "compile", "load_inline"]

_cuda_compile = function("cuda_compile")
_cuda_capabilities = function("cuda_capabilities")

#: Where NVIDIA's packages have the library, from the newest version on.
_PACKAGES = [("nvidia.cu13", "13"), ("nvidia.cuda_nvrtc", "12")]


def _nvrtc(stated: object) -> str | None:
    """The file of NVRTC: the stated one, or that of an installed package; None for the machine's."""
    if stated is not None:
        return _check.path("nvrtc", stated)
    for package, version in _PACKAGES:
        file = f"bin/nvrtc64_{version}0_0.dll" if sys.platform == "win32" else f"lib/libnvrtc.so.{version}"
        for folder in package_folders(package):
            if (path := folder / file).exists():
                return str(path)
    return None


def package_folders(name: str) -> list[Path]:
    """The directories of an installed package; none if it isn't installed."""
    try:
        found = importlib.util.find_spec(name)
    except ModuleNotFoundError:
        return []
    return [Path(folder) for folder in found.submodule_search_locations or ()] if found else []


def capabilities(*, nvrtc: str | None = None) -> list[int]:
    """The compute capabilities that NVRTC compiles for: 90 for ``sm_90`` and ``compute_90``. ``nvrtc`` is its file, as
    in :func:`compile`.
    """
    return list(_cuda_capabilities(_nvrtc(nvrtc)))


def compile(
    source: str,
    archs: Iterable[str],
    options: Iterable[str] = (),
    *,
    kernels: Iterable[str] = (),
    headers: Mapping[str, str] | None = None,
    file: str = "kernels.cu",
    nvrtc: str | None = None,
) -> CompiledSource:
    """Compiles CUDA C++. ``archs`` are ``["sm_80", "sm_90a"]`` for machine code, and ``["compute_80"]`` for PTX.

    ``options`` are NVRTC's: ``-DN=16``, ``--use_fast_math``. ``kernels`` are kernels as C++ names them, such as
    ``scale<float>``; templates are instantiated. Kernels that are ``extern "C"`` needn't be stated. ``headers`` maps
    names that the source includes to texts. ``file`` is the source's name in messages. ``nvrtc`` is the library's file;
    the default is that of an installed package of NVIDIA's, or the machine's.

    Mistakes in the source are one :class:`CodegenError` with the compiler's log.
    """
    return _source.compile(_cuda_compile, _nvrtc(nvrtc), source, archs, options, kernels, headers, file)


def load_inline(
    source: str,
    functions: str | Iterable[str],
    archs: Iterable[str] | None = None,
    options: Iterable[str] = (),
    *,
    headers: Mapping[str, str] | None = None,
    file: str = "kernels.cu",
    nvrtc: str | None = None,
    cache: Cache | None = None,
    backend: str | None = None,
    opt_level: str | None = None,
) -> SimpleNamespace:
    """Compiles CUDA C++ and returns functions that launch its kernels, as attributes.

    Each of ``functions`` is a signature and a launch: ``scale(x: Tensor([n], float32, device="cuda"), by: float32) @
    launch scale grid=ceil_div(n, 256) block=256``. The launch names a kernel as C++ does: ``lib::sum``, or in quotes
    ``"scale<float>"``. Without ``archs`` it compiles PTX for the oldest architecture that NVRTC knows, which the driver
    compiles for each device. ``backend`` and ``opt_level`` are those of :func:`tvm_ffi_codegen.compile`, the others
    those of :func:`compile`.

    With a ``cache`` a later process compiles nothing. The cache knows the arguments and the file of NVRTC. It doesn't
    know the files that the source includes from directories of ``-I``, nor the version of the machine's NVRTC.
    """
    source, options, nvrtc = _check.text("source", source), _check.texts("options", options), _nvrtc(nvrtc)
    stated = None if archs is None else _check.texts("archs", archs)

    def compiled(kernels: list[str]) -> CompiledSource:
        known = [f"compute_{min(capabilities(nvrtc=nvrtc))}"] if stated is None else stated
        return compile(source, known, options, kernels=kernels, headers=headers, file=file, nvrtc=nvrtc)

    def key() -> list[object]:
        return ["cuda", *_source.version(nvrtc), source, stated, options, headers, file]

    return _source.load(functions, compiled, key, cache, backend, opt_level)
