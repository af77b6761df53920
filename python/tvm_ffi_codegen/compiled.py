"""Functions compiled in this process, with their signatures and documentation."""

from __future__ import annotations

import inspect as py_inspect
from typing import TypeVar

import tvm_ffi

from ._described import Described
from .signature import Signature

C = TypeVar("C", bound="CompiledFunction")


class CompiledFunction(tvm_ffi.Function):
    """A ``tvm_ffi.Function`` that knows its signature and documentation.

    Call it like any ``tvm_ffi.Function``, with positional arguments. To pass keywords, use :func:`python_callable`.
    """

    __slots__ = ("_doc", "_signature")

    _signature: Signature
    _doc: str | None

    @classmethod
    def _of(cls: type[C], function: tvm_ffi.Function, signature: Signature, doc: str | None) -> C:
        """Moves a function into this class, which calls it as the base class does."""
        compiled = cls.__new__(cls)
        compiled.__move_handle_from__(function)
        compiled._signature, compiled._doc = signature, doc
        return compiled

    @property
    def signature(self) -> Signature:
        """The signature that the function checks its arguments against."""
        return self._signature

    def _described(self) -> Described:
        parts = self._signature._parts()
        metadata = {"signature": parts["text"], **{name: parts[name] for name in ("type_schema", "parameters")}}
        return Described(parts["name"], self._doc, metadata)

    @property
    def __name__(self) -> str:
        return self._signature.name

    @property
    def __doc__(self) -> str:  # type: ignore[override]
        return self._described().documentation

    @property
    def __signature__(self) -> py_inspect.Signature:
        return self._described().signature()

    def __repr__(self) -> str:
        return f"<CompiledFunction {self._signature.text}>"
