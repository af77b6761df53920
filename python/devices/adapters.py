"""Libraries of kernels that other compilers make, for the tests on devices.

    python adapters.py FOLDER [NAME ...]

A compiler needs no device. So you can build the libraries on one machine, and name their directory in
``TVM_FFI_CODEGEN_ADAPTERS`` on another, which needs no compiler.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import tvm_ffi_codegen as tfc

ROOT = Path(__file__).parents[2]
#: The tests of the adapters, whose kernels are also tested here, and what these tests import.
TESTS = [str(ROOT / of) for of in ("python/tests/compilers", "python/tests", "tests/gpu")]
#: The architecture of the images: a number such as 90.
ARCH = int(os.environ.get("TVM_FFI_CODEGEN_ARCH", "90"))
CUDA = 'device="cuda"'


def numba() -> tfc.Library:
    import site

    # NVIDIA's packages are found there, also in directories of PYTHONPATH
    site.getsitepackages = lambda: list(sys.path)
    import _numba_cuda_redirector  # noqa: F401
    import tvm_ffi_codegen.numba
    from numba import cuda

    @cuda.jit
    def saxpy(a, x, y):
        i = cuda.grid(1)
        if i < x.size:
            y[i] = a * x[i] + y[i]

    @cuda.jit
    def total(x, out):
        i, j = cuda.grid(2)
        if i < x.shape[0] and j < x.shape[1]:
            cuda.atomic.add(out, 0, x[i, j])

    library = tfc.Library()
    signature = f"saxpy(a: float32, x: Tensor([n], float32, strides=[s], {CUDA}), y: Tensor([n], float32, {CUDA}))"
    archs = [f"sm_{ARCH}", "compute_80"]
    library.add(signature, tfc.numba.cuda_kernel(saxpy, signature, grid="ceil_div(n, 128)", block=128, archs=archs))
    signature = f"total(x: Tensor([m, n], float64, strides=[s, t], {CUDA}), out: Tensor([1], float64, {CUDA}))"
    grid = ["ceil_div(m, 8)", "ceil_div(n, 8)"]
    return library.add(signature, tfc.numba.cuda_kernel(total, signature, grid=grid, block=[8, 8], archs=archs[:1]))


def warp() -> tfc.Library:
    import tvm_ffi_codegen.warp
    import warp as wp

    @wp.kernel
    def saxpy(a: wp.float32, x: wp.array(dtype=wp.float32), y: wp.array(dtype=wp.float32)):
        i = wp.tid()
        y[i] = a * x[i] + y[i]

    @wp.kernel
    def add(x: wp.array2d(dtype=wp.float32), y: wp.array2d(dtype=wp.float32)):
        i, j = wp.tid()
        y[i, j] = x[i, j] + y[i, j]

    @wp.kernel
    def rotate(x: wp.array(dtype=wp.vec3), q: wp.quat):
        i = wp.tid()
        x[i] = wp.quat_rotate(q, x[i])

    vector, matrix = f"Tensor([n], float32, {CUDA})", f"Tensor([m, n], float32, {CUDA})"
    strided = f"Tensor([m, n], float32, strides=[s, t], {CUDA})"
    library = tfc.Library()
    for kernel, text, dim in [
        (saxpy, f"saxpy(a: float32, x: {vector}, y: {vector})", "n"),
        (add, f"add(x: {strided}, y: {matrix})", ["m", "n"]),
        (rotate, f"rotate(x: Tensor([n, 3], float32, {CUDA}), q: Tuple[float32, float32, float32, float32])", "n"),
    ]:
        signature, made, _ = tfc.warp.kernel(kernel, text, dim=dim, device="cuda", archs=[f"sm_{ARCH}"])
        library.add(signature, made)
    return library


def cutile() -> tfc.Library:
    import cuda.tile as ct
    import tvm_ffi_codegen.cutile

    @ct.kernel
    def add(x, y, out, TILE: ct.Constant[int]):
        i = ct.bid(0)
        a, b = ct.load(x, index=(i,), shape=(TILE,)), ct.load(y, index=(i,), shape=(TILE,))
        ct.store(out, index=(i,), tile=a + b)

    @ct.kernel
    def scale(x, by, TM: ct.Constant[int], TN: ct.Constant[int]):
        i, j = ct.bid(0), ct.bid(1)
        ct.store(x, index=(i, j), tile=ct.load(x, index=(i, j), shape=(TM, TN)) * by)

    library, archs = tfc.Library(), [f"sm_{ARCH}"]
    vector = f"Tensor([n], float32, {CUDA}, align=16)"
    for kernel, text, grid, constants in [
        (add, f"add(x: {vector}, y: {vector}, out: {vector})", "ceil_div(n, TILE)", {"TILE": 1024}),
        (
            scale,
            f"scale(x: Tensor([m, n], float32, {CUDA}, align=16), by: float32)",
            ["ceil_div(m, TM)", "ceil_div(n, TN)"],
            {"TM": 16, "TN": 64},
        ),
    ]:
        signature = tfc.Signature(text)
        library.add(signature, tfc.cutile.kernel(kernel, signature, grid=grid, constants=constants, archs=archs))
    return library


def helion() -> tfc.Library:
    sys.path[:0] = TESTS
    import test_helion as tests
    import tvm_ffi_codegen.helion

    vector = f"Tensor([n], float32, {CUDA}, align=16)"
    signature = f"add(x: {vector}, y: {vector}, out: {vector}) where n >= 2"
    config = [("n >= 65536", tests.LARGE), (None, tests.SMALL)]
    return tfc.Library().add(signature, tfc.helion.kernel(tests.add, signature, archs=[ARCH], config=config))


def tilelang() -> tfc.Library:
    sys.path[:0] = TESTS
    import test_tilelang as tests

    library = tfc.Library()
    for function in (tests.add, tests.rows, tests.MATMUL, tests.workspace, tests.cooperative, tests.clusters):
        compiled = tests.tl.compile(function, target="cuda", archs=[f"sm_{ARCH}a"])
        library.add(compiled.signature, compiled.kernel)
    return library


def cute() -> tfc.Library:
    sys.path[:0] = TESTS
    import test_cute as tests

    kernel = tests.tc.compile(tests.scale, tests.SCALE, archs=[f"sm_{ARCH}a"], **tests.LAUNCH)
    return tfc.Library().add(tests.SCALE, kernel)


#: The functions that make the libraries, by the adapters' names.
LIBRARIES: dict[str, Callable[[], tfc.Library]] = {
    of.__name__: of for of in (numba, warp, cutile, helion, tilelang, cute)
}


def main(folder: str, *names: str) -> None:
    for name in names or LIBRARIES:
        LIBRARIES[name]().link(os.path.join(folder, f"{name}.so"))
        print(name)


if __name__ == "__main__":
    main(*sys.argv[1:])
