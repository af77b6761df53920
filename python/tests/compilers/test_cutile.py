"""cuTile's kernels on the stand-in driver, which reads their cubins and compares each launch with them."""

from __future__ import annotations

import ctypes
import struct

import numpy as np
import pages
import pytest
import tvm_ffi
import tvm_ffi_codegen as tfc

ct = pytest.importorskip("cuda.tile")

from triton_programs import AMPERE, array_at, on_device

from tvm_ffi_codegen import cutile

VECTOR = 'Tensor([n], float32, device="cuda", align=16)'
ADD = f"add(x: {VECTOR}, y: {VECTOR}, out: {VECTOR})"
POINTER, INT = ctypes.c_void_p, ctypes.c_int32


@ct.kernel
def add(x, y, out, TILE: ct.Constant[int]):
    """out = x + y"""
    i = ct.bid(0)
    a, b = ct.load(x, index=(i,), shape=(TILE,)), ct.load(y, index=(i,), shape=(TILE,))
    ct.store(out, index=(i,), tile=a + b)


@ct.kernel
def scale(x, y, by, offset, flag, pair, TILE: ct.Constant[int]):
    i = ct.bid(0)
    tile = ct.load(x, index=(i, 0), shape=(TILE, TILE))
    if flag:
        ct.store(y, index=(i, 0), tile=tile * by + pair[0] + pair[1] + offset)


@ct.kernel
def wide(x: ct.IndexedWithInt64, k: ct.ScalarInt64):
    i = ct.bid(0)
    ct.store(x, index=(i,), tile=ct.load(x, index=(i,), shape=(16,)) + k)


def name_add(driver, entry, tile):
    """Lets a variant of `add` run: each block adds a tile. An array is its pointer, size and stride."""

    def run(index, grid, *args):
        (x, n, one), (y, *_), (out, *_) = args[:3], args[3:6], args[6:]
        assert args[1::3] == (n, n, n) and args[2::3] == (1, 1, 1) and one == 1
        part = slice(index.x * tile, min(n, (index.x + 1) * tile))
        array_at(out, n)[part] = array_at(x, n)[part] + array_at(y, n)[part]

    driver.program(entry, [POINTER, INT, INT] * 3, run)


def entry_of(kernel):
    return kernel._made[1][0].split('"')[1]


def added(function, n, device=1):
    x = np.arange(n, dtype="float32")
    y, out = x[::-1].copy(), np.zeros(n, "float32")
    function(*[on_device(of, device) for of in (x, y, out)])
    return bool((out == x + y).all())


def problem(signature, kernel):
    with pytest.raises(tfc.KernelError) as raised:
        tfc.Library().add(signature, kernel).object()
    return str(raised.value)


def test_add_runs_in_this_process_and_from_a_library(driver, tmp_path):
    kernel = cutile.kernel(add, ADD, grid="ceil_div(n, TILE)", constants={"TILE": 512}, archs=["sm_80", "sm_90"])
    name_add(driver, entry_of(kernel), 512)
    function = tfc.compile(ADD, kernel)
    assert added(function, 1300)
    # each device runs its own cubin, and the driver chooses the threads of a tile kernel
    assert added(function, 100, AMPERE)
    assert driver.log("cuLaunchKernelEx") == [
        "cuLaunchKernelEx(grid 3 1 1, block 1 1 1, shared 0, device 1)",
        "cuLaunchKernelEx(grid 1 1 1, block 1 1 1, shared 0, device 0)",
    ]
    assert len(driver.log("cuLibraryLoadData")) == 2
    path = tmp_path / "add.so"
    tfc.Library().add(ADD, kernel, doc="out = x + y").link(path)
    assert tfc.inspect(path.read_bytes())["needed_libraries"] == []
    assert added(tvm_ffi.load_module(str(path)).add, 600)


