"""Prints the time from a kernel's object to a callable function, in milliseconds, as medians of one run.

    python latency.py [COMMAND_LINE]

``COMMAND_LINE`` is the program ``tvm-ffi-codegen``; pass it to measure it too. ``tvm_ffi.cpp.load_inline`` compiles C++
with this machine's compiler. If the package ``apache-tvm-ffi-orcjit`` is installed, its object loader is measured with
the same kernel.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "examples/python_dsl"))

import numpy as np
import tvm_ffi
import tvm_ffi_codegen as tfc
from dsl import kernel

try:
    import tvm_ffi_orcjit as orcjit
except ImportError:
    orcjit = None

TEXT = "saxpy(a: float32, x: Tensor([n], float32), y: Tensor([n], float32))"


@kernel
def saxpy(a: "float32", x: "Tensor([n], float32)", y: "Tensor([n], float32)"):
    for i in range(n):
        y[i] += a * x[i]


def check(function: Callable[..., None]) -> None:
    x, y = np.arange(4, dtype="float32"), np.ones(4, dtype="float32")
    function(2.0, x, y)
    assert y.tolist() == [1, 3, 5, 7]


def show(what: str, make: Callable[[int], Callable[..., None]], times: int) -> None:
    """Prints the median time to make a function. Calls each function once, outside of the measured time."""
    taken = []
    function = None
    for number in range(times):
        # unloads the function before
        function = None
        start = time.perf_counter()
        function = make(number)
        taken.append((time.perf_counter() - start) * 1e3)
        check(function)
    print(f"{what:60} {statistics.median(taken):9.3f}  (fastest {min(taken):.3f}, of {times})")


def main() -> None:
    symbol = tfc.Kernel.symbol(saxpy.symbol)
    objects = [saxpy.object]
    print(f"{'milliseconds':60} {'median':>9}")
    show(
        "signature and object to a function in this process", lambda _: tfc.compile(TEXT, symbol, objects=objects), 201
    )

    def library() -> tfc.Library:
        return tfc.Library().add(TEXT, symbol)

    show("the same, as a library in memory", lambda _: library().load(objects=objects).saxpy, 201)
    show("the same, as a library that wild links", lambda _: library().load(objects=objects, linker="wild").saxpy, 101)
    if orcjit is not None:
        session = orcjit.default_session()
        wrapper = library().object()
        show(
            "an object of the function, and loading it by orcjit",
            lambda _: session.load_module([library().object(), *objects]).saxpy,
            101,
        )
        show("loading such an object by orcjit", lambda _: session.load_module([wrapper, *objects]).saxpy, 101)
    with tempfile.TemporaryDirectory() as folder:
        cache = tfc.Cache(os.path.join(folder, "cache"))
        show("first, into a cache", lambda _: tfc.compile(TEXT, symbol, objects=objects, cache=cache), 1)
        show("again, from the cache", lambda _: tfc.compile(TEXT, symbol, objects=objects, cache=cache), 201)
        if len(sys.argv) > 1:
            (Path(folder) / "k.o").write_bytes(saxpy.object)

            def wrap(linker: str) -> Callable[[int], Callable[..., None]]:
                def make(number: int) -> Callable[..., None]:
                    path = os.path.join(folder, f"{linker}{number}.so")
                    wrap = [sys.argv[1], "wrap", "--signature", TEXT, "--kernel", saxpy.symbol, "--linker", linker]
                    subprocess.run([*wrap, "--object", os.path.join(folder, "k.o"), "-o", path], check=True)
                    return tvm_ffi.load_module(path).saxpy

                return make

            show("the command line to .so (wild), and load", wrap("wild"), 51)
            show("the command line to .so (cc), and load", wrap("cc"), 51)

    source = """
    void saxpy(float a, tvm::ffi::TensorView x, tvm::ffi::TensorView y) {
      for (int64_t i = 0; i < x.size(0); ++i)
        static_cast<float*>(y.data_ptr())[i] += a * static_cast<float*>(x.data_ptr())[i];
    }
    """

    def inline(number: int) -> Callable[..., None]:
        return tvm_ffi.cpp.load_inline(f"inline{os.getpid()}_{number}", cpp_sources=source, functions="saxpy").saxpy

    show("tvm_ffi.cpp.load_inline", inline, 3)


if __name__ == "__main__":
    main()
