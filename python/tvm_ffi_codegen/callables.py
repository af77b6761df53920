"""Functions of a library as Python functions: keyword arguments, defaults, documentation, and stubs for type checkers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import tvm_ffi

from . import _check
from ._described import Described
from .compiled import CompiledFunction
from .functions import HasFunctions, functions, of_module

def python_callable(source: tvm_ffi.Module | CompiledFunction, name: str | None = None) -> Callable[..., Any]:
    """A function of a module by its name, or one that :func:`compile` has made, as a Python function.

    It takes keyword arguments, has ``__signature__`` with the defaults as values, ``__doc__`` and ``__name__``. Arguments by position
    alone cost one Python call more than the function itself.
    """
    if isinstance(source, CompiledFunction):
        if name is not None:
            raise TypeError(f"name: expected None for a function, which has one, got {name!r}")
        known, function = source._described(), source
    else:
        module = _check.instance("source", source, tvm_ffi.Module, "a tvm_ffi.Module, or a function of tvm_ffi_codegen.compile")
        info = of_module(module, _check.text("name", name))
        known, function = Described(info.name, info.doc, info.metadata), module.get_function(info.name)
    signature = known.signature()
    keyword_only = any(of.get("keyword_only") for of in known.parameters)

    def call(*args: Any, **kwargs: Any) -> Any:
        if not kwargs and not keyword_only:
            return function(*args)
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return function(*bound.arguments.values())

    call.__name__ = call.__qualname__ = known.name
    call.__doc__ = known.documentation
    call.__signature__ = signature  # type: ignore[attr-defined]
    return call


_STUB_HEADER = '''\
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import tvm_ffi

class SupportsDLPack(Protocol):
    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...

'''


def stubs(library: HasFunctions, names: Iterable[str] | None = None) -> str:
    """The text of a ``.pyi`` file with the functions of a library: all, or those of ``names``, as :func:`functions` has them."""
    return _STUB_HEADER + "".join(Described(of.name, of.doc, of.metadata).stub() for of in functions(library, names))
