"""Makes checked, fast functions of the TVM FFI from a compiler's kernels, in the process of Python.

A compiler states a :class:`Signature` and has a :class:`Kernel`. :func:`compile` makes a ``tvm_ffi.Function`` of the two in this process;
a :class:`Library` puts functions into objects and shared libraries, which every host of the TVM FFI loads.
"""

from . import triton
from .callables import python_callable, stubs
from .errors import CodegenError, KernelError, LinkError, Mistake, SignatureError, Symbol, UndefinedSymbol, UnsupportedTarget
from .kernel import Kernel
from .library import Cache, Library, compile
from .look import build, explain, inspect, install_cpu_allocator
from .signature import CParameter, Parameter, Place, Prototype, Signature

__version__: str = build()["version"]

__all__ = [
    "CParameter",
    "Cache",
    "CodegenError",
    "Kernel",
    "KernelError",
    "Library",
    "LinkError",
    "Mistake",
    "Parameter",
    "Place",
    "Prototype",
    "Signature",
    "SignatureError",
    "Symbol",
    "UndefinedSymbol",
    "UnsupportedTarget",
    "build",
    "compile",
    "explain",
    "inspect",
    "install_cpu_allocator",
    "python_callable",
    "stubs",
    "triton",
]
