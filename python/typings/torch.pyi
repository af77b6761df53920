# for `import torch` in tvm_ffi_codegen/, where pyright would find the module of that name
from typing import Any

def __getattr__(name: str) -> Any: ...
