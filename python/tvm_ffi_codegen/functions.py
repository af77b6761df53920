"""The functions in a library, as its metadata describes them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Union

import tvm_ffi

from . import _check
from .library import Library
from .look import inspect
from .signature import Signature

#: A source of functions: a library's path or bytes, a :class:`Library`, or a loaded module.
HasFunctions = Union[str, "os.PathLike[str]", bytes, Library, tvm_ffi.Module]


@dataclass(frozen=True)
class FunctionInfo:
    """A function of a library."""

    #: The name.
    name: str
    #: The signature.
    signature: Signature
    #: The documentation.
    doc: str | None
    #: The function's metadata: ``type_schema``, ``signature``, ``parameters``, and ``launches`` if it has any.
    metadata: dict[str, Any] = field(compare=False, repr=False)


def functions(library: HasFunctions, names: Iterable[str] | None = None) -> list[FunctionInfo]:
    """The functions of a library with their signatures and documentation, sorted by name, or in the order of ``names``.

    A path or bytes may be a library for any system; no code of it runs. A :class:`Library` is compiled. Functions
    of other tools have no signature: they are left out, and an error in ``names``. A loaded module can't list its
    functions, so it needs ``names``.
    """
    names = None if names is None else _check.texts("names", names)
    if isinstance(library, tvm_ffi.Module):
        if names is None:
            raise ValueError("a loaded module can't list its functions: pass names=, or the library's path")
        return [of_module(library, name) for name in names]
    binary = library.object() if isinstance(library, Library) else library
    known = {
        of["name"]: FunctionInfo(of["name"], Signature(of["signature"]), of["doc"], of["metadata"])
        for of in inspect(binary)["functions"]
        if of["metadata"] is not None and of["signature"] is not None
    }
    missing = [name for name in names or () if name not in known]
    if missing:
        raise ValueError(f"the library has no metadata of `{missing[0]}`")
    return [known[name] for name in sorted(known)] if names is None else [known[name] for name in names]


def of_module(module: tvm_ffi.Module, name: str) -> FunctionInfo:
    """The description of a loaded module's function."""
    metadata = module.get_function_metadata(name)
    if metadata is None:
        raise AttributeError(f"the module has no metadata of a function `{name}`")
    if isinstance(metadata, str):
        metadata = json.loads(metadata)
    if "signature" not in metadata or "parameters" not in metadata:
        raise ValueError(f"the metadata of `{name}` doesn't name its parameters: it isn't a function of tvm-ffi-codegen")
    doc = module.get_function_doc(name)
    return FunctionInfo(name, Signature(metadata["signature"]), None if doc is None else str(doc), metadata)
