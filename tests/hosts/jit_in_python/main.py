"""A compiler in a shared library, in a Python process. Python imports `tvm_ffi` before or after it loads the library.

The library's symbols are local or global.
"""

import ctypes
import sys

way, order, path = sys.argv[1:]
RAN = "2 [1.0, 2.0] ValueError: by is 0"
TWO = ["this process has two TVM FFI runtimes", "libtvm_ffi.so", "feature `external`", "`hidden`"]


def load(mode=ctypes.RTLD_LOCAL):
    library = ctypes.CDLL(path, mode=mode)
    library.jit_run.restype = library.jit_define.restype = ctypes.c_char_p
    return library


def run(library):
    return library.jit_run().decode()


def define(library, name):
    return library.jit_define(name.encode()).decode()


def has(text, parts):
    for part in parts:
        assert part in text, text


if order == "first":
    import tvm_ffi

    library = load()
    before = None
elif order == "first, global":
    import tvm_ffi

    library = load(ctypes.RTLD_GLOBAL)
    before = None
else:
    library = load(ctypes.RTLD_GLOBAL if order == "last, global" else ctypes.RTLD_LOCAL)
    before = run(library)
    # A bundled runtime with global symbols replaces Python's: the process ends here, with a message.
    import tvm_ffi

after, defined = run(library), define(library, "jit.divide")
function = tvm_ffi.get_global_func("jit.divide", allow_missing=True)

if way == "external":
    if before is not None:
        has(before, ["no TVM FFI runtime", "`import tvm_ffi`", "TVM_FFI_LIBRARY"])
    assert after == RAN, after
    assert defined == "jit.divide is defined", defined
    import numpy

    x = tvm_ffi.from_dlpack(numpy.array([3.0, 6.0, 9.0]))
    assert function(x, 3) == 3
    assert numpy.from_dlpack(x).tolist() == [1.0, 2.0, 3.0]
    try:
        function(x, 0)
    except ValueError as error:
        assert str(error) == "by is 0", error
    else:
        raise AssertionError("not raised")
    try:
        function(x)
    except TypeError as error:
        has(str(error), ["divide(x: Tensor([n], float64), by: int64) -> int64"])
    else:
        raise AssertionError("not raised")
elif way == "hidden":
    # It works, but other runtimes don't see its function.
    assert before in (None, RAN), before
    assert after == RAN, after
    assert defined == "jit.divide is defined", defined
    assert function is None
else:
    assert before in (None, RAN), before
    # A library that is loaded first uses its own symbols; one that is loaded second uses Python's.
    if order == "last":
        assert after == RAN, after
    else:
        has(after, TWO)
    has(defined, TWO)
    assert function is None
print(f"{way}, {order}: as expected")