def test_arguments_of_every_kind_are_the_cubins_parameters(driver):
    signature = (
        'scale(x: Tensor([m, k], float16, strides=[s, 1], device="cuda", align=16), '
        'y: Tensor([m, 4 * h], float16, device="cuda", noalias=True), by: float16, n: int64, flag: bool, '
        "pair: Tuple[float16, int8]) where s >= k, s % 48 == 0, m % 256 == 0"
    )
    kernel = cutile.kernel(
        scale, signature, grid="ceil_div(m, TILE)", constants={"TILE": 32}, archs=["sm_90"], bind={"offset": "n"}
    )
    # the compiler knows multiples as powers of two: s of 16, m of 128, and 4 * h of 4
    assert "_A2f16_1i128v16l0_2t1_p16i_A2f16_1i128v4l0_2i4t1_p2_Sf16_Si64_Sb8_T2Sf16Si8_I32" in entry_of(kernel)
    function = tfc.compile(signature, kernel)
    x, y = np.zeros((256, 48), "float16")[:, :40], np.zeros((256, 8), "float16")
    function(on_device(x), on_device(y), 0.5, 2**40, True, (1.0, -3))
    halves = [struct.unpack("<H", np.float16(of).tobytes())[0] for of in (0.5, 1.0)]
    arrays = (x.ctypes.data, 256, 40, 48, 1, y.ctypes.data, 256, 8, 8, 1)
    expected = struct.pack("<QiiiiQiiiiHxxxxxxqBxHb", *arrays, halves[0], 2**40, 1, halves[1], -3)
    assert driver.parameters()[: len(expected)] == expected
    assert driver.log("cuLaunchKernelEx") == ["cuLaunchKernelEx(grid 8 1 1, block 1 1 1, shared 0, device 1)"]
    with pytest.raises(ValueError, match=r"s % 48 == 0"):
        function(on_device(np.zeros((256, 40), "float16")), on_device(y), 0.5, 1, True, (1.0, -3))


def test_annotations_and_bindings_decide_the_width(driver):
    signature = 'wide(x: Tensor([n], int64, device="cuda"))'
    kernel = cutile.kernel(wide, signature, grid="ceil_div(n, 16)", archs=["sm_90"], bind={"k": "2 * n"})
    x = np.zeros(20, "int64")
    tfc.compile(signature, kernel)(on_device(x))
    assert driver.parameters() == struct.pack("<Qqqq", x.ctypes.data, 20, 1, 40)
    # a number in `constants` is compiled in, and one that is bound is passed
    assert "_I7" in entry_of(cutile.kernel(wide_unannotated, signature, grid=1, archs=["sm_90"], constants={"k": 7}))
    passed = cutile.kernel(wide_unannotated, signature, grid=1, archs=["sm_90"], bind={"k": 7})
    tfc.compile(signature, passed)(on_device(x))
    assert driver.parameters() == struct.pack("<Qiii", x.ctypes.data, 20, 1, 7)


@ct.kernel
def wide_unannotated(x, k):
    ct.store(x, index=(0,), tile=ct.load(x, index=(0,), shape=(16,)) + k)


@ct.kernel
def paired(pair, sizes: tuple[ct.Constant[int], ct.Constant[int]]):
    tile = ct.load(pair[0], index=(0, 0), shape=sizes)
    ct.store(pair[0], index=(0, 0), tile=tile + pair[1])


def test_tuples_are_bound_item_by_item(driver):
    signature = 'paired(x: Tensor([n, n], int32, device="cuda"))'
    options = {"grid": 1, "archs": ["sm_90"], "constants": {"sizes": (8, 16)}}
    function = tfc.compile(signature, cutile.kernel(paired, signature, bind={"pair": ("x", "n")}, **options))
    x = np.zeros((5, 5), "int32")
    function(on_device(x))
    assert driver.parameters() == struct.pack("<Qiiiii", x.ctypes.data, 5, 5, 5, 1, 5)
    record = 'paired(r: Record("R", x: Tensor([n, n], int32, device="cuda"), by: int16))'
    function = tfc.compile(record, cutile.kernel(paired, record, bind={"pair": ("r.x", "r.by")}, **options))
    function({"x": on_device(x), "by": -2})
    assert driver.parameters() == struct.pack("<Qiiiih", x.ctypes.data, 5, 5, 5, 1, -2)


