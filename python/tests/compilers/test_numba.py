"""Numba's kernels: run in this process and from libraries, and launched on the stand-in driver as cubins."""

from __future__ import annotations

import ctypes
import gc
import resource
import site
import subprocess
import sys

import numpy as np
import pages
import pytest
import tvm_ffi
import tvm_ffi_codegen as tfc
from triton_programs import AMPERE, HOPPER, POINTER, array_at, on_device

numba = pytest.importorskip("numba")

import tvm_ffi_codegen.numba  # noqa: F401
from numba import carray, cfunc, njit, prange, types

SAXPY = "saxpy(a: float32, x: Tensor([n], float32), y: Tensor([n], float32))"
NUMBERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)] + ["float32", "float64"]


@pytest.fixture(scope="module", autouse=True)
def allocator():
    tfc.install_cpu_allocator()


def saxpy(a, x, y):
    """y += a * x"""
    for i in range(x.shape[0]):
        y[i] += a * x[i]


def compiled(function, signature, **options):
    return tfc.compile(signature, tfc.numba.kernel(function, signature, **options))


def loaded(function, signature, path, **options):
    """The function of a library that is linked to a path."""
    kernel, object = tfc.numba.aot(function, signature, **options)
    tfc.Library().add(signature, kernel).link(path, objects=object)
    return tvm_ffi.load_module(str(path)).get_function(tfc.Signature(signature).name)


def test_a_function_takes_whole_arrays():
    function = tfc.numba.jit(SAXPY)(saxpy)
    x, y = np.arange(5, dtype="float32"), np.ones(5, "float32")
    function(2.0, x, y)
    assert y.tolist() == [1, 3, 5, 7, 9]
    assert isinstance(function, tfc.CompiledFunction) and function.__name__ == "saxpy"
    assert function.__doc__.startswith("y += a * x")
    function(2.0, x[:0], y[:0])
    with pytest.raises(ValueError, match=r"y\.shape\[0\]"):
        function(2.0, x, y[:4])
    with pytest.raises(ValueError, match="stride|contiguous"):
        function(2.0, x[::2], y[:3])
    with pytest.raises(ValueError, match="expected float32, got float64"):
        function(2.0, x.astype("float64"), y)


@pytest.mark.parametrize("dtype", ["bool", *NUMBERS])
def test_scalars_and_items_of_all_dtypes(dtype):
    def pick(a, x, out):
        out[()] = x[x.shape[0] - 1, 1]
        return a

    signature = f"pick(a: {dtype}, x: Tensor([n, 3], {dtype}, strides=[s, t]), out: Tensor([], {dtype})) -> {dtype}"
    function = compiled(pick, signature)
    x, out = np.arange(24).astype(dtype).reshape(3, 8).T[::2, :], np.zeros((), dtype)
    low = True if dtype == "bool" else 1.5 if "float" in dtype else 200 if dtype == "uint8" else -3
    low = 3 if dtype.startswith("uint") and dtype != "uint8" else low
    assert function(low, x, out) == low
    assert out == x[-1, 1] and out != 0


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_items(dtype):
    def turn(x, y):
        for i in range(x.shape[0]):
            y[i] = x[i] * 1j

    x, y = np.array([1, 2j], dtype), np.zeros(2, dtype)
    compiled(turn, f"turn(x: Tensor([n], {dtype}), y: Tensor([n], {dtype}))")(x, y)
    assert y.tolist() == [1j, -2]


def test_arrays_have_their_shapes_and_strides():
    def fill(x, shape, strides):
        for axis in range(x.ndim):
            shape[axis], strides[axis] = x.shape[axis], x.strides[axis]
        shape[3], strides[3] = x.size, x.itemsize
        return x[1, 2, 2]

    tail = "shape: Tensor([4], int64), strides: Tensor([4], int64)) -> float64"
    memory = np.arange(4 * 6 * 10, dtype="float64").reshape(4, 6, 10)
    for x, type in [
        (memory, "Tensor([k, 2 * m, n], float64)"),
        (memory[:, ::2, 1::3], "Tensor([k, m, n], float64, strides=[r, s, t])"),
        (memory.transpose(2, 1, 0), "Tensor([k, m, n], float64, strides=[1, s, t])"),
    ]:
        shape, strides = np.zeros(4, "int64"), np.zeros(4, "int64")
        assert compiled(fill, f"fill(x: {type}, {tail}")(x, shape, strides) == x[1, 2, 2]
        assert shape.tolist() == [*x.shape, x.size] and strides.tolist() == [*x.strides, 8]


