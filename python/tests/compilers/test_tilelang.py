"""Kernels of TileLang: compiled C++ runs on the CPU, and cubins are launched on the stand-in driver."""

import ctypes
import functools
import pickle
import struct

import numpy as np
import pages
import pytest
import tvm_ffi
import tvm_ffi_codegen as tfc
from standin import TensorMap
from triton_programs import AMPERE, HOPPER, POINTER, array_at, on_device

try:
    tilelang = pytest.importorskip("tilelang")
except ValueError as error:
    # TileLang 0.1.15 refuses to share a process with apache-tvm-ffi 0.1.13 and later
    pytest.skip(f"TileLang can't be imported: {error}", allow_module_level=True)

import tilelang.language as T
from tvm_ffi_codegen import tilelang as tl

m, n, s = T.dynamic("m"), T.dynamic("n"), T.dynamic("s")
INT, FLOAT = ctypes.c_int32, ctypes.c_float


@T.prim_func
def add(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32"), C: T.Tensor((n,), "float32")):
    with T.Kernel(T.ceildiv(n, 256), threads=128) as bx:
        for i in T.Parallel(256):
            C[bx * 256 + i] = A[bx * 256 + i] + B[bx * 256 + i]


@T.prim_func
def rows(A: T.StridedTensor((m, n), (s, 1), "float32"), B: T.Tensor((m, 2 * n), "float32"), k: T.int32, f: T.float32):
    with T.Kernel(T.ceildiv(n, 256), m, threads=128) as (bx, by):
        for i in T.Parallel(256):
            if bx * 256 + i < n:
                B[by, bx * 256 + i] = A[by, bx * 256 + i] * f
    with T.Kernel(T.ceildiv(k, 128), threads=128) as bx:
        for i in T.Parallel(128):
            if bx * 128 + i < k:
                B[0, bx * 128 + i] += 1.0


@T.prim_func
def scalars(
    A: T.Tensor((n,), "float64"), H: T.Tensor((n,), "float16"), flag: T.bool, h: T.float16, d: T.float64, f: T.float32,
    i8: T.int8, i16: T.int16, i32: T.int32, i64: T.int64, u8: T.uint8, u16: T.uint16, u32: T.uint32, u64: T.uint64,
):  # fmt: skip
    with T.Kernel(T.ceildiv(n, 64), threads=64) as bx:
        for i in T.Parallel(64):
            if flag:
                H[bx * 64 + i] = h
                A[bx * 64 + i] = (
                    d + T.Cast("float64", f) + T.Cast("float64", i8) + T.Cast("float64", i16) + T.Cast("float64", i32)
                    + T.Cast("float64", i64) + T.Cast("float64", u8) + T.Cast("float64", u16) + T.Cast("float64", u32)
                    + T.Cast("float64", u64)
                )  # fmt: skip


def scale(k, dtype="float32"):
    @T.prim_func
    def scale(A: T.Tensor((n, k), dtype), B: T.Tensor((n, k), dtype)):
        with T.Kernel(n, threads=32) as bx:
            for i in T.Parallel(k):
                B[bx, i] = A[bx, i] * T.Cast(dtype, k)

    return scale


def matmul(M, N, K, dtype="float16"):
    @T.prim_func
    def matmul(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, 128), T.ceildiv(M, 128), threads=128) as (bx, by):
            a, b = T.alloc_shared((128, 32), dtype), T.alloc_shared((32, 128), dtype)
            c = T.alloc_fragment((128, 128), "float32")
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, 32), num_stages=3):
                T.copy(A[by * 128, k * 32], a)
                T.copy(B[k * 32, bx * 128], b)
                T.gemm(a, b, c)
            T.copy(c, C[by * 128, bx * 128])

    return matmul


