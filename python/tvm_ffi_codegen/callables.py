"""Python functions for a library's functions, with keyword arguments, defaults and documentation; type stubs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import tvm_ffi

from . import _check
from ._described import Described
from .compiled import CompiledFunction
from .functions import HasFunctions, functions, of_module


def python_callable(source: tvm_ffi.Module | CompiledFunction, name: str | None = None) -> Callable[..., Any]:
    """Makes a Python function from a function of :func:`compile`, or from a module's function by its name.

    ``source`` is the function, or the module. The result takes keyword arguments, and has ``__signature__`` with the
    defaults as values, ``__doc__`` and ``__name__``. A call with positional arguments only costs one Python call more
    than the function itself.
    """
    if isinstance(source, CompiledFunction):
        if name is not None:
            raise TypeError(f"name: expected None for a function, which has one, got {name!r}")
        known = source._described()
        function: tvm_ffi.Function = source
    else:
        module = _check.instance(
            "source", source, tvm_ffi.Module, "a tvm_ffi.Module, or a function of tvm_ffi_codegen.compile"
        )
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


_STUB_HEADER = """\
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import tvm_ffi

class SupportsDLPack(Protocol):
    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

"""


def stubs(library: HasFunctions, names: Iterable[str] | None = None) -> str:
    """The text of a ``.pyi`` file for a library's functions: all, or those in ``names``. See :func:`functions`."""
    return _STUB_HEADER + "".join(Described(of.name, of.doc, of.metadata).stub() for of in functions(library, names))