def test_names_are_those_of_the_signature():
    def scaled(m, y, by, n, x):
        for i in range(n):
            y[i] = by * x[i] + m

    signature = "scaled(by: float64, x: Tensor([n], int32), y: Tensor([n], float64), m: int8, unused: str)"
    function = compiled(scaled, signature)
    y = np.zeros(3)
    function(0.5, np.arange(3, dtype="int32"), y, -1, "")
    assert y.tolist() == [-1, -0.5, 0]

    def first(result):
        return result[0]

    # a parameter has precedence over a result
    assert compiled(first, "first(result: Tensor([n], float64)) -> float64")(np.arange(3.0) + 7) == 7


def test_results_are_scalars_and_tensors():
    def both(x, result_1, result_0):
        result_0[:] = 1
        result_1[:] = x.shape[0]

    def double(x, result):
        result[:] = 2 * x

    x = np.arange(3, dtype="float32")
    types_of = "Tuple[Tensor([2 * n], float32), Tensor([max(n - 1, 1), 1], int64)]"
    first, second = map(np.from_dlpack, compiled(both, f"both(x: Tensor([n], float32)) -> {types_of}")(x))
    assert first.tolist() == [1] * 6 and second.tolist() == [[3], [3]]
    result = compiled(double, "double(x: Tensor([n], float32)) -> Tensor([n], float32)")(x)
    assert np.from_dlpack(result).tolist() == [0, 2, 4]


class OwnError(Exception):
    """An exception that the TVM FFI doesn't know."""


def raising(x, by):
    if by == 1:
        raise ValueError("one")
    if by == 2:
        raise IndexError(f"by is {by}")
    if by == 3:
        raise OwnError("mi\ne", by)
    if by == 4:
        raise KeyError
    if by == 5:
        raise AssertionError("five")
    return x[by] / by


def test_exceptions_are_errors_of_the_call(tmp_path):
    signature = "raising(x: Tensor([n], float64), by: int64) -> float64"
    x = np.arange(9.0)
    here = compiled(raising, signature, options={"boundscheck": True})
    there = loaded(raising, signature, tmp_path / "raising.so", options={"boundscheck": True})
    for by, kind, message, in_library in [
        (1, ValueError, "one", "one"),
        (2, IndexError, "by is 2", "<value>"),
        (3, RuntimeError, "('mi\\ne', 3)", "('mi\\ne', '<value>')"),
        (4, KeyError, "''", "''"),
        (5, AssertionError, "five", "five"),
        (0, ZeroDivisionError, "division by zero", "division by zero"),
        (99, IndexError, "index is out of bounds", "index is out of bounds"),
    ]:
        for function, text in [(here, message), (there, in_library)]:
            with pytest.raises(kind) as told:
                function(x, by)
            assert type(told.value) is kind and str(told.value) == text
            assert function(x, 8) == 1


