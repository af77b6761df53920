"""The native library: a TVM FFI library that uses this process's ``libtvm_ffi``."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import tvm_ffi

#: The environment variable that names another native library, such as one built with ``cargo``.
LIBRARY_VARIABLE = "TVM_FFI_CODEGEN_LIBRARY"


def _path() -> str:
    named = os.environ.get(LIBRARY_VARIABLE)
    if named:
        return named
    folder = Path(__file__).parent / "native"
    for pattern in ("*.so", "*.dylib", "*.dll"):
        for path in folder.glob(pattern):
            return str(path)
    raise ImportError(f"the native library of tvm_ffi_codegen is missing in {folder}: install the package by pip")


# The library is never unloaded: functions that it has compiled may outlive every Python object.
_module = tvm_ffi.load_module(_path())


# From now on, a call that needs an allocator and finds none fails with an error that names `install_cpu_allocator`.
_module["tfc_explain_missing_allocator"]()
# From now on, libraries use threads for launches on the CPU, and hooks see launches on devices. A library that has made
# its first launch already does neither.
_module["tfc_register_globals"]()


def function(name: str) -> Any:
    """The function ``tfc_<name>`` of the native library."""
    return _module[f"tfc_{name}"]


def decode(text: object) -> Any:
    """Decodes JSON from the native library."""
    return json.loads(str(text))


def encode(value: object) -> str:
    """Encodes a value as JSON for the native library."""
    return json.dumps(value, separators=(",", ":"))