@pytest.mark.parametrize("dtype", sorted(cutile._DTYPES))
def test_every_dtype_is_compiled(dtype):
    signature = f'copy(x: Tensor([16, n], {dtype}, device="cuda"), y: Tensor([16, n], {dtype}, device="cuda"))'
    kernel = cutile.kernel(copy, signature, grid=1, archs=["sm_100"])
    assert tfc.Library().add(signature, kernel).object()


@ct.kernel
def copy(x, y):
    ct.store(y, index=(0, 0), tile=ct.load(x, index=(0, 0), shape=(16, 16)))


def test_what_may_overlap_is_told():
    def entry(*marks):
        tensors = [f'{name}: Tensor([n, n], int8, device="cuda"{mark})' for name, mark in zip("xy", marks)]
        return entry_of(cutile.kernel(copy, f"copy({', '.join(tensors)})", grid=1, archs=["sm_90"]))

    # g0 is the group of arrays that may overlap
    assert entry("", "").count("_g0") == 2
    assert entry("", ", noalias=True").count("g0") == 0
    assert entry(", noalias=True", ", noalias=True").count("g0") == 0
    one = 'copy(x: Tensor([n, n], int8, device="cuda"))'
    assert entry_of(cutile.kernel(copy, one, grid=1, archs=["sm_90"], bind={"y": "x"})).count("_g0") == 2
    with pytest.raises(tfc.KernelError, match="`x` is passed twice, and the signature states noalias=True"):
        cutile.kernel(copy, one.replace('"cuda"', '"cuda", noalias=True'), grid=1, archs=["sm_90"], bind={"y": "x"})


def test_a_dispatch_compiles_what_a_call_needs(driver):
    tensor = 'Tensor([n], any, device="cuda")'
    signature = f"add(x: {tensor}, y: {tensor}, out: {tensor}, TILE: int32 = 256)"
    function = cutile.jit(add, signature, grid="ceil_div(n, TILE)", constants={"TILE": "TILE"}, keys=["n % 16 == 0"])
    assert "out = x + y" in function.__doc__
    arrays = [on_device(np.zeros(1024, "float32")) for _ in range(3)]
    function(*arrays)
    function(*arrays)
    function(*arrays, 128)
    assert driver.log("cuLaunchKernelEx") == [
        "cuLaunchKernelEx(grid 4 1 1, block 1 1 1, shared 0, device 1)",
        "cuLaunchKernelEx(grid 4 1 1, block 1 1 1, shared 0, device 1)",
        "cuLaunchKernelEx(grid 8 1 1, block 1 1 1, shared 0, device 1)",
    ]
    assert function.stats()["misses"] == 2
    function(*[on_device(np.zeros(1000, "float16"), AMPERE) for _ in range(3)])
    dtypes = {(str(key["x.dtype"]), key["n % 16 == 0"], key["x.device.capability"]) for key in function.entries()}
    assert dtypes == {("float32", True, 90), ("float16", False, 80)}
    with pytest.raises(ValueError, match=r"y\.shape\[0\]"):
        function(arrays[0], on_device(np.zeros(3, "float32")), arrays[2])


def test_an_export_has_no_cutile(driver, tmp_path):
    signature = ADD.replace("float32", "any")
    function = cutile.jit(add, signature, grid="ceil_div(n, 64)", constants={"TILE": 64}, archs=["sm_90"])
    function.prewarm([("float32", "float32", "float32"), ("int32", "int32", "int32")])
    path = tmp_path / "add.so"
    function.export(path)
    loaded = tvm_ffi.load_module(str(path)).add
    loaded(*[on_device(np.zeros(100, "int32")) for _ in range(3)])
    assert driver.log("cuLaunchKernelEx") == ["cuLaunchKernelEx(grid 2 1 1, block 1 1 1, shared 0, device 1)"]
    with pytest.raises(ValueError, match="float16"):
        loaded(*[on_device(np.zeros(100, "float16")) for _ in range(3)])


