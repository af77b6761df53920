"""Imports every module of the installed package, compiles functions, and calls them. Needs no other package.

``cargo xtask soak --only pythons`` runs it on each version of Python.
"""

import importlib
import pathlib
import pkgutil
import platform
import sys
import tempfile

import tvm_ffi
import tvm_ffi_codegen as tfc


def import_all():
    """Imports each module. Returns how many there are, and the other packages that some of them miss."""
    count, missing = 0, set()
    for module in pkgutil.walk_packages(tfc.__path__, "tvm_ffi_codegen."):
        if module.name.startswith("tvm_ffi_codegen.native"):
            continue  # the library, which is loaded already
        count += 1
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as error:
            if error.name.startswith("tvm_ffi"):
                raise
            missing.add(error.name)
    return count, missing


def message_of(function, *args):
    try:
        function(*args)
    except TypeError as error:
        return str(error)
    raise AssertionError("the call succeeded")


MISMATCH = "Mismatched type of n on argument #0 when calling: `double(n: int64) -> int64`, expected int64, got str"

count, missing = import_all()
double = tfc.compile("double(n: int64) -> int64", tfc.Kernel.host("{ return 2 * n; }"))
assert double(21) == 42
assert message_of(double, "21") == MISMATCH
with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder, "double.so")
    library = tfc.Library().add("double(n: int64) -> int64", tfc.Kernel.host("{ return 2 * n; }"))
    library.link(path)
    assert tvm_ffi.load_module(str(path)).double(4) == 8


@tfc.specialize("pick(n: int64) -> Any", keys=["n % 2 == 0"])
def pick(key):
    word = "even" if key["n % 2 == 0"] else "odd"
    return "pick(n: int64) -> Any", tfc.Kernel.host(f'{{ return "{word}"; }}')


assert [pick(1), pick(2), pick(3)] == ["odd", "even", "odd"]
print(
    f"Python {platform.python_version()}: {count} modules, compiled, linked and called; "
    f"not installed: {', '.join(sorted(missing)) or 'nothing'}"
)
sys.stdout.flush()
