"""Kernels in C++ for devices, compiled in this process. The modules ``cuda`` and ``hip`` know the compilers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from types import SimpleNamespace
from typing import Any, NamedTuple

import tvm_ffi

from . import _check
from ._native import decode, encode, function
from .compiled import CompiledFunction
from .kernel import Kernel
from .library import Cache, Library
from .library import compile as compile_function
from .signature import Signature

_launched_signature = function("launched_signature")
_launch_with_entry = function("launch_with_entry")


class CompiledSource(NamedTuple):
    """The result of :func:`tvm_ffi_codegen.cuda.compile` and :func:`tvm_ffi_codegen.hip.compile`."""

    #: The images, one for each architecture.
    images: list[bytes]
    #: The names in the images of the kernels that were stated, by these.
    entries: dict[str, str]
    #: The compiler's log. Empty without warnings.
    log: str


def compile(
    native: Callable[..., Any],
    compiler: str | None,
    source: str,
    archs: Iterable[str],
    options: Iterable[str],
    kernels: Iterable[str],
    headers: Mapping[str, str] | None,
    file: str,
) -> CompiledSource:
    """Compiles source with the native library's function for a compiler, and the compiler's file."""
    kernels = _check.texts("kernels", kernels)
    headers = {} if headers is None else dict(_check.mapping("headers", headers, "of texts by names"))
    stated = {
        "archs": _check.texts("archs", archs),
        "options": _check.texts("options", options),
        "kernels": kernels,
        "headers": {_check.text("headers", name): _check.text("headers", text) for name, text in headers.items()},
        "file": _check.text("file", file),
    }
    images, result = native(compiler, _check.text("source", source), encode(stated))
    result = decode(result)
    return CompiledSource(list(map(bytes, images)), dict(zip(kernels, result["entries"])), result["log"])


def load(
    functions: str | Iterable[str],
    compiled: Callable[[list[str]], CompiledSource],
    key: Callable[[], list[Any]],
    cache: Cache | None,
    backend: str | None,
    opt_level: str | None,
) -> SimpleNamespace:
    """Functions that launch kernels of a source, as attributes.

    ``compiled`` compiles the source with the kernels of these names. ``key`` is all that decides what it returns.
    """
    listed = [functions] if isinstance(functions, str) else _check.texts("functions", functions)
    launched = [_Launched(text) for text in listed]
    kernels = list(dict.fromkeys(of.entry for of in launched))
    if cache is None:
        made = compiled(kernels)
        loaded = [
            compile_function(of.signature, of.kernel(made), backend=backend, opt_level=opt_level) for of in launched
        ]
        return SimpleNamespace(**{of.signature.name: function for of, function in zip(launched, loaded)})
    parts = ["source", encode([*key(), listed, backend, opt_level])]
    cache = _check.instance("cache", cache, Cache, "a Cache")
    module = cache._read(parts, lambda path: tvm_ffi.load_module(path, keep_module_alive=False))
    if module is None:
        made, library = compiled(kernels), Library(backend=backend, opt_level=opt_level)
        for of in launched:
            library.add(of.signature, of.kernel(made))
        module = library._load_cached(cache, [], False, {}, parts)
    signatures = [of.signature for of in launched]
    return SimpleNamespace(
        **{of.name: CompiledFunction._of(module.get_function(of.name), of, None) for of in signatures}
    )


def version(file: str | None) -> list[Any]:
    """Tells apart the versions of a compiler by its file. The machine's own compiler counts as one version."""
    if file is None:
        return []
    status = os.stat(file)
    return [os.path.realpath(file), status.st_size, status.st_mtime_ns]


class _Launched:
    """A signature with a launch that names its kernel as C++ does."""

    def __init__(self, text: str) -> None:
        signature, self._launch, entry = _launched_signature(text)
        self.signature, self.entry = Signature(str(signature)), str(entry)

    def kernel(self, compiled: CompiledSource) -> Kernel:
        launch = _launch_with_entry(self._launch, compiled.entries[self.entry])
        return Kernel.launch(str(launch), compiled.images)
