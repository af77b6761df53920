"""Prints the time of calls from Python through a dispatch, in microseconds: medians of one run.

    python dispatch.py [--triton]

With ``--triton`` it also launches a Triton kernel, by Triton's own launcher and by ``tfc.triton.jit``. Neither reaches
a device: the driver is a library whose functions return at once, compiled with this machine's C compiler.
"""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROUNDS, CALLS = 41, 20_000


def measure(*functions: Callable[[int], None]) -> list[float]:
    """The medians of several functions' times for a call. They take turns, since a machine's speed changes."""
    times: list[list[float]] = [[] for _ in functions]
    for function in functions:
        function(CALLS)
    for _ in range(ROUNDS):
        for function, of in zip(functions, times):
            start = time.perf_counter()
            function(CALLS)
            of.append((time.perf_counter() - start) / CALLS * 1e6)
    return [statistics.median(of) for of in times]


def calls(function: Callable[..., object], *args: object) -> Callable[[int], None]:
    """A loop that calls a function with up to three arguments."""
    if len(args) == 3:
        a, b, c = args

        def loop(count: int) -> None:
            for _ in range(count):
                function(a, b, c)

    else:
        a, b, c, d = args

        def loop(count: int) -> None:
            for _ in range(count):
                function(a, b, c, d)

    return loop


def growing() -> None:
    import numpy as np
    import tvm_ffi
    import tvm_ffi_codegen as tfc

    signature = "f(x: Tensor([n], any), y: Tensor([n], any), block: int32)"
    keys = [
        "block", "x.dtype", "n % 16 == 0", "y.dtype", "n == 1", "is_aligned(x, 16)", "is_aligned(y, 16)", "x.device.id"
    ]  # fmt: skip
    x, y = (tvm_ffi.from_dlpack(np.zeros(64, "float32")) for _ in range(2))
    variant = tfc.compile(signature.replace("any", "float32"), tfc.Kernel.check_only())
    rows = [(1, 1), (3, 1), (3, 16), (3, 1000), (8, 16)]
    loops = [calls(variant, x, y, 7)]
    for count, entries in rows:

        @tfc.specialize(signature, keys=keys[:count])
        def dispatch(key):
            return variant

        for block in range(entries):
            dispatch(x, y, block + 7)
        assert dispatch.stats()["entries"] == entries
        loops.append(calls(dispatch, x, y, 7))
    direct, *times = measure(*loops)
    print(f"{'a call of the variant itself':50} {direct:7.3f}")
    for (count, entries), of in zip(rows, times):
        what = f"by a dispatch with {count} key{'s' * (count > 1)} and {entries} entr{'ies' if entries > 1 else 'y'}"
        print(f"{what:50} {of:7.3f}  (+{of - direct:.3f})")


#: The results of functions of the driver, by their names: C statements about arguments `a` to `e`, all pointers.
_WRITES = {
    "cuDeviceGet": "*(int*)a = 0;",
    "cuDeviceGetCount": "*(int*)a = 1;",
    "cuDeviceGetAttribute": "*(int*)a = (long)b == 75 ? 9 : (long)b == 76 ? 0 : (long)b == 97 ? 232448 : 1024;",
    "cuDevicePrimaryCtxRetain": "*(void**)a = (void*)8;",
    "cuCtxGetCurrent": "*(void**)a = (void*)8;",
    "cuCtxPopCurrent": "*(void**)a = (void*)8;",
    "cuCtxGetDevice": "*(int*)a = 0;",
    "cuLibraryLoadData": "*(void**)a = (void*)24;",
    "cuLibraryGetKernel": "*(void**)a = (void*)16;",
    "cuKernelGetAttribute": "*(int*)a = 1024;",
    "cuModuleLoadData": "*(void**)a = (void*)24;",
    "cuModuleGetFunction": "*(void**)a = (void*)16;",
    "cuFuncGetAttribute": "*(int*)a = (long)b == 0 ? 1024 : 0;",
    "cuPointerGetAttribute": "*(void**)a = c;",
    "cuDriverGetVersion": "*(int*)a = 13020;",
    "cuLaunchKernelEx": "launched++;",
    "cuGetErrorName": '*(const char**)b = "";',
    "cuGetErrorString": '*(const char**)b = "";',
}


