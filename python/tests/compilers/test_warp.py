"""Warp's kernels: on the CPU for real, and on the stand-in driver, which compares each launch with Warp's cubins."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from typing import Any

import numpy as np
import pages
import pytest
import tvm_ffi
import tvm_ffi_codegen as tfc

wp = pytest.importorskip("warp")

from triton_programs import AMPERE, array_at, on_device

from tvm_ffi_codegen import warp

wp.config.log_level = wp.LOG_WARNING
# before a test loads the stand-in driver, which Warp would take for a device
wp.init()

POINTER = ctypes.c_void_p
SAXPY = "saxpy(a: float32, x: Tensor([n], float32), y: Tensor([n], float32))"


@wp.kernel
def saxpy(a: float, x: wp.array(dtype=float), y: wp.array(dtype=float)):
    """y += a * x"""
    i = wp.tid()
    y[i] = a * x[i] + y[i]


@wp.kernel
def waves(x: wp.array(dtype=float)):
    i = wp.tid()
    if wp.isfinite(x[i]):
        x[i] = wp.sin(x[i]) + 0.25


@wp.kernel
def scale(x: wp.array(dtype=Any, ndim=2), by: Any):
    i, j = wp.tid()
    x[i, j] = x[i, j] * by


@wp.kernel(grid_stride=False)
def lean(x: wp.array(dtype=float)):
    i = wp.tid()
    x[i] = 1.0


@wp.kernel(cluster_dim=2)
def clustered(x: wp.array(dtype=float)):
    i = wp.tid()
    x[i] = 1.0


@wp.kernel
def tiles(x: wp.array2d(dtype=float), y: wp.array2d(dtype=float)):
    i, j = wp.tid()
    wp.tile_store(y[i], wp.tile_map(wp.sin, wp.tile_load(x[i], shape=64, storage="shared")))


@wp.struct
class Config:
    alpha: float
    axis: wp.vec3
    weights: wp.array(dtype=wp.float64)
    half: wp.float16
    is_on: bool


@wp.kernel
def configured(c: Config, extra: wp.array(dtype=float), y: wp.array(dtype=float), m: wp.mat22, u: wp.uint64):
    i = wp.tid()
    y[i] = c.alpha + c.axis[1] + float(c.weights[i]) + float(c.half) + m[1, 0]
    if c.is_on:
        y[i] += 100.0
    if extra:
        y[i] += extra[i]
    if u == wp.uint64(0x8000000000000000):
        y[i] += 1000.0


@wp.kernel
def shares_the_struct(c: Config, y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = c.alpha


CONFIG = (
    'Record("Config", alpha: float64, axis: Tuple[float32, float32, float32], weights: Tensor([n], float64), '
    "half: float16, is_on: bool)"
)
CONFIGURED = (
    f"configured(c: {CONFIG}, extra: Optional[Tensor([n], float32)], y: Tensor([n], float32), "
    "m: Tuple[float32, float32, float32, float32], u: uint64)"
)


def loaded(made):
    module = tfc.Library().add(made.signature, made.kernel).load(objects=made.objects)
    return module.get_function(made.signature.name)


def entry_of(kernel):
    return kernel._made[1][0].split('"')[1]


def launch_of(kernel):
    return kernel._made[1][0]


class Array(ctypes.Structure):
    """Warp's own ``array_t``."""

    _fields_ = [
        ("data", ctypes.c_uint64),
        ("grad", ctypes.c_uint64),
        ("shape", ctypes.c_int32 * 4),
        ("strides", ctypes.c_int32 * 4),
        ("ndim", ctypes.c_uint16),
        ("flags", ctypes.c_uint16),
    ]