@T.prim_func
def workspace(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32"), k: T.int32):
    W = T.alloc_global((2 * n,), "float32")
    if k > n:
        with T.Kernel(T.ceildiv(n, 64), threads=64) as bx:
            for i in T.Parallel(64):
                W[bx * 64 + i] = A[bx * 64 + i] * 2.0
    with T.Kernel(T.ceildiv(n, 64), threads=64) as bx:
        for i in T.Parallel(64):
            B[bx * 64 + i] = W[bx * 64 + i] + 1.0


@T.prim_func
def cooperative(A: T.Tensor((1024,), "float32"), B: T.Tensor((1024,), "float32")):
    with T.Kernel(4, threads=256) as bx:
        for i in T.Parallel(256):
            A[bx * 256 + i] = 1.0
        T.sync_grid()
        for i in T.Parallel(256):
            B[bx * 256 + i] = A[1023 - bx * 256 - i]


@T.prim_func
def clusters(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
    with T.Kernel(T.ceildiv(n, 128) * 2, threads=64, cluster_dims=(2, 1, 1)) as bx:
        T.pdl_sync()
        for i in T.Parallel(64):
            B[bx * 64 + i] = A[bx * 64 + i]


@T.prim_func
def window(A: T.Tensor((1024,), "float32"), B: T.Tensor((1024,), "float32")):
    with T.Kernel(16, threads=64) as bx:
        T.annotate_l2_hit_ratio({A: 0.5})
        for i in T.Parallel(64):
            B[bx * 64 + i] = A[bx * 64 + i]


def function(compiled):
    return tfc.compile(compiled.signature, compiled.kernel, objects=compiled.objects)


def floats(count):
    return np.arange(count, dtype="float32")


# on the CPU


def test_a_function_of_this_machine_checks_what_tilelang_states():
    compiled = tl.compile(add)
    assert compiled.signature.text == "add(A: Tensor([n], float32), B: Tensor([n], float32), C: Tensor([n], float32))"
    call, a, b, c = function(compiled), floats(1000), np.ones(1000, "float32"), np.zeros(1000, "float32")
    call(a, b, c)
    assert (c == a + 1).all()
    with pytest.raises(ValueError, match=r"C\.shape\[0\]"):
        call(a, b, c[:3])
    with pytest.raises(ValueError, match=r"A\.dtype .* expected float32, got float64"):
        call(a.astype("float64"), b, c)
    with pytest.raises(ValueError, match="strides"):
        call(a[::2], b[::2], c[::2])
    call(a[:0], b[:0], c[:0])


def test_strides_scalars_and_shapes_of_expressions():
    compiled = tl.compile(rows)
    assert compiled.signature.text == (
        "rows(A: Tensor([m, n], float32, strides=[s, 1]), B: Tensor([m, 2 * n], float32), k: int32, f: float32)"
    )
    call, a, b = function(compiled), floats(60).reshape(5, 12), np.zeros((5, 20), "float32")
    call(a[:, 2:], b, 3, 0.5)
    expected = np.zeros((5, 20), "float32")
    expected[:, :10] = a[:, 2:] * 0.5
    expected[0, :3] += 1
    assert (b == expected).all()
    with pytest.raises(ValueError, match=r"B\.shape\[1\]"):
        call(a[:, 2:], np.zeros((5, 19), "float32"), 3, 0.5)
    with pytest.raises(ValueError, match="k"):
        call(a[:, 2:], b, 2**31, 0.5)


def test_each_kind_of_scalar():
    call, a, h = function(tl.compile(scalars)), np.zeros(5), np.zeros(5, "float16")
    call(a, h, True, 1.5, 2.25, 0.5, -1, -300, -70000, -(2**40), 200, 60000, 2**32 - 1, 2**45)
    assert a.tolist() == [2.25 + 0.5 - 1 - 300 - 70000 - 2**40 + 200 + 60000 + 2**32 - 1 + 2**45] * 5
    assert h.tolist() == [1.5] * 5
    a[:] = 0
    call(a, h, False, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
    assert not a.any()
    with pytest.raises(ValueError, match="u8"):
        call(a, h, True, 0, 0, 0, 0, 0, 0, 0, 256, 0, 0, 0)


def test_tensors_that_the_function_returns():
    tfc.install_cpu_allocator()
    compiled = tl.compile(add, out_idx=[-1])
    assert compiled.signature.text.endswith("B: Tensor([n], float32)) -> Tensor([n], float32)")
    a = floats(300)
    assert (np.from_dlpack(function(compiled)(a, a)) == 2 * a).all()
    compiled = tl.compile(scale(3), out_idx=1)
    assert (np.from_dlpack(function(compiled)(a.reshape(100, 3))) == 3 * a.reshape(100, 3)).all()
    # a returned tensor has the sizes of the others
    with pytest.raises(tfc.SignatureError):
        tl.compile(add, out_idx=[0, 1, 2])
    for wrong in (3, [-4]):
        with pytest.raises(tfc.KernelError, match="out_idx: expected the number of a tensor of `add`"):
            tl.compile(add, out_idx=wrong)


def test_a_signature_may_state_more():
    parts = "A: Tensor([n], float32), B: Tensor([n], float32)"
    text = f"lib.add(fast: bool, {parts}, C: Tensor([n], float32, align=8, out=True)) where n % 2 == 0"
    compiled = tl.compile(add, text)
    assert compiled.signature.text == text
    call, a, c = function(compiled), floats(8), np.zeros(8, "float32")
    call(True, a, a, c)
    assert (c == 2 * a).all()
    with pytest.raises(ValueError, match="n % 2 == 0"):
        call(True, a[:3], a[:3], c[:3])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("f(A: Tensor([n], float32), B: Tensor([n], float32))", "expected a parameter `C: Tensor"),
        ("f(A: Tensor([n], float64), B: {}, C: {})", r"`A`: expected Tensor\(\[n\], float32\), got .*float64"),
        ("f(A: Tensor([n, 1], float32), B: {}, C: {})", r"got Tensor\(\[n, 1\], float32\)"),
        ("f(A: Tensor([n], float32, strides=[2]), B: {}, C: {})", "`A`: expected"),
        ('f(A: Tensor([n], float32, device="cuda"), B: {}, C: {})', "`A`: expected"),
        ("f(A: int32, B: {}, C: {}, n: int64)", "`A`: expected"),
        ("f(A: {}, B: {}, C: {}) -> Tensor([n], float32)", "the result: expected no result"),
        ("f(A: Tensor([k], float32), B: Tensor([k], float32), C: Tensor([k], float32))", "`A`: expected"),
    ],
)
def test_a_signature_that_doesnt_fit(text, message):
    with pytest.raises(tfc.KernelError, match=message):
        tl.compile(add, text.replace("{}", "Tensor([n], float32)"))


def test_a_library_needs_no_tilelang(tmp_path):
    compiled = [tl.compile(of) for of in (add, rows)]
    library = tfc.Library()
    for of in compiled:
        library.add(of.signature, of.kernel)
    path = tmp_path / "kernels.so"
    library.link(path, objects=[data for of in compiled for data in of.objects])
    module, a, c = tvm_ffi.load_module(str(path)), floats(500), np.zeros(500, "float32")
    module.add(a, a, c)
    assert (c == 2 * a).all()
    assert [of.name for of in tfc.functions(str(path))] == ["add", "rows"]


def test_variants_are_made_when_they_are_needed():
    made = []

    def factory(k, dtype):
        made.append((k, dtype))
        return scale(k, dtype)

    call = tl.jit(factory, "scale(A: Tensor([n, k], any), B: Tensor([n, k], any))", keys={"k": "k", "dtype": "A.dtype"})
    for k, dtype in ((3, "float32"), (4, "float32"), (3, "int32"), (3, "float32")):
        a, b = np.ones((2, k), dtype), np.zeros((2, k), dtype)
        call(a, b)
        assert (b == k).all()
    assert made == [(3, "float32"), (4, "float32"), (3, "int32")]
    with pytest.raises(ValueError, match=r"B\.dtype"):
        call(np.ones((2, 3), "float32"), np.ones((2, 3), "int32"))
    of_tilelang = tilelang.jit(scale)
    call = tl.jit(of_tilelang, "scale(A: Tensor([n, k], float32), B: Tensor([n, k], float32))", keys={"k": "k"})
    b = np.zeros((2, 5), "float32")
    call(np.ones((2, 5), "float32"), b)
    assert (b == 5).all()


def test_a_kernel_of_tilelang_compile():
    tfc.install_cpu_allocator()
    kernel = tilelang.compile(add, out_idx=[2], target="c")
    compiled, a = tl.compile(kernel), floats(10)
    assert compiled.signature.returns == "Tensor([n], float32)"
    assert (np.from_dlpack(function(compiled)(a, a)) == 2 * a).all()


def test_mistakes():
    with pytest.raises(TypeError, match="func: expected a prim_func of TileLang"):
        tl.compile(scale)
    with pytest.raises(ValueError, match='target: expected "c" or "cuda", got \'hip\''):
        tl.compile(add, target="hip")
    with pytest.raises(ValueError, match="archs: expected none"):
        tl.compile(add, archs=["sm_90"])
    with pytest.raises(ValueError, match="archs: expected at least one"):
        tl.compile(add, target="cuda")
    with pytest.raises(ValueError, match="archs: expected an architecture such as"):
        tl.compile(add, target="cuda", archs=["sm90"])
    with pytest.raises(tfc.CodegenError, match="can't compile TileLang's source:\n.*no-such"):
        tl.compile(add, options=["-fno-such"])
    with pytest.raises(tfc.KernelError, match="expected architectures for a signature without tensors"):
        tl.jit(scale, "f(k: int32)", keys={"k": "k"}, target="cuda")
    first, second = T.dynamic("t"), T.dynamic("t")

    @T.prim_func
    def twice(A: T.Tensor((first,), "float32"), B: T.Tensor((second,), "float32")):
        with T.Kernel(1, threads=32) as bx:
            A[0] = B[0]

    with pytest.raises(tfc.KernelError, match="`twice` has two symbols `t`"):
        tl.compile(twice)


def test_the_compiler_can_be_replaced():
    seen = []

    def compiler(source, arch):
        seen.append((arch, "add_kernel" in source))
        return b"no code"

    compiled = tl.compile(add, compiler=compiler)
    assert compiled.objects == [b"no code"] and seen == [("", True)]
    with pytest.raises(tfc.CodegenError):
        function(compiled)


# on CUDA


@pytest.fixture(scope="module")
def nvrtc():
    try:
        tl._toolkit()
    except tfc.CodegenError as error:
        pytest.skip(str(error))


@functools.lru_cache(maxsize=None)
def cuda(func, *archs):
    return tl.compile(func, target="cuda", archs=archs)


MATMUL = matmul(m, 256, 64)


def test_a_launch(nvrtc, driver):
    compiled = cuda(add, "sm_80", "sm_90a")
    tensor = 'Tensor([n], float32, device="cuda", align=16)'
    assert compiled.signature.text == f"add(A: {tensor}, B: {tensor}, C: {tensor})"
    assert compiled.objects == [] and "launch" in compiled.kernel._made

    def run(index, grid, a, b, c, count):
        part = slice(index.x * 256, min(count, (index.x + 1) * 256))
        array_at(c, count)[part] = array_at(a, count)[part] + array_at(b, count)[part]

    for device in (AMPERE, HOPPER):
        driver.program("add_kernel", [POINTER, POINTER, POINTER, INT], run)
        call, a, c = function(compiled), floats(1000), np.zeros(1000, "float32")
        call(on_device(a, device), on_device(a, device), on_device(c, device))
        assert (c == 2 * a).all()
        [log] = driver.log("cuLaunchKernelEx")
        assert log == f"cuLaunchKernelEx(grid 4 1 1, block 128 1 1, shared 0, device {device})"
        driver.reset()
    with pytest.raises(ValueError, match="align"):
        call(on_device(a[1:]), on_device(a[1:]), on_device(a[1:]))


def test_architectures_with_launches_of_their_own(nvrtc, driver):
    compiled = cuda(MATMUL, "sm_80", "sm_90a")
    call = function(compiled)
    a, b, c = np.zeros((300, 64), "float16"), np.zeros((64, 256), "float16"), np.zeros((300, 256), "float16")
    call(*(on_device(of, AMPERE) for of in (a, b, c)))
    assert driver.log("cuLaunchKernelEx") == ["cuLaunchKernelEx(grid 2 3 1, block 128 1 1, shared 49152, device 0)"]
    assert len(driver.parameters()) == 8 + 8 + 8 + 4
    driver.reset()
    call(*(on_device(of, HOPPER) for of in (a, b, c)))
    assert driver.log("cuLaunchKernelEx") == ["cuLaunchKernelEx(grid 2 3 1, block 256 1 1, shared 49152, device 1)"]
    # in the cubin the parameters begin where the first map is aligned
    data = driver.parameters()[-(128 + 128 + 8 + 4) :]
    for number, (array, box) in enumerate(((a, [32, 128]), (b, [64, 32]))):
        map = TensorMap.from_buffer_copy(data, 128 * number)
        assert (map.address, map.rank, map.bytes) == (array.ctypes.data, 2, 2)
        assert list(map.dims[:2]) == list(array.shape[::-1]) and map.strides[0] == array.strides[0]
        assert list(map.box[:2]) == box and list(map.steps[:2]) == [1, 1]
    assert int.from_bytes(data[256:264], "little") == c.ctypes.data
    assert int.from_bytes(data[264:], "little") == 300


def test_several_kernels_with_a_condition_and_memory_between(nvrtc, driver):
    compiled = cuda(workspace, "sm_90")
    text = compiled.kernel._made[1][0]
    assert "let W = alloc([n * 2], float32, like=A);" in text and "if n < int64(k) {" in text
    with pytest.raises(tfc.KernelError, match="expected a parameter `k: int32`"):
        text = compiled.signature.text.replace(", k: int32", "")
        tl.compile(workspace, text, target="cuda", archs=["sm_90"])
    assert str(function(compiled).signature).startswith("workspace(A")


def test_several_launches(nvrtc, driver):
    call = function(cuda(rows, "sm_90"))
    a, b = np.zeros((5, 12), "float32"), np.zeros((5, 16), "float32")
    call(on_device(a[:, 4:]), on_device(b), 3, 0.5)
    assert driver.log("cuLaunchKernelEx") == [
        "cuLaunchKernelEx(grid 1 5 1, block 128 1 1, shared 0, device 1)",
        "cuLaunchKernelEx(grid 1 1 1, block 128 1 1, shared 0, device 1)",
    ]
    assert [int.from_bytes(driver.parameters()[at : at + 4], "little") for at in (8, 12)] == [3, 8]
    with pytest.raises(ValueError, match="k"):
        call(on_device(a[:, 4:]), on_device(b), -(2**31) - 1, 0.5)


def test_attributes_of_launches(nvrtc, driver):
    call, a, b = function(cuda(cooperative, "sm_90")), floats(1024), floats(1024)
    call(on_device(a), on_device(b))
    # the attributes have the numbers of CUlaunchAttributeID: cooperative, cluster, programmatic
    [log] = driver.log("cuLaunchKernelEx")
    assert "grid 4 1 1" in log and "attribute 2" in log
    driver.reset()
    call = function(cuda(clusters, "sm_90"))
    call(on_device(a), on_device(b))
    [log] = driver.log("cuLaunchKernelEx")
    assert "grid 16 1 1" in log and "attribute 4 = 2 1 1" in log and "attribute 6" in log


def test_scalars_and_elements_of_a_cubin(nvrtc, driver):
    a, h = np.zeros(64), np.zeros(64, "float16")
    function(cuda(scalars, "sm_80"))(
        on_device(a, AMPERE), on_device(h, AMPERE), True, 1.5, 2.25, 0.5, -1, -2, -3, -4, 5, 6, 7, 8
    )
    # TileLang orders the kernel's parameters by their names
    values = struct.unpack("@QQdf?HhiqbiHIQB", driver.parameters())
    half = int(np.float16(1.5).view("uint16"))
    assert values[2:] == (2.25, 0.5, True, half, -2, -3, -4, -1, 64, 6, 7, 8, 5)

    @T.prim_func
    def elements(A: T.Tensor((n,), "float8_e4m3fn"), B: T.Tensor((n,), "bfloat16"), C: T.Tensor((n,), "bool")):
        with T.Kernel(n // 64, threads=64) as bx:
            for i in T.Parallel(64):
                B[bx * 64 + i] = T.Cast("bfloat16", A[bx * 64 + i])
                C[bx * 64 + i] = True

    text = cuda(elements, "sm_90").signature.text
    assert all(dtype in text for dtype in ("[n], float8_e4m3fn", "[n], bfloat16", "[n], bool"))


def test_a_library_for_cuda(nvrtc, driver, tmp_path):
    path, library = tmp_path / "kernels.so", tfc.Library()
    for of in (cuda(add, "sm_80", "sm_90a"), cuda(MATMUL, "sm_80", "sm_90a")):
        library.add(of.signature, of.kernel)
    library.link(path)
    module = tvm_ffi.load_module(str(path))
    arrays = [np.zeros(of, "float16") for of in ((8, 64), (64, 256), (8, 256))]
    module.matmul(*(on_device(of) for of in arrays))
    assert driver.log("cuLaunchKernelEx") == ["cuLaunchKernelEx(grid 2 1 1, block 256 1 1, shared 49152, device 1)"]
    driver.capability(AMPERE, 61)
    with pytest.raises(RuntimeError, match="no image is for cuda:0"):
        module.matmul(*(on_device(of, AMPERE) for of in arrays))


def test_the_order_of_architectures():
    archs = sorted(["compute_80", "sm_80", "sm_90", "sm_90a", "compute_90"], key=tl._specific)
    assert archs == ["sm_90a", "sm_90", "sm_80", "compute_90", "compute_80"]
    assert [tl._fits(of, "c") for of in archs] == [
        "c == 90", "c >= 90 and c < 100", "c >= 80 and c < 90", "c >= 90", "c >= 80"
    ]  # fmt: skip


def test_variants_for_the_device_of_the_call(nvrtc, driver):
    tensor = 'Tensor([n, k], float32, device="cuda")'
    call = tl.jit(scale, f"scale(A: {tensor}, B: {tensor})", keys={"k": "k"}, target="cuda")
    a = np.zeros((4, 8), "float32")
    for device in (AMPERE, HOPPER):
        call(on_device(a, device), on_device(a, device))
    assert call.keys == ("k", "compute_capability")
    assert [tuple(key.values()) for key in call.entries()] == [(8, 80), (8, 90)]


def test_what_a_launch_cant_state(nvrtc):
    with pytest.raises(tfc.KernelError, match="host code of `window` has a call of `__tvm_cuda_stream_set_access"):
        cuda(window, "sm_90")
    wide = 'add(A: {0}, B: {0}, C: {0})'.format('Tensor([n], float32, device="cuda", align=8)')
    with pytest.raises(tfc.KernelError, match="`A`: expected align=16"):
        tl.compile(add, wide, target="cuda", archs=["sm_90"])
    with pytest.raises(tfc.CodegenError, match="can't compile tilelang.cu for sm_90"):
        tl.compile(add, target="cuda", archs=["sm_90"], options=["-include=no_such.h"])


def test_configurations_reach_tilelang_and_nvrtc(nvrtc, monkeypatch):
    seen = []
    monkeypatch.setattr(tl.cuda, "compile", lambda source, archs, options, **_: seen.append(options) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        configs = {"tl.enable_fast_math": True, "tl.device_compile_flags": ["-DA -DB"]}
        tl.compile(add, target="cuda", archs=["sm_90"], pass_configs=configs)
    assert {"--use_fast_math", "-DA", "-DB"} <= set(seen[0])
    configs = {tilelang.PassConfigKey.TL_DISABLE_WARP_SPECIALIZED: True}
    threads = []

    def compiler(source, arch):
        threads.append("__launch_bounds__(128" in source)
        raise RuntimeError

    for given in ({}, configs):
        with pytest.raises(RuntimeError):
            tl.compile(MATMUL, target="cuda", archs=["sm_90"], pass_configs=given, compiler=compiler)
    assert threads == [False, True]


def test_compiled_kernels_are_values(nvrtc):
    compiled = cuda(add, "sm_80", "sm_90a")
    copy = pickle.loads(pickle.dumps(compiled))
    assert copy.signature == compiled.signature and repr(copy.kernel) == repr(compiled.kernel)


def test_the_page(tmp_path):
    pages.check("tilelang", tmp_path)
