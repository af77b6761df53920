"""The language for users: ``@kernel`` turns a Python function into a checked function, for this process and libraries.

All code for the TVM FFI is between the two marks.
"""

from __future__ import annotations

import ast
import inspect
import textwrap

# begin: TVM FFI
import tvm_ffi_codegen as tfc
from compiler import compile_function


class Kernel:
    """A function of the language. Creating it compiles it."""

    def __init__(self, function) -> None:
        lines, first = inspect.getsourcelines(function)
        tree = ast.parse(textwrap.dedent("".join(lines))).body[0]
        file, name = inspect.getsourcefile(function), tree.name

        def place(node: ast.AST) -> tfc.SourceLocation:
            return tfc.SourceLocation(file, first + node.lineno - 1, name)

        types = {arg.arg: ast.literal_eval(arg.annotation) for arg in tree.args.args}
        locations = {"signature": place(tree), **{arg.arg: place(arg) for arg in tree.args.args}}
        self.signature = tfc.Signature.build(name, types, locations=locations)
        self.symbol = f"{name}_kernel"
        # `x.data` is the array `x`, `a.value` the number `a`, `n` a size
        parameters = [
            (parameter.type, parameter.key.removesuffix(".data").removesuffix(".value"))
            for parameter in self.signature.prototype().parameters
        ]
        self.object = compile_function(tree, self.symbol, parameters)
        self.doc = function.__doc__
        self.call = tfc.compile(self.signature, tfc.Kernel.symbol(self.symbol), objects=self.object)

    def __call__(self, *args):
        return self.call(*args)


def link(path: str, *kernels: Kernel) -> None:
    """Links kernels into a library that every TVM FFI host loads."""
    library = tfc.Library()
    for kernel in kernels:
        library.add(kernel.signature, tfc.Kernel.symbol(kernel.symbol), doc=kernel.doc)
    library.link(path, objects=[kernel.object for kernel in kernels])
# end: TVM FFI


def kernel(function) -> Kernel:
    """Compiles a function. Its annotations are types in the text form of signatures."""
    return Kernel(function)
