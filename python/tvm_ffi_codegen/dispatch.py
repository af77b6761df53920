"""One function with many kernels: a dispatch finds the variant for a call's arguments, and makes it if it is new."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import tvm_ffi

from . import _check
from ._fixed import fixed, forwarding
from ._native import function
from ._text import unused
from ._variants import Made, Variants
from .compiled import CompiledFunction
from .errors import KernelError
from .kernel import Kernel
from .key import Key, KeyLike, Keys, StatedKeys
from .library import Cache, Library, compile
from .signature import Signature, as_signature

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._options import LibraryOptions, LinkOptionsWithObjects

_table = function("dispatch_table")


class Dispatch(CompiledFunction):
    """A function that chooses one of its variants by keys over its arguments, made by :func:`specialize`.

    It is a ``tvm_ffi.Function``. A call whose variant is known takes no lock and runs no Python. A call whose variant
    is new runs the callback, once for each key at a time: other callers of that key wait, and calls with other keys go
    on. An error of the callback is raised in the call that ran it, and isn't kept.
    """

    __slots__ = ("__weakref__", "_keys", "_table", "_variants")

    _keys: Keys
    _table: Any
    _variants: Variants

    # the class's own text would hide the one of its base
    @property
    def __doc__(self) -> str:  # type: ignore[override]
        return self._described().documentation

    @property
    def keys(self) -> tuple[str, ...]:
        """The names of the keys, in order."""
        return self._keys.names

    def entries(self) -> dict[Key, tvm_ffi.Function]:
        """The variants that are known now, by their keys."""
        return {self._keys.of_call(tuple(key)): of for key, of in self._table["entries"]()}

    def stats(self) -> dict[str, int]:
        """The dispatch's counters: ``hits`` (calls that found their variant), ``waits`` (calls that waited for
        another thread's callback), ``misses`` (calls of the callback), ``errors`` (those that failed), ``evictions``,
        ``entries`` (variants that are known now) and ``on_miss_ns`` (nanoseconds in the callback).
        """
        return {str(name): int(of) for name, of in self._table["stats"]().items()}

    def insert(self, key: KeyLike, made: Made) -> None:
        """Makes a function the variant of a key, in the place of another one. ``made`` is what a callback may return.

        Calls that run the old variant are not disturbed.
        """
        known = self._keys.read("key", key)
        self._table["insert"](list(known.values()), self._variants.function(known, made))

    def remove(self, key: KeyLike) -> bool:
        """Forgets the variant of a key: the next call makes it anew. Returns False if there was none."""
        return bool(self._table["remove"](list(self._keys.read("key", key).values())))

    def clear(self) -> None:
        """Forgets all variants."""
        self._table["clear"]()

    def prewarm(self, keys: Iterable[KeyLike]) -> None:
        """Makes the variants of several keys, in as many threads as there are processors.

        All keys are tried. Then the error of the first key that has failed is raised.
        """
        self._table["prewarm"]([list(key.values()) for key in self._keys.read_all("keys", keys)])

    def library(self, **options: Unpack[LibraryOptions]) -> Library:
        """A library with the variants that are known now, and a function of this name that chooses one of them.

        It has no compiler in it. A call that fits no variant is a ``ValueError`` that lists them, at most 8.
        ``options`` are those of :class:`Library`. A variant that was given as a function, and not as a signature with
        its kernel, is a :class:`KernelError`.
        """
        keys = list(self.entries())
        variants = [(key, self._variants.variant(key)) for key in keys]
        missing = [str(key) for key, of in variants if of is None]
        if missing:
            raise KernelError(f"variants that were given as functions can't be exported: {', '.join(missing)}")
        if not keys:
            raise KernelError(f"`{self._signature.name}` has no variants to export: call it, or use prewarm()")
        stated = [(key, of.for_library()) for key, of in variants if of is not None]
        text, named = fixed(self._signature, self._keys, stated)
        library = Library(**options).add(forwarding(self._signature), Kernel.host(text), doc=self._doc)
        for of in named:
            library.add(of.signature, of.kernel)._add_objects(of.objects)
        return library

    def export(self, path: str | os.PathLike[str], **options: Unpack[LinkOptionsWithObjects]) -> None:
        """Links :meth:`library` into a shared library at a path. ``options`` are those of :meth:`Library.link`."""
        self.library().link(path, **options)

    def __repr__(self) -> str:
        return f"<Dispatch {self._signature.text} by {', '.join(self._keys.names)}>"


def specialize(
    signature: Signature | str,
    *,
    keys: StatedKeys,
    max_entries: int | None = None,
    cache: Cache | None = None,
    version: str | None = None,
    backend: str | None = None,
    opt_level: str | None = None,
) -> Callable[[Callable[[Key], Made]], Dispatch]:
    """Makes a :class:`Dispatch` of a function that makes variants. Use it as a decorator::

        @tfc.specialize("axpy(x: Tensor([n], any), y: Tensor([n], any))", keys=["x.dtype", "n % 16 == 0"])
        def axpy(key):
            return signature, kernel

    ``signature`` states the arguments of all variants. ``keys`` are expressions of host text over it
    (``docs/reference/host-text.md``), or such expressions by names. The decorated function gets a :class:`Key`, and
    returns the variant: a signature and a kernel, these and the objects with the kernel's symbol, or any
    ``tvm_ffi.Function``. The variant gets the arguments as they came. Its own signature must state each condition
    that is stricter than the dispatch's.

    With ``max_entries`` the variants that were used longest ago go first. With a ``cache`` the variants are kept for
    later processes, which then don't run the decorated function: ``version`` names everything that its result for a
    key depends on, such as the version of your compiler and a hash of the kernel's source. ``backend`` and
    ``opt_level`` are those of :func:`compile`.
    """
    signature = as_signature(signature)
    stated = Keys(keys, signature)
    if max_entries is not None and _check.integer("max_entries", max_entries) < 1:
        raise ValueError(f"max_entries: expected at least 1, got {max_entries}")
    if cache is not None:
        _check.instance("cache", cache, Cache, "a Cache")
        if version is None:
            raise ValueError("version: expected a str with a cache, since later processes don't run the function")
    version = _check.optional_text("version", version)
    options: dict[str, Any] = {
        "backend": _check.optional_text("backend", backend),
        "opt_level": _check.optional_text("opt_level", opt_level),
    }

    def decorated(callback: Callable[[Key], Made]) -> Dispatch:
        variants = Variants(
            signature, stated, callback, max_entries=max_entries, cache=cache, version=version, options=options
        )
        table = _table(variants.on_miss, list(stated.names), max_entries, signature.name)
        dispatch = Dispatch._of(_growing(signature, stated, table["call"], options), signature, callback.__doc__)
        dispatch._keys, dispatch._table, dispatch._variants = stated, table, variants
        # the table owns the callback, so a strong reference would keep the table for good
        this = weakref.ref(dispatch)
        variants.kept = lambda: () if (alive := this()) is None else alive.entries()
        return dispatch

    return decorated


def _growing(signature: Signature, keys: Keys, table: tvm_ffi.Function, options: dict[str, Any]) -> Any:
    """The function that computes the keys and forwards its calls to a table."""
    used = {of.name for of in signature.parameters} | set(signature.dim_vars)
    grow, code = unused("grow", used), unused("code", used)
    # each key has a line of its own, which an error of the text names
    passed = "".join(f"\n    {of}," for of in keys.expressions)
    body = (
        f"{{\n  let made = closure [{grow}: Function = grow, {code}: Function = code] {forwarding(signature)} {{\n"
        f"    forward {grow}({passed}\n    );\n  }};\n"
        f"  return move(made);\n}}\n"
    )
    make = compile("make(grow: Function, code: Function) -> Function", Kernel.host(body), **options)
    # a closure doesn't keep its own code, so it captures a function that does
    return make(table, make)
