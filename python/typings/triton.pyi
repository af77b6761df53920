# for `import triton` in tvm_ffi_codegen/, where pyright would find the folder of that name
from typing import Any

def __getattr__(name: str) -> Any: ...
