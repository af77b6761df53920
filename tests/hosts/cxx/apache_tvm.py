"""apache-tvm compiles functions and a model. Its modules are C++ objects: generated code, executables, libraries."""

import os
import sys
import tempfile

import numpy as np
import tvm
import tvm_ffi
from tvm import relax, te

x = np.arange(16, dtype="float32")


def called(function):
    result = np.zeros(16, dtype="float32")
    function(tvm_ffi.from_dlpack(x), tvm_ffi.from_dlpack(result))
    return result


a = te.placeholder((16,), name="a", dtype="float32")
b = te.compute((16,), lambda i: a[i] * 2.0 + 1.0, name="b")
module = tvm.IRModule({"main": te.create_prim_func([a, b]).with_attr("global_symbol", "main")})
print(module.script())
again = tvm.IRModule({"main": te.create_prim_func([a, b]).with_attr("global_symbol", "main")})
print("equal", tvm_ffi.structural_equal(again, module), tvm_ffi.structural_hash(again))
source = tvm.compile(module, target="c")
print(source.mod.kind, "\n".join(source.mod.inspect_source().splitlines()[-20:]))
compiled = tvm.compile(module, target="llvm")
print(compiled.mod.kind, called(compiled.mod["main"]))
print("implements", compiled.mod.implements_function("main"), compiled.mod.implements_function("missing"))
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "exported.so")
    compiled.export_library(path)
    loaded = tvm_ffi.load_module(path)
    print(loaded.kind, called(loaded["main"]))

    builder = relax.BlockBuilder()
    argument = relax.Var("x", relax.TensorType((4, 4), "float32"))
    weights = relax.const(np.arange(12, dtype="float32").reshape(4, 3))
    with builder.function("main", [argument]):
        with builder.dataflow():
            product = builder.emit(relax.op.matmul(argument, weights))
            result = builder.emit_output(relax.op.nn.relu(relax.op.subtract(product, relax.const(20.0))))
        builder.emit_func_output(result)
    model = builder.get()
    executable = tvm.compile(model, target="llvm")
    print(executable.mod.kind, [imported.kind for imported in executable.mod.imports])
    value = tvm.runtime.tensor(np.ones((4, 4), dtype="float32"))
    print(relax.VirtualMachine(executable, tvm.cpu())["main"](value).numpy())
    path = os.path.join(folder, "model.so")
    executable.export_library(path)
    model = tvm.runtime.load_module(path)
    print(model.kind, [imported.kind for imported in model.imports])
    print(relax.VirtualMachine(model, tvm.cpu())["main"](value).numpy())
try:
    tvm.compile(module, target="nonsense")
except ValueError as error:
    print("error", str(error).splitlines()[0])
sys.stdout.flush()