def test_the_structs_are_warps():
    from warp._src import types

    assert ctypes.sizeof(types.array_t) == ctypes.sizeof(Array) == warp._ARRAY_SIZE
    for (name, *_), (own, *_) in zip(types.array_t._fields_, Array._fields_):
        assert name == own and getattr(types.array_t, name).offset == getattr(Array, own).offset
    offsets = [getattr(Array, name).offset for name in ("grad", "shape", "strides", "ndim")]
    assert offsets == [warp._GRAD, warp._SHAPE, warp._STRIDES, warp._RANK]
    for rank in range(1, 5):
        text, _ = warp._bounds(["n"] * rank, rank)
        assert text.startswith(f"struct(size={ctypes.sizeof(types.launch_bounds_t((1,) * rank))}, align=8, ")


def test_saxpy_runs_in_this_process_and_from_a_library(tmp_path):
    signature, kernel, objects = warp.kernel(saxpy, SAXPY, dim="n")
    function = tfc.compile(signature, kernel, objects=objects)
    x, y = np.arange(8, dtype="float32"), np.ones(8, "float32")
    function(2.0, x, y)
    assert (y == 2 * x + 1).all()
    with pytest.raises(ValueError, match=r"y\.shape\[0\]"):
        function(2.0, x, y[:3])
    function(1.0, x[:0], y[:0])
    path = tmp_path / "saxpy.so"
    tfc.Library().add(signature, kernel, doc="y += a * x").link(path, objects=objects)
    code = (
        "import sys, numpy as np, tvm_ffi\n"
        f"module = tvm_ffi.load_module({str(path)!r})\n"
        "y = np.ones(3, 'float32'); module.saxpy(2.0, np.arange(3, dtype='float32'), y)\n"
        "print(y.tolist(), 'warp' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[1.0, 3.0, 5.0] False\n"


def test_a_library_needs_nothing_of_warp(tmp_path):
    made = warp.kernel(waves, "waves(x: Tensor([n], float32))", dim="n")
    x = np.array([0.0, 1.0, np.inf], "float32")
    loaded(made)(x)
    assert np.allclose(x[:2], [0.25, np.sin(1.0) + 0.25]) and np.isinf(x[2])
    path = tmp_path / "waves.so"
    tfc.Library().add(made.signature, made.kernel).link(path, objects=made.objects)
    assert not any("warp" in of for of in tfc.inspect(path.read_bytes())["needed_libraries"])


def test_structs_vectors_and_missing_arrays():
    function = loaded(warp.kernel(configured, CONFIGURED, dim="n"))
    config = {"alpha": 1.0, "axis": (1.0, 2.0, 3.0), "weights": np.arange(4.0), "half": 0.25, "is_on": True}
    y, matrix = np.zeros(4, "float32"), (0.0, 0.0, 8.0, 0.0)
    function(config, None, y, matrix, 7)
    assert (y == 111.25 + np.arange(4)).all()
    function({**config, "is_on": False}, np.ones(4, "float32"), y, matrix, 7)
    assert (y == 12.25 + np.arange(4)).all()
    with pytest.raises(ValueError, match=r"c\.weights\.shape\[0\]|weights"):
        function({**config, "weights": np.zeros(3)}, None, y, matrix, 7)


def test_kernels_with_one_struct_are_in_one_library():
    first = warp.kernel(configured, CONFIGURED, dim="n")
    second = warp.kernel(shares_the_struct, f"second(c: {CONFIG}, y: Tensor([n], float32))", dim="n")
    library = tfc.Library().add(first.signature, first.kernel).add(second.signature, second.kernel)
    module = library.load(objects=[*first.objects, *second.objects])
    config = {"alpha": 2.5, "axis": (1.0, 2.0, 3.0), "weights": np.arange(4.0), "half": 0.25, "is_on": True}
    y = np.zeros(4, "float32")
    module.second(config, y)
    assert (y == 2.5).all()


@wp.kernel
def rank1(x: wp.array(dtype=wp.int32), y: wp.array(dtype=wp.int32)):
    i = wp.tid()
    y[i] = 2 * x[i]


@wp.kernel
def rank2(x: wp.array2d(dtype=wp.int32), y: wp.array2d(dtype=wp.int32)):
    i, j = wp.tid()
    y[i, j] = 2 * x[i, j]


@wp.kernel
def rank3(x: wp.array3d(dtype=wp.int32), y: wp.array3d(dtype=wp.int32)):
    i, j, k = wp.tid()
    y[i, j, k] = 2 * x[i, j, k]


@wp.kernel
def rank4(x: wp.array4d(dtype=wp.int32), y: wp.array4d(dtype=wp.int32)):
    i, j, k, l = wp.tid()
    y[i, j, k, l] = 2 * x[i, j, k, l]


@pytest.mark.parametrize("rank", [1, 2, 3, 4])
@pytest.mark.parametrize("is_strided", [False, True])
def test_ranks_and_strides(rank, is_strided):
    sizes = [f"n{at}" for at in range(rank)]
    strides = f", strides=[{', '.join(f's{at}' for at in range(rank))}]" if is_strided else ""
    shape = f"[{', '.join(sizes)}]"
    signature = f"double(x: Tensor({shape}, int32{strides}), y: Tensor({shape}, int32))"
    function = loaded(warp.kernel([rank1, rank2, rank3, rank4][rank - 1], signature, dim=sizes))
    x = np.arange(2 * 3 * 4 * 5, dtype="int32").reshape([(-1,), (2, -1), (2, 3, -1), (2, 3, 4, 5)][rank - 1])
    # every other element, the last dimension first
    x = x[..., ::2].T if is_strided else x
    y = np.zeros(x.shape, "int32")
    function(x, y)
    assert (y == 2 * x).all()


@wp.kernel
def points(x: wp.array(dtype=wp.vec3), m: wp.array(dtype=wp.mat22), v: wp.vec3):
    i = wp.tid()
    x[i] = x[i] + v * m[i][1, 0]


def test_vectors_are_last_sizes():
    signature = (
        "points(x: Tensor([n, 3], float32, strides=[s, 1]), m: Tensor([n, 2, 2], float32), "
        "v: Tuple[float32, float32, float32])"
    )
    function = loaded(warp.kernel(points, signature, dim="n"))
    x, m = np.zeros((4, 5), "float32"), np.arange(16, dtype="float32").reshape(4, 2, 2)
    function(x[:, :3], m, (1.0, 2.0, 3.0))
    assert (x[:, :3] == m[:, 1, :1] * np.array([1, 2, 3])).all() and not x[:, 3:].any()


@pytest.mark.parametrize("dtype", sorted(set(warp._SCALARS) - {"bool", "bfloat16"}))
def test_a_generic_kernel_gets_its_types_from_the_signature(dtype):
    made = warp.kernel(scale, f"scale(x: Tensor([n, m], {dtype}), by: {dtype})", dim=["n", "m"])
    x = np.arange(6).reshape(2, 3).astype(dtype)
    loaded(made)(x, 3)
    assert (x == 3 * np.arange(6).reshape(2, 3)).all()


def test_a_dispatch_compiles_for_each_dtype(tmp_path):
    @warp.jit("scale(x: Tensor([n, m], any), by: float32)", dim=["n", "m"])
    @wp.kernel
    def by_dtype(x: wp.array(dtype=Any, ndim=2), by: float):
        """x *= by"""
        i, j = wp.tid()
        x[i, j] = x[i, j] * x.dtype(by)

    for dtype in ("float32", "int64", "float32"):
        x = np.arange(6, dtype=dtype).reshape(2, 3)
        by_dtype(x, 2.0)
        assert (x == 2 * np.arange(6).reshape(2, 3)).all()
    assert {str(key["x.dtype"]) for key in by_dtype.entries()} == {"float32", "int64"}
    assert by_dtype.stats()["misses"] == 2 and "x *= by" in by_dtype.__doc__
    # an object that uses the global offset table, for calls and constants
    sine = warp.jit("sine(x: Tensor([n], float32))", dim="n")(waves)
    x, y = np.ones(3, "float32"), np.ones(3, "float32")
    sine(x)
    sine.export(tmp_path / "sine.so")
    tvm_ffi.load_module(str(tmp_path / "sine.so")).sine(y)
    assert np.allclose(x, np.sin(1.0) + 0.25) and (x == y).all()


@wp.kernel
def every(x: wp.array(dtype=Any), y: wp.array(dtype=Any)):
    i = wp.tid()
    y[i] = x[i]


def test_every_dtype_has_a_type_of_warp():
    for dtype in ("bool", "bfloat16"):
        made = warp.kernel(every, f"every(x: Tensor([n], {dtype}), y: Tensor([n], {dtype}))", dim="n")
        assert tfc.Library().add(made.signature, made.kernel).load(objects=made.objects)
    x, y = np.array([True, False]), np.array([False, True])
    loaded(warp.kernel(every, "every(x: Tensor([n], bool), y: Tensor([n], bool))", dim="n"))(x, y)
    assert y.tolist() == [True, False]


def test_bindings_are_names_expressions_and_numbers():
    signature = "f(k: float64, u: Tensor([n], float32), y: Tensor([n], float32))"
    x, y = np.arange(3, dtype="float32"), np.ones(3, "float32")
    loaded(warp.kernel(saxpy, signature, dim="n", bind={"a": "k", "x": "u"}))(2.0, x, y)
    assert y.tolist() == [1.0, 3.0, 5.0]
    loaded(warp.kernel(saxpy, signature, dim="n", bind={"a": 0.5, "x": "u"}))(2.0, x, y)
    assert y.tolist() == [1.0, 3.5, 6.0]

    @wp.kernel
    def fill(y: wp.array(dtype=float), k: wp.int8, flag: bool):
        if flag:
            y[wp.tid()] = float(k)

    signature = "fill(y: Tensor([n], float32), on: bool)"
    function = loaded(warp.kernel(fill, signature, dim="n", bind={"k": "2 * n", "flag": "on"}))
    function(y, True)
    assert y.tolist() == [6.0, 6.0, 6.0]
    with pytest.raises(ValueError, match="int8"):
        function(np.zeros(100, "float32"), True)
    loaded(warp.kernel(fill, signature, dim="n", bind={"k": -7, "flag": True}))(y, False)
    assert y.tolist() == [-7.0, -7.0, -7.0]


def test_arrays_of_warp_are_arguments():
    made = warp.kernel(points, dim="x.shape[0]")
    x, m = wp.ones(2, dtype=wp.vec3, device="cpu"), wp.ones(2, dtype=wp.mat22, device="cpu")
    loaded(made)(x, m, (1.0, 2.0, 3.0))
    assert x.numpy().tolist() == [[2.0, 3.0, 4.0]] * 2


def test_dims_are_padded_and_folded_as_in_warp():
    @wp.kernel
    def count(x: wp.array(dtype=wp.int32), y: wp.array(dtype=wp.int32)):
        i, j = wp.tid()
        wp.atomic_add(x, i, 1)
        y[i] = j

    signature = "count(x: Tensor([n], int32), y: Tensor([n], int32), m: int64)"
    x, y = np.zeros(3, "int32"), np.zeros(3, "int32")
    loaded(warp.kernel(count, signature, dim="n"))(x, y, 0)
    assert x.tolist() == [1, 1, 1] and y.tolist() == [0, 0, 0]
    loaded(warp.kernel(count, signature, dim=["n", "m", 4]))(x, y, 5)
    ours = x.tolist(), y.tolist()
    assert ours == ([21, 21, 21], [4, 4, 4])
    arrays = [wp.zeros(3, dtype=wp.int32, device="cpu") for _ in range(2)]
    wp.launch(count, [3, 1], arrays, device="cpu")
    wp.launch(count, [3, 5, 4], arrays, device="cpu")
    assert ours == tuple(of.numpy().tolist() for of in arrays)
    with pytest.raises(ValueError, match="m"):
        loaded(warp.kernel(count, signature, dim=["n", "m"]))(x, y, -1)


def test_the_signature_of_the_annotations():
    made = warp.kernel(configured, dim="y.shape[0]")
    assert made.signature.text == (
        'configured(c: Record("Config", alpha: float32, axis: Tuple[float32, float32, float32], '
        "weights: Tensor([c_weights_0], float64), half: float16, is_on: bool), extra: Tensor([extra_0], float32), "
        "y: Tensor([y_0], float32), m: Tuple[float32, float32, float32, float32], u: uint64)"
    )
    y = np.zeros(2, "float32")
    loaded(made)((1.0, (0.0, 2.0, 0.0), np.zeros(2), 0.5, False), np.ones(2, "float32"), y, (0.0,) * 4, 2**63 - 1)
    assert y.tolist() == [4.5, 4.5]
    on_device = warp.kernel(points, dim="x.shape[0]", device="cuda", archs=["sm_90"]).signature
    assert on_device.parameters[0].type == 'Tensor([x_0, 3], float32, device="cuda")'


def on_cuda(signature):
    return signature.replace("float32)", 'float32, device="cuda")')


class Bounds(ctypes.Structure):
    _fields_ = [("shape", ctypes.c_uint32), ("size", ctypes.c_size_t), ("rest", ctypes.c_size_t)]


@pytest.mark.parametrize("block", [None, 64])
def test_saxpy_on_devices(driver, tmp_path, block):
    signature = on_cuda(SAXPY)
    made = warp.kernel(saxpy, signature, dim="n", device="cuda", archs=["sm_80", "sm_90"], block_dim=block)
    threads = block or 256

    def run(index, grid, bounds, a, x, y):
        n = bounds.size
        assert (bounds.shape, bounds.rest) == (n, 1)
        for array in (x, y):
            assert (array.grad, array.ndim, array.flags) == (0, 1, 0)
            assert list(array.shape) == [n, 0, 0, 0] and list(array.strides) == [4, 0, 0, 0]
        part = slice(index.x * threads, min(n, (index.x + 1) * threads))
        array_at(y.data, n)[part] += a * array_at(x.data, n)[part]

    driver.program(entry_of(made.kernel), [Bounds, ctypes.c_float, Array, Array], run)
    path = tmp_path / "saxpy.so"
    tfc.Library().add(signature, made.kernel).link(path)
    x = np.arange(600, dtype="float32")
    for function in (tfc.compile(signature, made.kernel), tvm_ffi.load_module(str(path)).saxpy):
        for device in (1, AMPERE):
            y = np.ones(600, "float32")
            function(2.0, on_device(x, device), on_device(y, device))
            assert (y == 2 * x + 1).all()
        function(2.0, on_device(x[:0]), on_device(y[:0]))
    blocks = -(-600 // threads)
    launches = [f"cuLaunchKernelEx(grid {blocks} 1 1, block {threads} 1 1, shared 0, device {of})" for of in (1, 0)]
    assert driver.log("cuLaunchKernelEx") == launches * 2


def test_all_kinds_of_parameters_are_the_cubins():
    # Warp lays out the struct, and the launch is compared with the sizes that the cubin states
    signature = CONFIGURED.replace("float64),", 'float64, device="cuda"),')
    signature = signature.replace("[n], float32)", '[n], float32, device="cuda")')
    made = warp.kernel(configured, signature, dim="n", device="cuda", archs=["sm_90"])
    assert tfc.Library().add(made.signature, made.kernel).object()
    assert ctypes.sizeof(Config.ctype) == 80 and Config.ctype.half.offset == 72 and Config.ctype.is_on.offset == 74
    launch = launch_of(made.kernel)
    assert "struct(size=80, align=8, 0: cast(c.alpha, float32), 4: " in launch and "72: c.half, 74: c.is_on)" in launch


def test_other_grids_clusters_and_shared_memory(driver):
    vector = 'Tensor([n], float32, device="cuda")'
    x = on_device(np.zeros(2, "float32"))
    made = warp.kernel(lean, f"lean(x: {vector}, m: int64)", dim="m", device="cuda", archs=["sm_90"])
    function = tfc.compile(made.signature, made.kernel)
    for m in (0, 1, 256 * 65536 + 1):
        function(x, m)
    assert driver.log("cuLaunchKernelEx") == [
        "cuLaunchKernelEx(grid 1 1 1, block 256 1 1, shared 0, device 1)",
        "cuLaunchKernelEx(grid 65536 2 1, block 256 1 1, shared 0, device 1)",
    ]
    with pytest.raises(ValueError, match="m = 4294967296"):
        function(x, 2**32)
    driver.reset()
    made = warp.kernel(clustered, f"clustered(x: {vector})", dim=1024, device="cuda", archs=["sm_90"])
    tfc.compile(made.signature, made.kernel)(x)
    (call,) = driver.log("cuLaunchKernelEx")
    assert call.startswith("cuLaunchKernelEx(grid 4 1 1, block 256 1 1, shared 0, device 1, attribute 4 = 2 1 1")
    matrix = 'Tensor([n, 64], float32, device="cuda")'
    signature = f"tiles(x: {matrix}, y: {matrix})"
    made = warp.kernel(tiles, signature, dim=["n", 64], device="cuda", archs=["sm_90"], block_dim=64)
    tfc.compile(made.signature, made.kernel)(*[on_device(np.zeros((3, 64), "float32")) for _ in range(2)])
    assert driver.log("cuLaunchKernelEx")[1] == "cuLaunchKernelEx(grid 3 1 1, block 64 1 1, shared 256, device 1)"


def test_tiles_on_the_cpu():
    matrix = "Tensor([n, 64], float32)"
    made = warp.kernel(tiles, f"tiles(x: {matrix}, y: {matrix})", dim=["n", 1])
    x, y = np.random.default_rng(0).random((3, 64), "float32"), np.zeros((3, 64), "float32")
    loaded(made)(x, y)
    assert np.allclose(y, np.sin(x))


def test_the_default_is_ptx(driver):
    made = warp.kernel(saxpy, on_cuda(SAXPY), dim="n", device="cuda")
    (image,) = made.kernel._made[1][1]
    assert b".target sm_75" in image


def test_an_export_has_the_variants_of_the_moment(driver, tmp_path):
    tensor = 'Tensor([n], any, device="cuda")'
    function = warp.jit(f"every(x: {tensor}, y: {tensor})", dim="n", device="cuda", archs=["sm_80", "sm_90"])(every)
    function.prewarm([("float32", "float32"), ("int8", "int8")])
    function.export(tmp_path / "every.so")
    loaded_function = tvm_ffi.load_module(str(tmp_path / "every.so")).every
    for dtype in ("float32", "int8"):
        loaded_function(*[on_device(np.zeros(3, dtype)) for _ in range(2)])
    assert len(driver.log("cuLaunchKernelEx")) == 2
    with pytest.raises(ValueError, match="int16"):
        loaded_function(*[on_device(np.zeros(3, "int16")) for _ in range(2)])


def test_a_dispatch_compiles_for_the_device(driver):
    function = warp.jit(on_cuda(SAXPY), dim="n", device="cuda")(saxpy)
    for device in (1, AMPERE):
        function(1.0, *[on_device(np.zeros(3, "float32"), device) for _ in range(2)])
    assert [key["x.device.capability"] for key in function.entries()] in ([80, 90], [90, 80])
    assert len(driver.log("cuLaunchKernelEx")) == 2


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"device": "gpu"}, "device: expected cpu or cuda, got 'gpu'"),
        ({"dim": ["n"] * 5}, "dim: expected one to four extents, got 5"),
        ({"block_dim": 64}, "archs and block_dim are those of a launch on CUDA, got them for the CPU"),
        ({"device": "cuda"}, "`x`: expected a tensor on cuda, got `x` on cpu"),
        ({"bind": {"z": "x"}}, r"bind: the kernel has no parameter `z` \(it has a, x, y\)"),
        ({"bind": {"x": "n"}}, "`x` is an array: expected a tensor of the signature, got `n`"),
        ({"bind": {"a": "n"}}, "`a` is float32: expected a number of this kind, got `n`, which is int"),
        ({"bind": {"a": "x"}}, "`a` is float32: expected a number of this kind, got `x`, which is tensor"),
        ({"signature": SAXPY.replace("[n], float32", "[...], float32")}, "a stated rank, got `x` of any rank"),
        ({"signature": SAXPY.replace("float32)", "float32, strides=any)")}, "got `strides=any`"),
        ({"signature": SAXPY.replace("float32)", "float32, device=any)")}, "a tensor on cpu, got `x` on any"),
        ({"signature": SAXPY.replace("[n], float32", "[n], any")}, "expected a tensor of float32, got `x` of any"),
        ({"signature": SAXPY.replace("[n], f", "[n, 3], f")}, r"expected sizes \[...\], got `x` of \[n, 3\]"),
    ],
)
def test_mistakes_are_errors(changed, message):
    with pytest.raises(ValueError, match=message):
        warp.kernel(saxpy, **{"signature": SAXPY, "dim": "n", **changed})


