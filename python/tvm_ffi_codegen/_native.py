"""The native library: a TVM FFI library, which uses the ``libtvm_ffi`` of this process."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import tvm_ffi

#: Names another file as the native library, for those who build it by ``cargo``.
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


# The library stays: functions that it has compiled may outlive every Python object.
_module = tvm_ffi.load_module(_path())


# From here on, a call that needs an allocator when none is set fails with an error that names `install_cpu_allocator`.
_module["tfc_explain_missing_allocator"]()
# Launches on the CPU have threads in all libraries that make their first one from here on.
_module["tfc_register_parallel_for"]()


def function(name: str) -> Any:
    """The function ``tfc_<name>`` of the native library."""
    return _module[f"tfc_{name}"]


def decode(text: object) -> Any:
    """A value of the native library's JSON."""
    return json.loads(str(text))


def encode(value: object) -> str:
    """A value as JSON for the native library."""
    return json.dumps(value, separators=(",", ":"))
