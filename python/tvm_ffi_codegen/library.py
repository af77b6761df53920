"""Compiles functions in this process, and makes libraries of functions."""

from __future__ import annotations

import os
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import tvm_ffi

from . import _check
from ._native import encode, function
from .compiled import CompiledFunction
from .kernel import Address, Kernel, as_kernel
from .signature import Signature, as_signature

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._options import LinkOptions

_compile = function("compile")
_object = function("object")
_load = function("load")
_llvm_ir = function("llvm_ir")
_link = function("link")
_archive = function("archive")
_cache = function("cache")
_cache_find = function("cache_find")
_cached_library = function("cached_library")


T = TypeVar("T")


class Cache:
    """A directory of libraries that threads and processes share. ``folder`` is its path.

    A library's key is a hash of everything that decides its bytes: the functions, the kernels' objects, the target, the
    options, and the build of this package. Each library is checked against its own hash when it is read, and rebuilt if
    it is corrupt. The bytes at a path never change. When the directory would exceed ``max_bytes``, the least recently
    used libraries are deleted.

    The directory belongs to this user alone; the cache creates it with mode 0700. A directory that another user can
    write to is an error, as is one that is neither empty nor a cache. A read-only or full directory stores nothing:
    each library is then rebuilt every time, and one warning says so.
    """

    def __init__(self, folder: str | os.PathLike[str], max_bytes: int = 1 << 30) -> None:
        self._folder, self._max_bytes = _check.path("folder", folder), _check.integer("max_bytes", max_bytes)
        self._native = _cache(self._folder, self._max_bytes)
        self._has_warned = False

    def __repr__(self) -> str:
        return f"Cache({self._folder!r}, max_bytes={self._max_bytes})"

    def _find(self, key: list[str]) -> str | None:
        """The path of the library that was stored under a key of its own, or None."""
        path = _cache_find(self._native, key)
        return None if path is None else str(path)

    def _read(self, key: list[str], read: Callable[[str], T]) -> T | None:
        """The result of ``read`` for the path of the library that was stored under a key of its own, or None."""
        path = self._find(key)
        if path is None:
            return None
        try:
            return read(path)
        except Exception:
            # another process may have evicted the library in between
            if os.path.exists(path):
                raise
            return None

    def _warn(self, problem: str) -> None:
        if not self._has_warned:
            self._has_warned = True
            message = f"the cache {self._folder} can't take a library, which is made without it: {problem}"
            warnings.warn(message, RuntimeWarning, stacklevel=4)


#: The check for each option of a link.
_LINK_OPTIONS: dict[str, Any] = {
    "files": _check.paths,
    "libraries": _check.texts,
    "library_folders": _check.paths,
    "allow_undefined": _check.texts,
    "runtime": lambda what, value: None if value is None else _check.path(what, value),
    "args": _check.texts,
    "linker": _check.optional_text,
}


def compile(
    signature: Signature | str,
    kernel: Kernel,
    *,
    objects: bytes | Iterable[bytes] = (),
    backend: str | None = None,
    opt_level: str | None = None,
    cache: Cache | None = None,
    symbols: Mapping[str, Address] | None = None,
    doc: str | None = None,
) -> CompiledFunction:
    """Compiles a function from a signature and a kernel in this process. Returns a ``tvm_ffi.Function`` with
    ``__signature__``, ``__name__``, and ``doc`` as ``__doc__``. To call it with keywords, use
    :func:`python_callable`.

    The kernel's symbol is looked up in ``objects`` (relocatable objects and archives for this machine), then in the
    process. Code and kernel are freed with the last reference to the function. An undefined symbol is an
    :class:`UndefinedSymbolError`.

    ``symbols`` maps names in the objects to addresses, as in :class:`Kernel`. They take precedence over the symbols of
    the process.

    With a ``cache`` the function is part of a cached library, so no other process has to compile it again. Its kernel
    must then be a :meth:`Kernel.symbol` or a launch, since addresses of this process are meaningless in others.

    ``backend`` and ``opt_level`` are those of :class:`Library`.
    """
    signature, kernel, doc = as_signature(signature), as_kernel("kernel", kernel), _check.optional_text("doc", doc)
    if symbols:
        if cache is not None:
            raise ValueError(
                "symbols: expected none with a cache, whose libraries are for every process: link what defines them"
            )
        kernel = kernel._with_symbols(symbols)
    if cache is not None:
        library = Library(backend=backend, opt_level=opt_level).add(signature, kernel)
        function = library.load(objects=objects, cache=cache).get_function(signature.name)
    else:
        backend, opt_level = _check.optional_text("backend", backend), _check.optional_text("opt_level", opt_level)
        function = _compile(
            signature._native, kernel._native, _check.several_data("objects", objects), backend, opt_level
        )
    return CompiledFunction._of(function, signature, doc)