def test_functions_under_njit_and_cfunc():
    @njit(error_model="numpy")
    def divide(a, b):
        return a / b

    function = compiled(divide, "divide(a: float64, b: float64) -> float64")
    assert function(1, 0) == np.inf
    with pytest.raises(ZeroDivisionError):
        compiled(divide, "divide(a: float64, b: float64) -> float64", options={"error_model": "python"})(1, 0)

    @cfunc(types.float64(types.CPointer(types.float64), types.int32, types.float32, types.voidptr))
    def total(x, n, start, y):
        for value in carray(x, n):
            start += value
        if start < 0:
            raise ValueError("negative")
        return start

    signature = "total(start: float64, x: Tensor([n], float64), y: Tensor([n], int8)) -> float64"
    function = compiled(total, signature)
    assert function(0.5, np.arange(4.0), np.zeros(4, "int8")) == 6.5
    with pytest.raises(ValueError, match="negative"):
        function(-9, np.arange(4.0), np.zeros(4, "int8"))
    with pytest.raises(tfc.KernelError, match=r"`x`: expected array\(float32, 1d, C\) or float32\*, got float64\*"):
        compiled(total, signature.replace("float64),", "float32),"))
    with pytest.raises(tfc.KernelError, match="`start` is int64 in the signature"):
        compiled(total, signature.replace("start: float64", "start: int64"))
    with pytest.raises(tfc.KernelError, match="expected the result none, got float64"):
        compiled(total, signature.replace(" -> float64", ""))

    @cfunc(types.void(types.float32[:, ::1], types.float32[:, :]))
    def copy(x, y):
        y[:] = x

    rows = "Tensor([n, m], float32{})"
    x, y = np.arange(6, dtype="float32").reshape(2, 3), np.zeros((2, 3), "float32")
    compiled(copy, f"copy(x: {rows.format('')}, y: {rows.format('')})")(x, y)
    assert (x == y).all()
    with pytest.raises(tfc.KernelError, match=r"`x`: expected array\(float32, 2d, A\)"):
        compiled(copy, f"copy(x: {rows.format(', strides=[s, 1]')}, y: {rows.format('')})")


def test_numbas_own_features_work_in_the_process(capfd):
    @njit
    def helper(x):
        return 2 * x

    def features(x):
        items = [helper(x[0])]
        table = {1: x[1]}
        items.append(table[1])
        total = 0.0
        for i in prange(x.shape[0]):
            total += x[i]
        print("sum", total)
        return total + items[0] + items[1]

    signature = "features(x: Tensor([n], float64)) -> float64"
    function = compiled(features, signature, options={"parallel": True, "fastmath": True})
    assert function(np.arange(1.0, 5)) == 14
    assert "sum 10.0" in capfd.readouterr().out
    with pytest.raises(tfc.KernelError, match=r"`features` can't run without Python and Numba: .*numba_dict_"):
        tfc.numba.aot(features, signature)


def test_code_lives_as_long_as_its_function():
    functions = []
    for number in range(3):
        namespace = {}
        exec(f"def add(x): return x + {number}", namespace)
        functions.append(compiled(namespace["add"], "add(x: int64) -> int64"))
    del namespace
    gc.collect()
    assert [function(10) for function in functions] == [10, 11, 12]


def test_dtypes_and_ranks_are_variants(tmp_path):
    @tfc.numba.jit("total(x: Tensor([...], any, strides=any), y: Tensor([n], float64)) -> float64", max_entries=8)
    def total(x, y):
        """Sums all items."""
        sum = 0.0
        for value in x.flat:
            sum += value
        return sum + y.shape[0]

    assert isinstance(total, tfc.Dispatch) and total.keys == ("x.dtype", "x.ndim")
    y = np.zeros(2)
    assert total(np.ones((2, 3))[::2, ::2], y) == 4
    assert total(np.ones((4, 3)), y) == 14
    assert total(np.ones((), "int8"), y) == 3
    assert total(np.array([True, False]), y) == 3
    stats = total.stats()
    assert (stats["misses"], stats["hits"]) == (3, 1)
    with pytest.raises(tfc.KernelError, match="`x`: expected a dtype of bool, int8, .*, got .*float16"):
        total(np.ones(3, "float16"), y)
    assert total.__doc__.startswith("Sums all items.")
    total.export(tmp_path / "total.so")
    module = tvm_ffi.load_module(str(tmp_path / "total.so"))
    assert module.total(np.ones((2, 3)), y) == 8
    with pytest.raises(ValueError, match="no row of `total"):
        module.total(np.ones((2, 3, 4)), y)


def test_variants_keep_the_values_of_their_exceptions():
    @tfc.numba.jit("refuse(x: Tensor([n], any))")
    def refuse(x):
        raise ValueError(f"{x.shape[0]} items")

    with pytest.raises(ValueError, match="^7 items$"):
        refuse(np.ones(7))
    with pytest.raises(tfc.KernelError, match="address of this process"):
        refuse.library().object()


