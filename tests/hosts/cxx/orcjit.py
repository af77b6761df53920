"""apache-tvm-ffi-orcjit loads an object. Its modules are C++ objects: they import those of libraries, and these them."""

import os
import sys

import tvm_ffi
import tvm_ffi_orcjit

TESTING = os.path.join(os.path.dirname(tvm_ffi.__file__), "lib/libtvm_ffi_testing.so")


def show_error(what, body):
    try:
        print(what, body())
    except Exception as error:
        print(what, type(error).__name__, str(error).splitlines()[0])


session = tvm_ffi_orcjit.ExecutionSession()
module = session.load_module(sys.argv[1])
print(module.kind, module.get_property_mask() if hasattr(module, "get_property_mask") else "")
print("add", module.add(2, 3), module.get_function("add")(4, 5))
print("joined", module.joined("a text of some length, ", "and another"))
show_error("fail", lambda: module.fail(7))
show_error("missing", lambda: module.get_function("missing"))
print("implements", module.implements_function("add"), module.implements_function("missing"))
show_error("write", lambda: module.write_to_file("/nowhere/x", "o"))
print("source", repr(module.inspect_source()), list(module.get_write_formats()))

show_error("before there is one", lambda: module.imported(5))
tvm_ffi.register_global_func("hosts.scale", lambda x: x * 100)
print("imported", module.imported(5))

library = tvm_ffi.load_module(TESTING)
module.import_module(library)
print("imports", [imported.kind for imported in module.imports])
print("from the library", module.get_function("testing_dll_schema_id_int", query_imports=True)(9))
other = session.load_module(open(sys.argv[1], "rb").read(), name="other")
library.import_module(other)
print("imports", [imported.kind for imported in library.imports])
print("through the library", library.get_function("add", query_imports=True)(5, 6))
show_error("cycle", lambda: other.import_module(module))
library.clear_imports()
print("cleared", len(library.imports))
add = module.add
del module, other
print("the code stays", add(1, 1))
