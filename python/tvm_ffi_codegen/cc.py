"""CPU kernels in C or C++, compiled to an object with this machine's compiler, or with a command that you state.

Each function of the source gets a C function of the signature's own prototype around it. So the compiler reports a
parameter that doesn't fit, and the wrapper never calls a function of another prototype.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Union

from . import _check
from ._text import quoted
from .errors import CodegenError
from .kernel import Kernel, as_kernel
from .library import compile as compile_function
from .signature import Signature, as_signature

if TYPE_CHECKING:
    from typing_extensions import TypedDict, Unpack

    from .kernel import Address
    from .library import Cache

    class CompileOptions(TypedDict, total=False):
        """Keyword arguments of :func:`tvm_ffi_codegen.compile`, without ``objects``."""

        backend: str | None
        opt_level: str | None
        cache: Cache | None
        symbols: Mapping[str, Address] | None
        doc: str | None


__all__ = ["compile", "load_inline"]

#: A function of the source: a signature, which names the function, or a signature and a kernel. The kernel names
#: the symbol and states the call, as in ``Kernel.symbol("add_kernel", returns="status")``.
Function = Union[Signature, str, "tuple[Signature | str, Kernel]"]

#: Diagnostics that refuse a call with arguments of other types, beside ``-Wconversion``. They apply to the calls alone,
#: and not to your code. In C++ they are errors anyway, and it doesn't know the options.
_REFUSED_IN_C = ("-Wincompatible-pointer-types", "-Wint-conversion", "-Wimplicit-function-declaration")


def compile(
    source: str,
    functions: Iterable[Function] = (),
    options: Iterable[str] = ("-O2",),
    *,
    command: str | None = None,
    headers: Mapping[str, str] | None = None,
    file: str = "kernels.c",
) -> bytes:
    """Compiles C or C++ to a relocatable object, for :func:`tvm_ffi_codegen.compile` and libraries.

    ``functions`` are those of the source that signatures describe. A parameter may be ``const``, or of a wider number
    than the signature's. Any other difference is an error of the compiler. Without ``functions`` nothing is checked.

    ``command`` is the compiler's command line: ``"zig cc -target aarch64-linux-gnu -c {source} -o {object}"``. The
    default is ``cc -fPIC -c {source} -o {object}`` with the compiler that ``CC`` names, or ``CXX`` and ``c++`` for C++.
    The options come before ``{source}``. ``headers`` maps names that the source includes to texts. The ending of
    ``file`` states the language, and its name stands in messages.

    A source that doesn't compile is a :class:`CodegenError` with the compiler's messages.
    """
    listed = [_function(of) for of in _check.listed("functions", functions, "signatures", lambda _, of: of)]
    file = _check.text("file", file)
    text = _with_calls(_check.text("source", source), listed, file)
    given = _check.mapping("headers", {} if headers is None else headers, "texts by names")
    with tempfile.TemporaryDirectory() as folder:
        for name, content in {**given, file: text}.items():
            path = Path(folder, _inside(_check.text("headers", name)))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(_check.text("headers", content), encoding="utf-8")
        words = _command(command, _check.texts("options", options), file)
        _run(words, folder, file)
        try:
            return Path(folder, _OBJECT).read_bytes()
        except FileNotFoundError:
            raise CodegenError(f"the compiler wrote no object: {shlex.join(words)}") from None


def load_inline(
    source: str,
    functions: Function | Iterable[Function],
    options: Iterable[str] = ("-O2",),
    *,
    command: str | None = None,
    headers: Mapping[str, str] | None = None,
    file: str = "kernels.c",
    **compile_options: Unpack[CompileOptions],
) -> SimpleNamespace:
    """Compiles C or C++ and returns its functions, as attributes.

    ``compile_options`` are those of :func:`tvm_ffi_codegen.compile`, the others those of :func:`compile`.
    """
    several = [functions] if isinstance(functions, (str, Signature, tuple)) else functions
    listed = [_function(of) for of in _check.listed("functions", several, "signatures", lambda _, of: of)]
    built = compile(source, listed, options, command=command, headers=headers, file=file)
    loaded = {
        signature.name: compile_function(signature, kernel, objects=built, **compile_options)
        for signature, kernel in listed
    }
    return SimpleNamespace(**loaded)


#: The object's name in the directory of a compilation.
_OBJECT = "kernels.o"


def _function(stated: object) -> tuple[Signature, Kernel]:
    if isinstance(stated, tuple) and len(stated) == 2:
        return as_signature(stated[0]), as_kernel("functions", stated[1])
    signature = as_signature(stated)  # type: ignore[arg-type]
    return signature, Kernel.symbol(signature.name)


def _inside(name: str) -> str:
    """A file's name in the directory of a compilation."""
    if os.path.isabs(name) or ".." in Path(name).parts:
        raise ValueError(f"headers: expected a name inside the source's directory, got `{name}`")
    return name


def _with_calls(source: str, functions: list[tuple[Signature, Kernel]], file: str) -> str:
    """The source, with a function for each signature that calls the source's own function.

    In the source each function has another name, so the function around it can have the symbol.
    """
    if not functions:
        return source
    prototypes = [(kernel.prototype(signature), kernel, signature) for signature, kernel in functions]
    parts = [kernel.header(signature) for _, kernel, signature in prototypes[:1]]
    # the header declares the first function, and has the types that all of them need
    parts += [f'#ifdef __cplusplus\nextern "C"\n#endif\n{of.text}' for of, _, _ in prototypes[1:]]
    names = [of.text.partition("(")[0].split()[-1].lstrip("*") for of, _, _ in prototypes]
    parts += [f"#define {name} {name}_of_the_source" for name in names]
    parts.append(f"#line 1 {quoted(file)}\n{source}")
    parts += [f"#undef {name}" for name in names]
    in_c = [f'#pragma GCC diagnostic error "{option}"' for option in _REFUSED_IN_C]
    parts += ['#pragma GCC diagnostic error "-Wconversion"', "#ifndef __cplusplus", *in_c, "#endif"]
    for (prototype, _, signature), name in zip(prototypes, names):
        returned = "" if prototype.returns is None else "return "
        values = ", ".join(of.name for of in prototype.parameters)
        place = f"#line 1 {quoted(f'the signature of {signature.name}')}"
        parts.append(f"{place}\n{prototype.text.rstrip(';')} {{ {returned}{name}_of_the_source({values}); }}")
    return "\n".join(parts) + "\n"


def _command(command: object, options: list[str], file: str) -> list[str]:
    """The words of the compiler's command line."""
    if command is None:
        is_c = file.endswith(".c")
        compiler = os.environ.get("CC" if is_c else "CXX") or ("cc" if is_c else "c++")
        independent = "" if sys.platform == "win32" else " -fPIC"
        command = f"{compiler}{independent} -c {{source}} -o {{object}}"
    words = shlex.split(_check.text("command", command))
    for part in ("{source}", "{object}"):
        if part not in words:
            raise ValueError(f"command: expected one with {part}, got `{command}`")
    at = words.index("{source}")
    words[at:at] = options
    places = {"{source}": file, "{object}": _OBJECT}
    return [places.get(word, word) for word in words]


def _run(words: list[str], folder: str, file: str) -> None:
    try:
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, errors="replace", check=False)
    except OSError as error:
        raise CodegenError(
            f"can't compile {file}: `{words[0]}` doesn't start ({error.strerror}): set CC, or pass command="
        ) from None
    if done.returncode != 0:
        said = (done.stderr + done.stdout).rstrip()
        raise CodegenError(f"can't compile {file}: `{shlex.join(words)}` failed:\n{said}")