def test_variants_may_need_numbas_libraries():
    @tfc.numba.jit("last(x: Tensor([n], any)) -> float64")
    def last(x):
        items = [0.0]
        for value in x:
            items.append(value)
        return items[-1]

    assert last(np.arange(5)) == 4
    assert last(np.arange(3.0)) == 2


def test_strides_may_be_any():
    @tfc.numba.jit("copy(x: Tensor([n, m], float32, strides=any), y: Tensor([n, m], float32, strides=any))")
    def copy(x, y):
        y[:] = x

    x, y = np.arange(6, dtype="float32").reshape(2, 3), np.zeros((3, 2), "float32")
    copy(x, y.T)
    assert (y.T == x).all()


RUNS_WITHOUT_NUMBA = """
import sys
sys.modules["numba"] = sys.modules["llvmlite"] = None
import numpy as np, tvm_ffi
module = tvm_ffi.load_module(sys.argv[1])
x, y = np.arange(5.0), np.ones(5)
print(module.work(2.0, x, y), y.tolist())
try:
    module.work(0.0, x, y)
except ZeroDivisionError as error:
    print("ZeroDivisionError", error)
except RuntimeError as error:
    print("RuntimeError", error)
try:
    module.work(1.0, x, y[:3])
except ValueError as error:
    print("ValueError", error)
"""


def work(a, x, y):
    temporary = np.zeros(x.shape[0])
    temporary[:] = x / a
    y[:] = temporary + np.sin(a * x)
    return (x * x).sum() + 1 / a


