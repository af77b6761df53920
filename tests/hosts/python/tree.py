"""Prints the import tree of a library: `tree.py LIBRARY KIND`; KIND as for main.py."""

import sys

import tvm_ffi


def show(module, depth=0):
    print("  " * depth + module.kind)
    for imported in module.imports:
        show(imported, depth + 1)


kind = tvm_ffi.load_module(sys.argv[2])
module = tvm_ffi.load_module(sys.argv[1])
show(module)
print("pear:", module.get_function("price_of", query_imports=True)("pear"))
