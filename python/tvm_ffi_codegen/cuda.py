"""Kernels in CUDA C++, compiled in this process by NVIDIA's NVRTC: without nvcc, C++ compiler and device.

NVRTC is a package of PyPI (``nvidia-cuda-nvrtc-cu12``, or ``nvidia-cuda-nvrtc`` for CUDA 13), or the machine's.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

from . import _check
from ._native import decode, encode, function
from .kernel import Kernel
from .library import compile as compile_function
from .signature import Signature

__all__ = ["CompiledSource", "capabilities", "compile", "load_inline"]

_cuda_compile = function("cuda_compile")
_cuda_capabilities = function("cuda_capabilities")
_launched_signature = function("launched_signature")
_launch_with_entry = function("launch_with_entry")

#: Where NVIDIA's packages have the library, from the newest version on.
_PACKAGES = [("nvidia.cu13", "13"), ("nvidia.cuda_nvrtc", "12")]


class CompiledSource(NamedTuple):
    """The result of :func:`compile`."""

    #: The images, one for each architecture.
    images: list[bytes]
    #: The names in the images of the kernels that were stated, by these.
    entries: dict[str, str]
    #: The compiler's log. Empty without warnings.
    log: str


def _nvrtc(stated: object) -> str | None:
    """The file of NVRTC: the stated one, or that of an installed package; None for the machine's."""
    if stated is not None:
        return _check.path("nvrtc", stated)
    for package, version in _PACKAGES:
        try:
            found = importlib.util.find_spec(package)
        except ModuleNotFoundError:
            continue
        file = f"bin/nvrtc64_{version}0_0.dll" if sys.platform == "win32" else f"lib/libnvrtc.so.{version}"
        for folder in found.submodule_search_locations or () if found else ():
            if (path := Path(folder) / file).exists():
                return str(path)
    return None


def capabilities(*, nvrtc: str | None = None) -> list[int]:
    """The compute capabilities that NVRTC compiles for: 90 for ``sm_90`` and ``compute_90``."""
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
    """Compiles CUDA C++ for architectures: ``["sm_80", "sm_90a"]`` for machine code, ``["compute_80"]`` for PTX.

    ``options`` are NVRTC's: ``-DN=16``, ``--use_fast_math``. ``kernels`` are kernels as C++ names them, such as
    ``scale<float>``; templates are instantiated. Kernels that are ``extern "C"`` needn't be stated. ``headers`` maps
    names that the source includes to texts. ``file`` is the source's name in messages. ``nvrtc`` is the library's file;
    the default is that of an installed package of NVIDIA's, or the machine's.

    Mistakes in the source are one :class:`CodegenError` with the compiler's log.
    """
    kernels = _check.texts("kernels", kernels)
    headers = {} if headers is None else dict(_check.mapping("headers", headers, "of texts by names"))
    stated = {
        "archs": _check.texts("archs", archs),
        "options": _check.texts("options", options),
        "kernels": kernels,
        "headers": {_check.text("headers", name): _check.text("headers", text) for name, text in headers.items()},
        "file": _check.text("file", file),
    }
    images, result = _cuda_compile(_nvrtc(nvrtc), _check.text("source", source), encode(stated))
    result = decode(result)
    return CompiledSource(list(map(bytes, images)), dict(zip(kernels, result["entries"])), result["log"])


def load_inline(
    source: str,
    functions: str | Iterable[str],
    archs: Iterable[str] | None = None,
    options: Iterable[str] = (),
    *,
    headers: Mapping[str, str] | None = None,
    file: str = "kernels.cu",
    nvrtc: str | None = None,
    **compile_options: Any,
) -> SimpleNamespace:
    """Compiles CUDA C++ and returns functions that launch its kernels, as attributes.

    Each of ``functions`` is a signature and a launch: ``scale(x: Tensor([n], float32, device="cuda"), by: float32) @
    launch scale grid=ceil_div(n, 256) block=256``. The launch names a kernel as C++ does: ``lib::sum``, or in quotes
    ``"scale<float>"``. ``compile_options`` are those of :func:`tvm_ffi_codegen.compile`, the others those of
    :func:`compile`. Without ``archs`` it compiles PTX for the oldest architecture that NVRTC knows, which the driver
    compiles for each device.
    """
    if archs is None:
        archs = [f"compute_{min(capabilities(nvrtc=nvrtc))}"]
    listed = [functions] if isinstance(functions, str) else _check.texts("functions", functions)
    parts = [_launched_signature(text) for text in listed]
    kernels = list(dict.fromkeys(str(entry) for _, _, entry in parts))
    compiled = compile(source, archs, options, kernels=kernels, headers=headers, file=file, nvrtc=nvrtc)
    loaded = {}
    for signature, launch, entry in parts:
        launch = _launch_with_entry(launch, compiled.entries[str(entry)])
        signature = Signature(str(signature))
        kernel = Kernel.launch(str(launch), compiled.images)
        loaded[signature.name] = compile_function(signature, kernel, **compile_options)
    return SimpleNamespace(**loaded)
