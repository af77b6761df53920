"""Makes checked, fast functions of the TVM FFI from a compiler's kernels, in the process of Python.

A compiler states a :class:`Signature` and has a :class:`Kernel`. :func:`compile` makes a ``tvm_ffi.Function`` of the two in this process;
a :class:`Library` puts functions into objects and shared libraries, which every host of the TVM FFI loads.

``tvm_ffi_codegen.torch`` and ``tvm_ffi_codegen.jax`` make operators of functions; they import the framework, and are imported by those who want it.
"""

from . import triton
from .callables import python_callable, stubs
from .compiled import CompiledFunction
from .errors import (
    CodegenError,
    KernelError,
    LinkError,
    LlvmNotFoundError,
    ErrorDetail,
    SignatureError,
    Symbol,
    UndefinedSymbolError,
    UnsupportedTargetError,
)
from .functions import FunctionInfo, functions
from .kernel import Kernel
from .library import Cache, Library, compile
from .look import Explanation, build_info, explain, inspect, install_cpu_allocator, llvm_version
from .signature import CParameter, Parameter, SourceLocation, Prototype, Signature

__version__: str = build_info()["version"]

__all__ = [
    "CParameter",
    "Cache",
    "CodegenError",
    "CompiledFunction",
    "Explanation",
    "FunctionInfo",
    "Kernel",
    "KernelError",
    "Library",
    "LinkError",
    "LlvmNotFoundError",
    "ErrorDetail",
    "Parameter",
    "SourceLocation",
    "Prototype",
    "Signature",
    "SignatureError",
    "Symbol",
    "UndefinedSymbolError",
    "UnsupportedTargetError",
    "build_info",
    "compile",
    "explain",
    "functions",
    "inspect",
    "install_cpu_allocator",
    "llvm_version",
    "python_callable",
    "stubs",
    "triton",
]