def driver(folder: Path, source: str) -> None:
    """Compiles ``libcuda.so.1`` with all functions that Triton's launcher in C and generated launches call."""
    names = sorted({*re.findall(r"\b(cu[A-Z]\w+)(?=\s*\()", source), *_WRITES, "cuInit", "cuCtxPushCurrent",
                    "cuDevicePrimaryCtxRelease", "cuKernelSetAttribute", "cuLibraryUnload"})  # fmt: skip
    parameters = "void* a, void* b, void* c, void* d, void* e"
    used = "(void)a, (void)b, (void)c, (void)d, (void)e;"
    lines = ["#include <string.h>", "static unsigned long launched;"]
    for name in names:
        body = f"{{ {used} {_WRITES.get(name, '')} return 0; }}"
        # the headers give some functions another name, for another version
        lines += [f"int {of}({parameters}) {body}" for of in (name, f"{name}_v2", f"{name}_v3", f"{name}_v4")]
    table = ", ".join(f'{{"{name}", {name}}}' for name in names)
    lines += [
        f"static const struct {{ const char* name; int (*function)({parameters}); }} all[] = {{ {table} }};",
        "int cuGetProcAddress_v2(const char* name, void** to, int version, unsigned long flags, int* found) {",
        "  (void)version, (void)flags;",
        "  for (unsigned i = 0; i < sizeof all / sizeof *all; i++)",
        "    if (!strcmp(all[i].name, name)) return *to = (void*)all[i].function, found ? *found = 0 : 0, 0;",
        # a driver has all functions, and these launches don't call the others
        "  return *to = (void*)cuInit, found ? *found = 0 : 0, 0;",
        "}",
    ]
    (folder / "driver.c").write_text("\n".join(lines))
    library = folder / "libcuda.so.1"
    options = ["-O2", "-w", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1"]
    subprocess.run(["cc", *options, str(folder / "driver.c"), "-o", str(library)], check=True)


def launches(folder: Path) -> None:
    # Triton looks for its driver's library there when it compiles its launcher
    os.environ["TRITON_LIBCUDA_PATH"] = str(folder)
    import triton

    backend = Path(triton.__file__).parent / "backends/nvidia"
    driver(folder, (backend / "driver.c").read_text())
    import ctypes

    ctypes.CDLL(str(folder / "libcuda.so.1"), mode=ctypes.RTLD_GLOBAL)
    sys.path[:0] = [str(ROOT / "python/tests"), str(ROOT / "tests/gpu")]
    import numpy as np
    import triton.language as tl
    import triton_kernels as kernels
    import tvm_ffi
    import tvm_ffi_codegen as tfc
    from standin import OnDevice

    active = triton.runtime.driver.active
    # as fast as they could be
    active.get_current_device = lambda: 0
    active.get_current_stream = lambda device: 0

    class Pointer:
        """A tensor as Triton's launcher takes it."""

        __slots__ = ("address", "dtype")

        def __init__(self, address: int) -> None:
            self.address, self.dtype = address, tl.float32

        def data_ptr(self) -> int:
            return self.address

    arrays = [np.zeros(1024, "float32") for _ in range(3)]
    pointers = [Pointer(of.ctypes.data) for of in arrays]
    x, y, out = pointers

    def own(count: int) -> None:
        for _ in range(count):
            kernels.add[(1,)](x, y, out, 1024, BLOCK=1024)

    tensors = [tvm_ffi.from_dlpack(OnDevice(of, 0)) for of in arrays]
    vectors = ", ".join(f'{name}: Tensor([n], any, device="cuda")' for name in ("x", "y", "out"))
    add = tfc.triton.jit(kernels.add, f"add({vectors}, BLOCK: int32)", grid="ceil_div(n, BLOCK)")
    by_dispatch = calls(add, *tensors, 1024)
    add(*tensors, 1024)
    (variant,) = add.entries().values()
    times = measure(own, by_dispatch, calls(variant, *tensors, 1024))
    whats = ["Triton's own launcher", f"tfc.triton.jit, {len(add.keys)} keys", "the variant that it finds"]
    for what, of in zip(whats, times):
        print(f"{what:50} {of:7.3f}")


def main() -> None:
    print(f"{'microseconds for a call':50} {'median':>7}")
    growing()
    if "--triton" in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as folder:
            launches(Path(folder))


if __name__ == "__main__":
    main()