class Library:
    """Functions to be written to an object or a shared library.

    ``target`` is a triple, by default this machine's. ``backend`` is ``cranelift`` or ``llvm``, by default the first
    that :func:`build_info` lists. ``cpu`` is the minimum CPU for the code, in the backend's names. ``features`` are
    features that this CPU has for certain: ``+avx2`` for LLVM, ``has_avx2`` for Cranelift. ``opt_level`` is ``none``,
    ``speed`` (the default) or ``full``. ``system_lib`` is the prefix of a system library: link it into a program, and
    it registers its functions when the program starts. ``carries_modules`` states that this program
    also contains modules of the system library.
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
        self._functions: list[tuple[Signature, Kernel, str | None]] = []
        self._globals: list[tuple[str, str]] = []
        #: Programs of host text, each with the names of its functions, and their objects.
        self._programs: list[tuple[object, list[str]]] = []
        self._objects: list[bytes] = []
        self._target = _check.optional_text("target", target)
        self._options: dict[str, Any] = {
            "target": self._target,
            "backend": _check.optional_text("backend", backend),
            "opt_level": _check.optional_text("opt_level", opt_level),
            "cpu": _check.optional_text("cpu", cpu),
            "features": _check.texts("features", features),
            "system_lib": _check.optional_text("system_lib", system_lib),
            "carries_modules": bool(carries_modules),
        }

    def __repr__(self) -> str:
        names = [signature.name for signature, _, _ in self._functions]
        names += [name for _, of_program in self._programs for name in of_program]
        return f"<Library of {', '.join(names) or 'no functions'}, for {self._target or 'this machine'}>"

    def add(self, signature: Signature | str, kernel: Kernel, *, doc: str | None = None) -> Library:
        """Adds a function with its ``kernel`` and its documentation ``doc``, and returns the library."""
        self._functions.append((as_signature(signature), as_kernel("kernel", kernel), _check.optional_text("doc", doc)))
        return self

    def register_global(self, function: str, name: str) -> Library:
        """Registers a function of the library under the global ``name`` while the library is loaded, and returns the
        library.
        """
        self._globals.append((_check.text("function", function), _check.text("name", name)))
        return self

    def _add_program(self, program: object, names: list[str], objects: list[bytes]) -> Library:
        """Adds a program of host text as the native library has it. Links and loads of the library get its objects."""
        self._programs.append((program, names))
        return self._add_objects(objects)

    def _add_objects(self, objects: list[bytes]) -> Library:
        """Adds objects for links and loads of the library."""
        self._objects += objects
        return self

    def object(self) -> bytes:
        """The functions as a relocatable object. Raises the errors of all kernels as one :class:`KernelError`."""
        return bytes(_object(*self._stated()))

    def llvm_ir(self, *, optimized: bool = False) -> str:
        """The functions as a textual LLVM IR module for the target, whatever the backend.

        By default this is the module before LLVM's passes, for a compiler that links it with its kernels and optimises
        both together. With ``optimized`` it is the module after them.
        """
        return str(_llvm_ir(*self._stated(), optimized))

    def _stated(self) -> tuple[list[list[Any]], str]:
        """The functions and options, as the native library takes them."""
        functions: list[list[Any]] = [[of._native, kernel._native, doc] for of, kernel, doc in self._functions]
        functions += [[program] for program, _ in self._programs]
        return functions, encode({**self._options, "globals": self._globals})

    def archive(self, path: str | os.PathLike[str], *, objects: Mapping[str, bytes] | None = None) -> None:
        """Writes the functions as a static library at ``path``. ``objects`` are further members by name: objects and
        archives.
        """
        given = _check.mapping("objects", objects, "bytes by the names of members")
        members = [
            [_check.text("objects", name), _check.data(f"objects[{name!r}]", data)] for name, data in given.items()
        ]
        path = _check.path("path", path)
        own = [[f"object{number}.o", data] for number, data in enumerate(self._objects)]
        _archive(self._target, [[Path(path).with_suffix(".o").name, self.object()], *own, *members], path)

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
        """Links the functions with objects and archives (``objects`` in memory, ``files`` by their paths) into a shared
        library.

        ``linker`` is ``"wild"``, which is part of this package and needs no toolchain, or ``"cc"``, the C compiler's
        driver. The default for Linux is wild. Undefined symbols are an :class:`UndefinedSymbolError`, unless
        ``allow_undefined`` lists them. The file is replaced atomically, never written in place, so a process that has
        loaded the library from the path is unaffected.

        ``libraries`` are names as for ``-l``, and ``library_folders`` are searched for them as with ``-L``. ``runtime``
        is the file of a ``libtvm_ffi`` to link against, which is loaded with the library. Without it, the process that
        loads the library defines its symbols; on Windows they come from ``tvm_ffi.dll``. ``args`` are further arguments
        of the linker.
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
        path, objects = _check.path("path", path), _check.several_data("objects", objects)
        _link([self.object(), *self._objects, *objects], path, options)

    def _link_options(self, **options: Any) -> str:
        unknown = sorted(set(options) - set(_LINK_OPTIONS))
        if unknown:
            raise TypeError(f"Library.load() got an unexpected keyword argument {unknown[0]!r}")
        checked = {name: _LINK_OPTIONS[name](name, value) for name, value in options.items()}
        return encode({"target": self._target, **checked})

    def _load_cached(
        self,
        cache: Cache,
        objects: list[bytes],
        keep_module_alive: bool,
        options: Mapping[str, Any],
        key: list[str] | None = None,
    ) -> tvm_ffi.Module:
        """Loads the library from a cache, by a key of its own or by that of its contents."""
        link = self._link_options(**options)
        tries = 10
        while True:
            path, problem = _cached_library(cache._native, *self._stated(), objects, link, key)
            path = str(path)
            if problem is not None:
                try:
                    cache._warn(str(problem))
                    return tvm_ffi.load_module(path, keep_module_alive=keep_module_alive)
                finally:
                    shutil.rmtree(os.path.dirname(path), ignore_errors=True)
            try:
                return tvm_ffi.load_module(path, keep_module_alive=keep_module_alive)
            except Exception:
                # another process may have evicted the library in between
                tries -= 1
                if tries == 0 or os.path.exists(path):
                    raise

    def load(
        self,
        *,
        objects: bytes | Iterable[bytes] = (),
        keep_module_alive: bool = False,
        cache: Cache | None = None,
        **options: Unpack[LinkOptions],
    ) -> tvm_ffi.Module:
        """The functions as a loaded module of this process, with their metadata and docs. ``options`` are those of
        :meth:`link`.

        Symbols are looked up in ``objects``, then in the process. Without a ``cache`` nothing stays on disk. On Linux
        with glibc 2.28 or later and for this machine, without ``cache`` and ``options``, nothing is written to disk and
        no linker runs: the objects are loaded directly. If the loader refuses one of them, for example for thread-local
        variables, the library is linked as on other systems. The module is unloaded with the last reference to it and
        its functions, unless ``keep_module_alive``.
        """
        if cache is not None:
            cache = _check.instance("cache", cache, Cache, "a Cache")
            given = [*self._objects, *_check.several_data("objects", objects)]
            return self._load_cached(cache, given, keep_module_alive, options)
        if not options:
            module: tvm_ffi.Module | None = _load(
                *self._stated(), [*self._objects, *_check.several_data("objects", objects)]
            )
            if module is not None:
                if keep_module_alive:
                    tvm_ffi.get_global_func("ffi.ModuleGlobalsAdd")(module)
                return module
        folder = tempfile.mkdtemp(prefix="tvm-ffi-codegen-")
        try:
            # Each library of a process needs its own path: the system's loader would take a second one for the first.
            path = os.path.join(folder, "library.so")
            self.link(path, objects=objects, **options)
            return tvm_ffi.load_module(path, keep_module_alive=keep_module_alive)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
