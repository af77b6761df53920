"""The text of launches: ``launch ENTRY grid=... block=... args=[...]``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import _check
from ._text import quoted

#: The items with up to three extents, and those with one expression.
_EXTENTS = ("grid", "block", "cluster", "preferred_cluster")
#: The items with a word.
_WORDS = ("stream", "cluster_scheduling", "memory_sync_domain", "completion_event")
#: The items with the name of a global function.
_FUNCTIONS = ("on_load", "on_unload")
_NUMBERS = ("priority", "shared_memory_carveout")
_FLAGS = ("cooperative", "programmatic_dependent_launch", "non_portable_cluster")


def launch_text(entry: str, items: Mapping[str, Any]) -> str:
    """A launch. ``entry`` is in quotes if it isn't a name. Items that are None, and flags not set, are left out."""
    words = ["launch", entry]
    for name, value in items.items():
        if name in _FLAGS:
            words += [name] if value else []
        elif value is None:
            pass
        elif name in _EXTENTS:
            first, *more = _check.extents(name, value)
            words.append(f"{name}=({', '.join([first, *more])})" if more else f"{name}={first}")
        elif name == "shared_memory":
            words.append(f"{name}={_check.extent(name, value)}")
        elif name == "args":
            words.append(f"args=[{', '.join(_check.texts('args', value))}]")
        elif name == "globals":
            given = _check.mapping(name, value, "str by names")
            stated = [f"{quoted(_check.text(name, of))}={_check.text(name, text)}" for of, text in given.items()]
            words.append(f"globals=[{', '.join(stated)}]")
        elif name in _FUNCTIONS:
            words.append(f"{name}={quoted(_check.text(name, value))}")
        elif name in _WORDS:
            words.append(f"{name}={_check.text(name, value)}")
        elif name in _NUMBERS:
            words.append(f"{name}={_check.integer(name, value)}")
        else:
            known = ", ".join([*_EXTENTS, "shared_memory", "args", "globals", *_WORDS, *_FUNCTIONS, *_NUMBERS, *_FLAGS])
            raise TypeError(f"unknown item {name!r} of a launch; the items are {known}")
    return " ".join(words)
