"""Functions in this process, and libraries."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import tvm_ffi

from ._native import encode, function
from .kernel import Kernel, as_list
from .signature import Signature, as_signature

_compile = function("compile")
_object = function("object")
_llvm_ir = function("llvm_ir")
_link = function("link")
_archive = function("archive")
_cache = function("cache")
_cached_library = function("cached_library")


class Cache:
    """Libraries in a folder that threads and processes share.

    A library's key is a hash of all that decides its bytes: the functions, the kernels' objects, the target, the options, and the build of this
    package. A library is compared with its own hash when it is read, and made again if it is broken. No path ever gets other bytes.
    The libraries that were used longest ago go where the folder would hold more than ``max_bytes``.
    """

    def __init__(self, folder: str | os.PathLike[str], max_bytes: int = 1 << 30) -> None:
        self._native = _cache(os.fspath(folder), max_bytes)


def compile(
    signature: Signature | str,
    kernel: Kernel,
    *,
    objects: bytes | Iterable[bytes] = (),
    backend: str | None = None,
    opt_level: str | None = None,
    cache: Cache | None = None,
) -> tvm_ffi.Function:
    """Makes a function of a signature and a kernel in this process.

    The kernel's symbol is looked for in ``objects``, relocatable objects and archives for this machine, then in the process. Code and
    kernel go with the last reference to the function. An undefined symbol is an :class:`UndefinedSymbol`.

    With a ``cache`` the function is one of a library in it, so that no process has to compile it again. Its kernel is a
    :meth:`Kernel.symbol` or a launch.
    """
    if cache is not None:
        signature = as_signature(signature)
        library = Library(backend=backend, opt_level=opt_level).add(signature, kernel)
        return library.load(objects=objects, cache=cache).get_function(signature.name)
    return _compile(as_signature(signature)._native, kernel._native, as_list(objects), backend, opt_level)


class Library:
    """Functions on their way into an object or a shared library.

    ``target`` is a triple, this machine's unless given; ``cpu`` and ``features`` the least CPU that the code has to run on, by the
    backend's names; ``opt_level`` is ``none``, ``speed`` or ``full``. ``system_lib`` is the prefix of a system library, which
    registers its functions when the program that it is linked into starts.
    """

    def __init__(
        self,
        *,
        target: str | None = None,
        backend: str | None = None,
        opt_level: str | None = None,
        cpu: str | None = None,
        features: Iterable[str] = (),
        system_lib: str | None = None,
        carries_modules: bool = False,
    ) -> None:
        self._functions: list[tuple[object, object, str | None]] = []
        self._globals: list[tuple[str, str]] = []
        self._target = target
        self._options: dict[str, Any] = {
            "target": target,
            "backend": backend,
            "opt_level": opt_level,
            "cpu": cpu,
            "features": list(features),
            "system_lib": system_lib,
            "carries_modules": carries_modules,
        }

    def add(self, signature: Signature | str, kernel: Kernel, *, doc: str | None = None) -> Library:
        """Adds a function, and gives the library back."""
        self._functions.append((as_signature(signature)._native, kernel._native, doc))
        return self

    def register_global(self, function: str, name: str) -> Library:
        """Makes a function a global function of that name while the library is loaded, and gives the library back."""
        self._globals.append((function, name))
        return self

    def object(self) -> bytes:
        """The functions as a relocatable object. All mistakes of all kernels are one :class:`KernelError`."""
        return bytes(_object(*self._stated()))

    def llvm_ir(self, *, optimized: bool = False) -> str:
        """The functions in LLVM's IR, as the text of a module for the target, whatever the backend.

        It is the module before LLVM's passes, for a compiler that links it with its kernels and optimises both together; or, ``optimized``, after them.
        """
        return str(_llvm_ir(*self._stated(), optimized))

    def _stated(self) -> tuple[list[list[object]], str]:
        """The functions, and the options."""
        return [list(function) for function in self._functions], encode({**self._options, "globals": self._globals})

    def archive(self, path: str | os.PathLike[str], *, objects: Mapping[str, bytes] | None = None) -> None:
        """Writes the functions, and objects and archives by the names of members, as a static library."""
        members = {Path(path).with_suffix(".o").name: self.object(), **(objects or {})}
        _archive(self._target, [[name, bytes(data)] for name, data in members.items()], os.fspath(path))

    def link(
        self,
        path: str | os.PathLike[str],
        *,
        objects: bytes | Iterable[bytes] = (),
        files: Iterable[str | os.PathLike[str]] = (),
        libraries: Iterable[str] = (),
        library_folders: Iterable[str | os.PathLike[str]] = (),
        allow_undefined: Iterable[str] = (),
        runtime: str | os.PathLike[str] | None = None,
        args: Iterable[str] = (),
        linker: str | None = None,
    ) -> None:
        """Links the functions with objects and archives (``objects`` in memory, ``files`` by their paths) into a shared library.

        ``linker`` is ``"wild"``, which is in this package and needs no toolchain, or ``"cc"``, the C compiler's driver; unless given, wild for
        Linux. Symbols that nobody defines are an :class:`UndefinedSymbol`, unless ``allow_undefined`` has them. The file is written
        wholly or not at all, and never in place: a library that is loaded from the path stays as it is.
        """
        options = self._link_options(
            files=files,
            libraries=libraries,
            library_folders=library_folders,
            allow_undefined=allow_undefined,
            runtime=runtime,
            args=args,
            linker=linker,
        )
        _link([self.object(), *as_list(objects)], os.fspath(path), options)

    def _link_options(self, **options: Any) -> str:
        def plain(value: Any) -> Any:
            if value is None or isinstance(value, str):
                return value
            return os.fspath(value) if isinstance(value, os.PathLike) else [os.fspath(part) for part in value]

        return encode({"target": self._target, **{name: plain(value) for name, value in options.items()}})

    def _load_cached(
        self, cache: Cache, objects: list[bytes], keep_module_alive: bool, options: dict[str, Any]
    ) -> tvm_ffi.Module:
        tries = 10
        while True:
            path = str(_cached_library(cache._native, *self._stated(), objects, self._link_options(**options)))
            try:
                return tvm_ffi.load_module(path, keep_module_alive=keep_module_alive)
            except Exception:
                # another process may have evicted it in between
                tries -= 1
                if tries == 0 or os.path.exists(path):
                    raise

    def load(
        self,
        *,
        objects: bytes | Iterable[bytes] = (),
        keep_module_alive: bool = False,
        cache: Cache | None = None,
        **options: Any,
    ) -> tvm_ffi.Module:
        """The functions as a loaded module of this process, with their metadata and docs. ``options`` are those of :meth:`link`.

        Without a ``cache`` nothing stays on disk. The module is unloaded with its last reference and that of its functions, unless
        ``keep_module_alive``.
        """
        if cache is not None:
            return self._load_cached(cache, as_list(objects), keep_module_alive, options)
        folder = tempfile.mkdtemp(prefix="tvm-ffi-codegen-")
        try:
            # No two libraries of a process may have one path: the system's loader would take the second for the first.
            path = os.path.join(folder, "library.so")
            self.link(path, objects=objects, **options)
            return tvm_ffi.load_module(path, keep_module_alive=keep_module_alive)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
