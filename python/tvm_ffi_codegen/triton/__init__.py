"""Triton kernels: launches of compiled kernels, and functions that compile a kernel's variants when they are needed.

Importing this module doesn't import Triton.
"""

from .compiled import Binding, from_compiled
from .jit import jit

__all__ = ["Binding", "from_compiled", "jit"]
