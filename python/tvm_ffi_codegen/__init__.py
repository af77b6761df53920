"""Makes checked, fast TVM FFI functions from a compiler's kernels, in the Python process.

Write a :class:`Signature`, and pass a :class:`Kernel`. :func:`compile` turns the two into a ``tvm_ffi.Function`` in
this process. A :class:`Library` writes functions to objects and shared libraries, which every TVM FFI host loads.

``tvm_ffi_codegen.torch`` and ``tvm_ffi_codegen.jax`` turn functions into operators. Each imports its framework, so
import them only where you use it.
"""

from . import cc, cuda, hip, host, triton
from .callables import python_callable, stubs
from .compiled import CompiledFunction
from .dispatch import Dispatch, specialize
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
from .hooks import LaunchInfo, set_launch_hook
from .kernel import Kernel
from .key import Key
from .library import Cache, Library, compile
from .look import Explanation, build_info, explain, inspect, install_cpu_allocator, llvm_version
from .program import Program, program
from .prototype import CParameter, Prototype
from .signature import Parameter, SourceLocation, Signature

__version__: str = build_info()["version"]

__all__ = [
    "CParameter",
    "Cache",
    "CodegenError",
    "CompiledFunction",
    "Dispatch",
    "Explanation",
    "FunctionInfo",
    "Kernel",
    "Key",
    "KernelError",
    "LaunchInfo",
    "Library",
    "LinkError",
    "LlvmNotFoundError",
    "ErrorDetail",
    "Parameter",
    "Program",
    "SourceLocation",
    "Prototype",
    "Signature",
    "SignatureError",
    "Symbol",
    "UndefinedSymbolError",
    "UnsupportedTargetError",
    "build_info",
    "compile",
    "cc",
    "cuda",
    "explain",
    "functions",
    "hip",
    "host",
    "inspect",
    "install_cpu_allocator",
    "llvm_version",
    "program",
    "python_callable",
    "set_launch_hook",
    "specialize",
    "stubs",
    "triton",
]
