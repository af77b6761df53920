"""Strings in the text form."""

from __future__ import annotations

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