def test_constants_may_be_functions_of_the_key(driver):
    constants = {"TILE": lambda key: 256 if key["n > 1000"] else 64}
    function = cutile.jit(add, ADD, grid="ceil_div(n, TILE)", constants=constants, keys=["n > 1000"], archs=["sm_90"])
    for n in (100, 2000):
        function(*[on_device(np.zeros(n, "float32")) for _ in range(3)])
    grids = [call.split(",")[0] for call in driver.log("cuLaunchKernelEx")]
    assert grids == ["cuLaunchKernelEx(grid 2 1 1", "cuLaunchKernelEx(grid 8 1 1"]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"constants": None}, "`TILE` is a constant of the kernel: state its value in constants"),
        ({"constants": {"TILE": 16, "M": 1}}, r"constants: the kernel has no parameter `M` \(it has x, y, out, TILE\)"),
        ({"bind": {"z": "x"}}, "bind: the kernel has no parameter `z`"),
        ({"bind": {"TILE": 16}}, "`TILE` is a constant, and it is also bound"),
        ({"bind": {"x": ("x", "y")}}, "tuple|Tuple"),
        ({"archs": []}, "expected at least one architecture such as sm_90, got none"),
        ({"signature": ADD.replace(', device="cuda"', "")}, "expected a tensor on CUDA, got `x` on cpu"),
        ({"signature": ADD.replace("float32", "any")}, "expected a dtype that cuTile has, got `x` of any"),
        ({"signature": ADD.replace("float32", "complex64")}, "got `x` of complex64"),
        ({"signature": ADD.replace("[n]", "[...]")}, "expected a tensor of a stated rank, got `x` of any rank"),
        ({"signature": ADD.replace("float32", "float32, strides=any")}, r"got `strides=any`"),
        ({"signature": ADD.replace("float32", "float32, strides=[s]")}, "state `where s >= 0` in the signature"),
        ({"signature": ADD.replace(f"x: {VECTOR}", "x: str")}, "`x`: expected a tensor or a number, got `x`"),
    ],
)
def test_mistakes_are_errors(changed, message):
    options = {"signature": ADD, "grid": 1, "constants": {"TILE": 16}, "archs": ["sm_90"], **changed}
    with pytest.raises((tfc.KernelError, ct.TileTypeError), match=message):
        cutile.kernel(add, **options)


def test_other_mistakes_are_errors():
    with pytest.raises(TypeError, match="kernel: expected a kernel under @ct.kernel, got <function"):
        cutile.kernel(add._pyfunc, ADD, grid=1, archs=["sm_90"])
    with pytest.raises(TypeError, match="archs: expected a list of str, got 'sm_90'"):
        cutile.kernel(add, ADD, grid=1, archs="sm_90", constants={"TILE": 16})
    with pytest.raises(ValueError, match="expected architectures such as sm_90, got 'compute_90'"):
        cutile.kernel(add, ADD, grid=1, archs=["compute_90"], constants={"TILE": 16})
    with pytest.raises(tfc.KernelError, match="`k`: expected an integer, got `by`, which is float32"):
        signature = 'wide(x: Tensor([n], int64, device="cuda"), by: float32)'
        cutile.kernel(wide, signature, grid=1, archs=["sm_90"], bind={"k": "by"})
    with pytest.raises(tfc.KernelError, match="the kernel has one variant"):
        cutile.jit(add, ADD, grid=1, constants={"TILE": 16}, archs=["sm_90"])
    with pytest.raises(tfc.KernelError, match="expected architectures for a signature without tensors"):
        cutile.jit(add, "add(n: int64)", grid=1)


def test_cutiles_own_errors_are_raised():
    with pytest.raises(ct.TileError, match="sm_75"):
        cutile.kernel(add, ADD, grid=1, archs=["sm_75"], constants={"TILE": 16})
    with pytest.raises(ct.TileError):
        cutile.kernel(add, ADD, grid=1, archs=["sm_90"], constants={"TILE": 17})


def test_the_page(tmp_path):
    pages.check("cutile", tmp_path)
