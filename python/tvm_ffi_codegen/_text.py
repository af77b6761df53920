"""Strings and dimensions in the text form."""

from __future__ import annotations

from typing import Any

from . import _check

#: The escapes of all strings, for ``str.translate``.
ESCAPES = {ord(c): "\\" + to for c, to in {"\\": "\\", '"': '"', "\n": "n", "\r": "r", "\t": "t"}.items()}
#: Those of host text, which also writes other control characters as bytes, and bytes that aren't of ASCII.
_HOST_ESCAPES = {**{c: f"\\x{c:02x}" for c in (*range(32), 127)}, **ESCAPES}
_BYTE_ESCAPES = {**{c: f"\\x{c:02x}" for c in range(128, 256)}, **_HOST_ESCAPES}


def quoted(text: str | bytes) -> str:
    """A string of host text in quotes, with escapes."""
    if isinstance(text, bytes):
        return f'"{"".join(_BYTE_ESCAPES.get(c, chr(c)) for c in text)}"'
    _check.text("text", text).encode()  # a lone surrogate is an error here, not when the text is parsed
    return f'"{text.translate(_HOST_ESCAPES)}"'


def unused(name: str, used: set[str]) -> str:
    """A name that is not among others."""
    while name in used:
        name += "_"
    return name


def dim_text(dim: Any) -> str:
    """A size or stride of a signature's structure, as text."""
    if not isinstance(dim, list):
        # a text has no negative numbers
        return str(dim) if not isinstance(dim, int) or dim >= 0 else f"(0 - {-dim})"
    operator, left, right = dim[0], dim_text(dim[1]), dim_text(dim[2])
    return f"{operator}({left}, {right})" if operator.isidentifier() else f"({left} {operator} {right})"
