"""The types of keyword arguments that one function passes on to another, for type checkers alone."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TypedDict


class LibraryOptions(TypedDict, total=False):
    """Keyword arguments of :class:`Library`."""

    target: str | None
    backend: str | None
    opt_level: str | None
    cpu: str | None
    features: Iterable[str]
    system_lib: str | None
    carries_modules: bool


class LinkOptions(TypedDict, total=False):
    """Keyword arguments of :meth:`Library.link`, without ``objects``."""

    files: Iterable[str | os.PathLike[str]]
    libraries: Iterable[str]
    library_folders: Iterable[str | os.PathLike[str]]
    allow_undefined: Iterable[str]
    runtime: str | os.PathLike[str] | None
    args: Iterable[str]
    linker: str | None


class LinkOptionsWithObjects(LinkOptions, total=False):
    """Keyword arguments of :meth:`Library.link`."""

    objects: bytes | Iterable[bytes]
