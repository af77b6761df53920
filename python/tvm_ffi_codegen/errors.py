"""Errors as values: the mistakes and their places."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import tvm_ffi


@dataclass(frozen=True)
class ErrorDetail:
    """One error of a signature, a kernel or a launch."""

    #: The problem in words, and how to mend it.
    message: str
    #: The part that is wrong: ``x.shape[1]``, ``where[0]``, or the kernel's function. None if the text can't be parsed.
    path: str | None
    #: The line of the text, counted from 1.
    line: int | None
    #: The character in that line, counted from 1.
    column: int | None
    #: The first wrong byte of the text, and the first byte after the wrong part.
    span: tuple[int, int] | None
    #: The valid alternatives, in words.
    expected: str | None
    #: The wrong text.
    got: str | None


@dataclass(frozen=True)
class Symbol:
    """An undefined symbol."""

    #: The symbol.
    name: str
    #: The functions and places that refer to it, in words.
    references: tuple[str, ...]


class CodegenError(Exception):
    """An error of this library: the base class of those below. All other errors are of this class itself."""

    @property
    def details(self) -> dict[str, Any]:
        """The error's parts, as the command line prints them with ``--message-format=json``."""
        if "_details" in self.__dict__:
            kept: dict[str, Any] = self.__dict__["_details"]
            return kept
        error = getattr(self, "__tvm_ffi_error__", None)
        context = getattr(error, "extra_context", None)
        details: dict[str, Any] = {} if context is None else json.loads(str(context))
        return details

    def __reduce__(self) -> tuple[Any, ...]:
        # the native error can't leave this process, so its details are kept instead
        kept = {name: value for name, value in self.__dict__.items() if name != "__tvm_ffi_error__"}
        return type(self), self.args, {**kept, "_details": self.details}

    @property
    def errors(self) -> list[ErrorDetail]:
        """All errors, if there are several."""

        def error(of: dict[str, Any]) -> ErrorDetail:
            span = of["span"]
            return ErrorDetail(**{**of, "span": None if span is None else tuple(span)})

        return [error(of) for of in self.details.get("errors", [])]

    @property
    def symbols(self) -> list[Symbol]:
        """The undefined symbols."""
        return [Symbol(of["name"], tuple(of["references"])) for of in self.details.get("symbols", [])]


class SignatureError(CodegenError, ValueError):
    """A signature's text doesn't follow the grammar, or the signature is invalid. :attr:`errors` lists all errors."""


class KernelError(CodegenError, ValueError):
    """A kernel doesn't fit its signature, a launch doesn't fit its image, or a name is taken."""


class UndefinedSymbolError(CodegenError, LookupError):
    """Symbols are undefined: :attr:`symbols` lists all of them."""


class UnsupportedTargetError(CodegenError, ValueError):
    """No code generator or linker supports the target."""


class LlvmNotFoundError(CodegenError, RuntimeError):
    """LLVM's library is not found. The message lists the files that were tried."""


class LinkError(CodegenError, RuntimeError):
    """An object can't be read, or objects can't be linked."""


for _class in (CodegenError, SignatureError, KernelError, UndefinedSymbolError, UnsupportedTargetError, LlvmNotFoundError, LinkError):
    tvm_ffi.register_error(f"tvm_ffi_codegen.{_class.__name__}", _class)
