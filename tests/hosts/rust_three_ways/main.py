"""The library of this program in a Python process: checks its runtime, and its error if it has its own runtime."""

import sys

import tvm_ffi

way, library, kernel = sys.argv[1:]
module = tvm_ffi.load_module(library)


def error(function, *args):
    try:
        function(*args)
    except Exception as exception:
        return f"{type(exception).__name__}: {exception}"
    return None


if way != "external":
    message = error(module.double, 21)
    assert message is not None, "two runtimes met, and nothing said so"
    for part in ["this process has two TVM FFI runtimes", "libtvm_ffi.so", "feature `external`"]:
        assert part in message, message
    sys.exit()

sys.stdout.write(module.three_ways(kernel))

assert module.double(21) == 42
assert module.count(1, None, "x") == 3
assert error(module.double, "x").startswith(
    "TypeError: Mismatched type on argument #0 when calling: `double(0: int) -> int`. Expected `int` but got"
), error(module.double, "x")
assert error(module.make_circle, "c", -1) == "ValueError: -1 is negative"
assert error(module.three_ways, "no_such_library.so") is not None
assert module.get_function_metadata("double") is not None
assert module.get_function_doc("double") == "Doubles a number."

# A type of Rust that Python has no class for.
circle = module.make_circle("round", 3)
assert (circle.radius, circle.label, circle.weight) == (3, "round", 2.0)
assert circle.area(2.0) == 18.0 and circle.larger(module.make_circle("large", 5)) == 5
circle.label = "renamed"
assert circle.label == "renamed"
assert error(setattr, circle, "radius", 4) is not None and circle.radius == 3


@tvm_ffi.register_object("three_ways.Thing")
class Thing(tvm_ffi.Object):
    """Made by Python through the type's reflection."""


make = tvm_ffi.get_global_func("ffi.MakeObjectFromPackedArgs")
thing = make("three_ways.Thing", "label", "made here")
assert (thing.label, thing.weight) == ("made here", 1.5)
assert isinstance(circle, tvm_ffi.Object) and not isinstance(thing, type(circle))