@wp.kernel
def indexed(x: wp.indexedarray(dtype=float)):
    i = wp.tid()
    x[i] = 1.0


@wp.kernel
def of_structs(x: wp.array(dtype=Config)):
    i = wp.tid()


def test_other_mistakes_are_errors():
    with pytest.raises(TypeError, match="kernel: expected a kernel under @wp.kernel, got <function"):
        warp.kernel(saxpy.func, SAXPY, dim="n")
    with pytest.raises(TypeError, match="dim"):
        warp.kernel(saxpy, SAXPY, dim=1.5)
    with pytest.raises(ValueError, match="expected architectures such as sm_90 or compute_75, got 'sm_90a'"):
        warp.kernel(saxpy, on_cuda(SAXPY), dim="n", device="cuda", archs=["sm_90a"])
    with pytest.raises(tfc.KernelError, match="expected at least one architecture"):
        warp.kernel(saxpy, on_cuda(SAXPY), dim="n", device="cuda", archs=[])
    with pytest.raises(ValueError, match="expected 1 to 1024 threads, got 2048"):
        warp.kernel(saxpy, on_cuda(SAXPY), dim="n", device="cuda", block_dim=2048)
    with pytest.raises(tfc.KernelError, match="`x` is a .*indexedarray.*, which no signature has a parameter for"):
        warp.kernel(indexed, "indexed(x: Tensor([n], float32))", dim="n")
    with pytest.raises(tfc.KernelError, match="`x` is an array of .*, which no dtype of a tensor is"):
        warp.kernel(of_structs, "of_structs(x: Tensor([n], float32))", dim="n")
    with pytest.raises(tfc.KernelError, match="`x` is generic: state the signature"):
        warp.kernel(scale, dim=1)
    with pytest.raises(tfc.KernelError, match="`x`: expected a dtype that Warp has, got any"):
        warp.kernel(scale, "scale(x: Tensor([n, m], any), by: float32)", dim=1)
    with pytest.raises(tfc.KernelError, match="`c`: expected a record of alpha, axis, .*, got `c` of alpha"):
        warp.kernel(shares_the_struct, 'f(c: Record("C", alpha: float32), y: Tensor([n], float32))', dim="n")
    with pytest.raises(tfc.KernelError, match="`v`: expected a Tuple of 3 items, got `v`, which is scalar"):
        warp.kernel(points, "f(x: Tensor([n, 3], float32), m: Tensor([n, 2, 2], float32), v: float32)", dim="n")
    with pytest.raises(tfc.KernelError, match=r"`x`: expected last strides \[1\], got \[s, t\]"):
        strided = "x: Tensor([n, 3], float32, strides=[s, t]), m: Tensor([n, 2, 2], float32)"
        warp.kernel(points, f"f({strided}, v: Tuple[float32, float32, float32])", dim="n")
    with pytest.raises(tfc.KernelError, match="expected a signature with a tensor"):
        warp.jit("f(n: int64)", dim="n")
    with pytest.raises(TypeError, match="kernel: expected a kernel under @wp.kernel"):
        warp.jit(SAXPY, dim="n")(saxpy.func)


def test_the_page(tmp_path):
    pages.check("warp", tmp_path)