def test_a_library_runs_without_numba(tmp_path):
    signature = "work(a: float64, x: Tensor([n], float64), y: Tensor([k], float64)) -> float64"
    path = tmp_path / "work.so"
    loaded(work, signature, path)
    done = subprocess.run([sys.executable, "-c", RUNS_WITHOUT_NUMBA, path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    printed, division, shapes = done.stdout.splitlines()
    x = np.arange(5.0)
    assert printed == f"30.5 {(x / 2 + np.sin(2 * x)).tolist()}"
    # only a process that imports the adapter knows this kind of error
    assert division == "RuntimeError division by zero"
    assert shapes.startswith("ValueError ")
    symbols = tfc.inspect(path.read_bytes())["needed_symbols"]
    assert not [of for of in symbols if "Py" in str(of) or "numba" in str(of) or "NRT" in str(of)]


def test_a_library_frees_what_its_kernels_allocate(tmp_path):
    def fill(x):
        return np.ones(1_000_000).sum() + np.zeros(x.shape[0]).sum()

    signature = "fill(x: Tensor([n], float64)) -> float64"
    function = loaded(fill, signature, tmp_path / "fill.so")
    x = np.zeros(3)
    function(x)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(100):
        assert function(x) == 1_000_000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # kilobytes; all of it is 800_000


def test_objects_are_for_a_cpu():
    _, generic = tfc.numba.aot(saxpy, SAXPY)
    kernel, host = tfc.numba.aot(saxpy, SAXPY, cpu="host")
    assert generic[:4] == host[:4] == b"\x7fELF"
    function = tfc.compile(SAXPY, kernel, objects=host)
    y = np.ones(3, "float32")
    function(3.0, np.ones(3, "float32"), y)
    assert y.tolist() == [4, 4, 4]


def test_mistakes_are_errors():
    def one(x):
        return x

    def strange(x):
        return x.nothing

    for type, message in [
        ("float16", "expected a tensor on device cpu, or a scalar of bool, handle, int8, .*, got float16"),
        ("str", "got str"),
        ("Optional[Tensor([n], float32)]", r"got Optional\[Tensor"),
        ("Tensor([n], float16)", r"`x`: expected a dtype of bool, .*, got Tensor\(\[n\], float16\)"),
        ("Tensor([n], int8x4)", "`x`: expected a dtype"),
        ("Tensor([n], any)", "`x`: expected a dtype"),
        ("Tensor([...], int8)", "expected a tensor of a fixed number of dimensions"),
        ("Tensor([n], int8, strides=any)", r"expected strides with names, such as strides=\[s, t\], got"),
        ('Tensor([n], int8, device="cuda")', "expected a tensor on device cpu, got"),
    ]:
        with pytest.raises(tfc.KernelError, match=message):
            tfc.numba.kernel(one, f"one(x: {type})")
    with pytest.raises(tfc.KernelError, match=r"expected parameters with names of the signature \(y, n\), got `x`"):
        tfc.numba.kernel(one, "one(y: Tensor([n], float32))")
    with pytest.raises(tfc.KernelError, match="expected a result that is a tensor or a scalar of bool, .*, got str"):
        tfc.numba.kernel(one, "one(x: int64) -> str")
    with pytest.raises(tfc.KernelError, match="expected positional parameters, got `\\*x`"):
        tfc.numba.kernel(lambda *x: None, "one(x: int64)")
    with pytest.raises(tfc.KernelError, match=r"Numba \S+ can't compile `strange` for one\(x: int64\)") as told:
        tfc.numba.kernel(strange, "one(x: int64)")
    assert "Unknown attribute 'nothing'" in str(told.value) and "\x1b" not in str(told.value)
    with pytest.raises(tfc.KernelError, match="can't compile `one`"):
        tfc.numba.kernel(one, "one(x: int64)")  # the signature has no result
    with pytest.raises(TypeError, match="function: expected a Python function, or one under @numba.njit or"):
        tfc.numba.kernel("one", "one(x: int64)")
    with pytest.raises(ValueError, match="options: Unrecognized options: {'fast'}"):
        tfc.numba.kernel(one, "one(x: int64) -> int64", options={"fast": True})
    with pytest.raises(tfc.SignatureError):
        tfc.numba.jit("one(")


@pytest.fixture(scope="module")
def cuda():
    """``numba.cuda`` of the package numba-cuda."""
    # a directory on PYTHONPATH has no .pth files, and NVIDIA's packages there aren't among the site's
    pytest.importorskip("_numba_cuda_redirector")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(site, "getsitepackages", lambda: list(sys.path))
        try:
            from numba import cuda

            cuda.compile_ptx(lambda: None, types.void(), cc=(8, 0))
        except RuntimeError as error:
            pytest.skip(f"numba-cuda has no compiler: {error}")
        yield cuda


DEVICE = 'device="cuda"'
CUDA_SAXPY = (
    f"saxpy(a: float32, x: Tensor([n], float32, {DEVICE}), y: Tensor([n, m], float32, strides=[s, t], {DEVICE}))"
)
LONG, FLOAT = ctypes.c_int64, ctypes.c_float


def device_saxpy(cuda):
    def saxpy(a, x, y):
        i = cuda.grid(1)
        if i < x.size:
            y[i, 0] += a * x[i]

    return saxpy


def test_a_cuda_kernel_is_launched_with_numbas_structs(cuda, driver):
    kernel = tfc.numba.cuda_kernel(
        device_saxpy(cuda), CUDA_SAXPY, grid="ceil_div(n, 128)", block=128, archs=["sm_80", "sm_90"]
    )
    array = [POINTER, POINTER, LONG, LONG, POINTER]

    def run(index, grid, a, *parts):
        (x, y) = parts[:7], parts[7:]
        assert x[:4] == (None, None, 300, 4) and x[5:] == (300, 4)
        assert y[:4] == (None, None, 600, 4) and y[5:] == (300, 2, 32, 16)
        part = slice(index.x * 128, min(300, (index.x + 1) * 128))
        array_at(y[4], 300 * 8)[::8][part] += a * array_at(x[4], 300)[part]

    driver.program("saxpy_kernel", [FLOAT, *array, *[LONG] * 2, *array, *[LONG] * 4], run)
    function = tfc.compile(CUDA_SAXPY, kernel)
    for device in (AMPERE, HOPPER):
        x, memory = np.arange(300, dtype="float32"), np.ones((300, 8), "float32")
        function(2.0, on_device(x, device), on_device(memory[:, ::4], device))
        assert (memory[:, 0] == 2 * x + 1).all() and (memory[:, 1:] == 1).all()
        # a float, then 8-byte parts
        assert len(driver.parameters()) == 8 + 8 * (7 + 9)
    assert driver.log("cuLaunchKernelEx") == [
        f"cuLaunchKernelEx(grid 3 1 1, block 128 1 1, shared 0, device {device})" for device in (AMPERE, HOPPER)
    ]


def test_cuda_kernels_are_ptx_and_cubins_of_a_library(cuda, tmp_path):
    @cuda.jit(fastmath=True)
    def scale(by, flag, x, n):
        shared = cuda.shared.array(64, types.float32)
        i = cuda.grid(1)
        shared[cuda.threadIdx.x] = x[i]
        cuda.syncthreads()
        if i < n and flag:
            x[i] = by / shared[cuda.threadIdx.x]

    signature = f"scale(x: Tensor([n], float32, {DEVICE}), by: float32, flag: bool, blocks: int32, s: Stream = None)"
    kernel = tfc.numba.cuda_kernel(
        scale, signature, grid="blocks", block=64, archs=["compute_80", "sm_90"], stream="s", shared_memory="4 * n"
    )
    path = tmp_path / "scale.so"
    tfc.Library().add(signature, kernel, doc="Scales.").link(path)
    [function] = tfc.functions(path)
    [launch] = function.metadata["launches"]
    text = "launch scale_kernel grid=blocks block=64 shared_memory=4 * n args=[by, flag, null, null, "
    assert launch["launch"].startswith(text)
    ptx, cubin = launch["images"]
    assert (ptx["kind"], cubin["kind"], cubin["targets"]) == ("PTX", "cubin", ["sm_90"])
    sizes = [of["size"] for of in cubin["entry"]["parameters"]]
    assert sizes == [4, 1, *[8] * 7, 8] == [of["size"] for of in ptx["entry"]["parameters"]]
    assert cubin["entry"]["static_shared"] >= 256
    images = kernel._made[1][1]
    assert b"div.approx" in images[0] and images[1].startswith(b"\x7fELF")


@pytest.mark.parametrize("dtype", ["bool", *NUMBERS, "float16", "bfloat16", "complex64", "complex128"])
def test_cuda_kernels_of_all_dtypes(cuda, dtype):
    def copy(x, y):
        i = cuda.grid(1)
        if i < x.size:
            y[i] = x[i]

    signature = f"copy(x: Tensor([n], {dtype}, {DEVICE}), y: Tensor([n], {dtype}, {DEVICE}))"
    kernel = tfc.numba.cuda_kernel(copy, signature, grid=1, block=32, archs=["compute_80"])
    size = {"bool": 1, "complex64": 8, "complex128": 16}.get(dtype) or int("".join(filter(str.isdigit, dtype))) // 8
    launch = tfc.inspect(tfc.Library().add(signature, kernel).object())["functions"][0]["metadata"]["launches"][0]
    assert f"int64(x.shape[0]), int64({size})" in launch["launch"]


def test_mistakes_of_cuda_kernels(cuda):
    function, launch = device_saxpy(cuda), {"grid": 1, "block": 32}
    with pytest.raises(ValueError, match='archs: expected architectures such as "sm_80" or "compute_80", got "sm80"'):
        tfc.numba.cuda_kernel(function, CUDA_SAXPY, archs=["sm80"], **launch)
    with pytest.raises(tfc.KernelError, match="`x`: expected a tensor on device cuda, got"):
        tfc.numba.cuda_kernel(function, SAXPY, archs=["sm_80"], **launch)
    with pytest.raises(tfc.KernelError, match="`x`: expected a dtype of bool, .*float16.*, got"):
        signature = CUDA_SAXPY.replace("x: Tensor([n], float32", "x: Tensor([n], float8_e4m3fn")
        tfc.numba.cuda_kernel(function, signature, archs=["sm_80"], **launch)
    with pytest.raises(tfc.KernelError, match=r"Numba \S+ can't compile `wrong`"):

        def wrong(x):
            x[0] = x.nothing

        tfc.numba.cuda_kernel(wrong, CUDA_SAXPY, archs=["sm_80"], **launch)
    with pytest.raises(TypeError, match="function: expected a Python function"):
        tfc.numba.cuda_kernel(b"ptx", CUDA_SAXPY, archs=["sm_80"], **launch)


def test_the_page(tmp_path):
    pages.check("numba", tmp_path)
