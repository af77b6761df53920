"""The variants of a dispatch: its callback's result for a key, and the function that is made of it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, NamedTuple, Union

import tvm_ffi

from . import _check
from ._native import encode
from .functions import functions
from .key import Key, Keys
from .kernel import Kernel, as_kernel
from .library import Cache, Library, compile
from .signature import Signature, as_signature


class Variant(NamedTuple):
    """A function that is not compiled yet: a signature, its kernel, and the objects with the kernel's symbol."""

    signature: Signature
    kernel: Kernel
    objects: list[bytes]

    def for_library(self) -> Variant:
        """The same variant for a library, which links a kernel's objects instead of loading them."""
        constructor, values, options = self.kernel._made
        if constructor == "object" and "symbols" not in options:
            objects, symbol = values
            return Variant(self.signature, Kernel.symbol(symbol, **options), [*self.objects, *objects])
        if constructor == "host" and "objects" in options:
            return self._replace(objects=[*self.objects, *options["objects"]])
        return self

    def renamed(self, name: str) -> Variant:
        """The same variant as a function of another name."""
        text = self.signature.text
        signature = Signature(name + text[len(self.signature.name) :], locations=self.signature._locations)
        return self._replace(signature=signature)


#: The values that a callback may return for a key.
Made = Union[tvm_ffi.Function, "tuple[Signature | str, Kernel]", "tuple[Signature | str, Kernel, list[bytes]]"]


class Variants:
    """Makes the functions of a dispatch from what its callback returns, and remembers that for exports."""

    def __init__(
        self,
        signature: Signature,
        keys: Keys,
        callback: Callable[[Key], Made],
        *,
        max_entries: int | None,
        cache: Cache | None,
        version: str | None,
        options: dict[str, Any],
    ) -> None:
        self._signature, self._keys, self._callback = signature, keys, callback
        self._cache, self._version, self._options = cache, version, options
        self._max_entries = max_entries
        self._known: dict[Key, Variant] = {}
        #: The keys that the table has now. The dispatch sets it.
        self.kept: Callable[[], Collection[Key]] = tuple

    def on_miss(self, *values: Any) -> tvm_ffi.Function:
        """The function for a key, called by the table with the keys' values, and the arguments if there is a call."""
        key = self._keys.of_call(values)
        if self._cache is not None:
            found = self._cached(self._cache, key)
            if found is not None:
                return found
        return self.function(key, self._callback(key))

    def function(self, key: Key, made: object) -> tvm_ffi.Function:
        """The function for a value that a callback has returned, or that a user inserts."""
        made = self._read(key, made)
        if not isinstance(made, Variant):
            self._known.pop(key, None)
            return made
        if self._cache is not None:
            function = self._store(self._cache, key, made)
        else:
            function = compile(made.signature, made.kernel, objects=made.objects, **self._options)
        # the key without the arguments, which would live as long
        self._known[Key(self._keys.names, tuple(key.values()))] = made
        self._forget()
        return function

    def variant(self, key: Key) -> Variant | None:
        """The signature, kernel and objects that the function for a key was made of. If the function came from a cache,
        the callback returns them again. None if the function was given as a function.
        """
        known = self._known.get(key)
        if known is None and self._cache is not None:
            made = self._read(key, self._callback(key))
            known = made if isinstance(made, Variant) else None
        return known

    def _forget(self) -> None:
        """Forgets the variants of functions that the table has evicted, once there are many of them."""
        most = self._max_entries
        if most is None or len(self._known) <= 2 * most:
            return
        kept = set(self.kept())
        # the newest ones may be on their way to the table
        for key in list(self._known)[:-most]:
            if key not in kept:
                self._known.pop(key, None)

    def _read(self, key: Key, made: object) -> tvm_ffi.Function | Variant:
        if isinstance(made, tvm_ffi.Function):
            return made
        what = f"the variant of `{self._signature.name}` for {key}"
        if not isinstance(made, tuple) or len(made) not in (2, 3):
            raise _check._wrong(what, "(signature, kernel), (signature, kernel, objects) or a tvm_ffi.Function", made)
        signature, kernel = as_signature(made[0]), as_kernel(f"{what}: kernel", made[1])
        objects = _check.several_data(f"{what}: objects", made[2] if len(made) == 3 else ())
        # a dispatch passes all arguments, with defaults for those that are left out
        (least, most), (_, passed) = signature.arity, self._signature.arity
        if not least <= passed <= most:
            count = str(least) if least == most else f"{least} to {most}"
            raise ValueError(f"{what} takes {count} arguments, and the dispatch passes {passed}: {signature}")
        return Variant(signature, kernel, objects)

    def _parts(self, key: Key) -> list[str]:
        """All that decides which function of a cache is the one for a key, except for this package's build."""
        stated = [f"{name}={of}" for name, of in zip(self._keys.names, self._keys.expressions)]
        values = [f"{type(of).__name__} {of}" for of in key.values()]
        version = self._version or ""
        return ["dispatch", self._signature.text, *stated, version, encode(self._options), *values]

    def _cached(self, cache: Cache, key: Key) -> tvm_ffi.Function | None:
        def read(path: str) -> tvm_ffi.Function:
            (info,) = functions(path)
            return tvm_ffi.load_module(path, keep_module_alive=False).get_function(info.name)

        return cache._read(self._parts(key), read)

    def _store(self, cache: Cache, key: Key, variant: Variant) -> tvm_ffi.Function:
        signature, kernel, objects = variant.for_library()
        library = Library(**self._options).add(signature, kernel)
        module = library._load_cached(cache, objects, False, {}, self._parts(key))
        return module.get_function(signature.name)
