"""Triton's parameters and grids in launches: tuples, None, multiples, functions of a grid, and kernels for HIP."""

from __future__ import annotations

import collections
import re
import struct

import numpy as np
import pytest
import tvm_ffi
import tvm_ffi_codegen as tfc

pytest.importorskip("triton")

import triton
import triton.language as tl
import triton_kernels as kernels
from triton_kernels import POINTERS, VECTORS
from triton_programs import BLOCK, name_add, on_device

ADD = f"add({VECTORS})"


def launch(signature, kernel):
    """The launch in the metadata of a library."""
    object = tfc.Library().add(signature, kernel).object()
    (function,) = tfc.inspect(object)["functions"]
    (told,) = function["metadata"]["launches"]
    return told


def text(signature, kernel):
    return launch(signature, kernel)["launch"]


def grid_of(grid, signature=ADD, **options):
    compiled = kernels.compiled(kernels.add, POINTERS, {"BLOCK": BLOCK}, **options)
    found = text(signature, tfc.triton.from_compiled(compiled, signature, grid=grid))
    return re.search(r"grid=(.*) block", found).group(1)


def test_a_grid_is_a_function_of_symbols(driver, tmp_path):
    # versions of Triton before 3.9 write it in the first form
    rounded_up = [f"(n + {BLOCK} - 1) // {BLOCK}", f"(n + {BLOCK - 1}) // {BLOCK}"]
    assert grid_of(lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]),)) in rounded_up
    assert grid_of(lambda meta, n: triton.cdiv(n, meta["BLOCK"])) in rounded_up
    assert grid_of(lambda meta, x: [x.shape[0] % 8, x.numel(), 2]) == "(x.shape[0] % 8, x.shape[0], 2)"
    assert grid_of(lambda meta: 3 - (1 - meta["n"]) * 2) == "3 - (1 - n) * 2"
    assert grid_of(lambda meta: (-meta["n"] + 2 * meta["num_warps"] - (meta["n"] - 5))) == "0 - n + 8 - (n - 5)"
    assert grid_of(lambda meta: (100 // meta["n"], 7 % meta["n"], +meta["n"])) == "(100 // n, 7 % n, n)"
    assert grid_of(lambda meta, x: x.stride(0) * (x.size(0) + x.ndim)) == "x.strides[0] * (x.shape[0] + 1)"
    # a text may be more than arithmetic
    assert grid_of(lambda meta, n: f"min({n}, 4)") == "min(n, 4)"
    compiled = kernels.compiled(kernels.add, POINTERS, {"BLOCK": BLOCK})
    kernel = tfc.triton.from_compiled(compiled, ADD, grid=lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]),))
    tfc.Library().add(ADD, kernel).link(tmp_path / "add.so")
    name_add(driver)
    x = np.arange(2500, dtype="float32")
    out = np.zeros_like(x)
    tvm_ffi.load_module(str(tmp_path / "add.so")).add(*map(on_device, (x, x, out)))
    assert (out == 2 * x).all()
    assert driver.log("cuLaunchKernelEx")[0].startswith("cuLaunchKernelEx(grid 3 1 1,")


@pytest.mark.parametrize(
    "grid, error, message",
    [
        (lambda meta: min(meta["n"], 4), TypeError, r"expected \+ - \* // % and triton.cdiv with `n`.*f\"min\("),
        (lambda meta: meta["n"] / 4, TypeError, "which only a call knows"),
        (lambda meta: 1 if meta["n"] else 2, TypeError, "which only a call knows"),
        (lambda meta: range(meta["n"]), TypeError, "which only a call knows"),
        (lambda meta: meta["n"] == 4, TypeError, "which only a call knows"),
        (lambda meta: meta["n"] * 0.5, TypeError, "grid: expected an int, got 0.5"),
        (lambda meta: meta["m"], tfc.KernelError, "grid: expected one of num_warps, .*BLOCK, got 'm'"),
        (lambda meta, m: 1, tfc.KernelError, r"grid: expected names of the signature \(x, y, out, n\), got `m`"),
        (lambda meta: None, TypeError, "grid.*: expected an int"),
        (lambda meta: (), ValueError, "grid: expected one to three extents, got 0"),
    ],
)
def test_what_the_function_of_a_grid_may_not_do(grid, error, message):
    with pytest.raises(error, match=message):
        grid_of(grid)


def test_constants_are_names_of_a_grid():
    assert grid_of("ceil_div(n, BLOCK)") == f"ceil_div(n, {BLOCK})"
    assert grid_of(["n", "BLOCK * 2"]) == f"(n, {BLOCK} * 2)"
    # the clusters multiply it
    assert grid_of("ceil_div(n, BLOCK)", num_ctas=2) == f"ceil_div(n, {BLOCK}) * 2"


def test_a_constant_that_a_caller_passes_too_is_stated():
    compiled = kernels.compiled(kernels.add, POINTERS, {"BLOCK": 256})
    passed = f"add({VECTORS}, BLOCK: int32)"
    with pytest.raises(tfc.KernelError, match="constant 256: state `where BLOCK == 256` in the signature"):
        tfc.triton.from_compiled(compiled, passed, grid="ceil_div(n, BLOCK)")
    for signature in (passed + " where BLOCK == 256", passed.replace("int32)", "Int(256))")):
        tfc.Library().add(signature, tfc.triton.from_compiled(compiled, signature, grid=1)).object()
    with pytest.raises(tfc.KernelError, match=r"state `BLOCK: Int\(256\)` in the signature"):
        tfc.triton.from_compiled(compiled, passed.replace("int32)", "Int(255))"), grid=1)
    # Triton makes a constant of an integer that is 1
    one = kernels.compiled(kernels.add, {**POINTERS, "n": "constexpr"}, {"BLOCK": 256, "n": 1})
    with pytest.raises(tfc.KernelError, match="state `where n == 1`"):
        tfc.triton.from_compiled(one, ADD, grid=1)
    assert text(ADD + " where n == 1", tfc.triton.from_compiled(one, ADD + " where n == 1", grid=1))


def test_none_is_a_constant_and_never_a_pointer():
    vector = 'Tensor([n], float32, device="cuda")'
    without = kernels.compiled(kernels.biased, {"x": "*fp32", "n": "i32"}, {"b": None, "BLOCK": 128})
    given = kernels.compiled(kernels.biased, {"x": "*fp32", "b": "*fp32", "n": "i32"}, {"BLOCK": 128})
    for rest in ("", ", b: None"):
        signature = f"biased(x: {vector}{rest})"
        assert "args=[x, int32(n), null, null]" in text(
            signature, tfc.triton.from_compiled(without, signature, grid="ceil_div(n, BLOCK)")
        )
    optional = f"biased(x: {vector}, b: Optional[{vector}])"
    with pytest.raises(tfc.KernelError, match="`b` was compiled as the constant None: state `b: None`"):
        tfc.triton.from_compiled(without, optional, grid=1)
    # the kernel would read through NULL, since Triton decides `b is not None` when it compiles
    with pytest.raises(tfc.KernelError, match="compiled for a tensor, and `b` may be None in the signature"):
        tfc.triton.from_compiled(given, optional, grid=1)
    numbers = f"biased(x: {vector}, b: {vector}, m: Optional[int32])"
    with pytest.raises(tfc.KernelError, match="`n` was compiled as i32, and `m` may be None"):
        tfc.triton.from_compiled(given, numbers, grid=1, bind={"n": "m"})


@triton.jit
def scaled(x, t, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    numbers = t[1]
    mask = at < numbers[0]
    tl.store(x + at, tl.load(t[0] + at, mask=mask) * numbers[1] * numbers[2], mask=mask)


def compiled_scaled(divisible=(), tuple_type=tuple):
    source = triton.compiler.ASTSource(
        scaled,
        signature={"x": "*fp32", "t": ("*fp32", ("i32", "fp32", "constexpr")), "BLOCK": "constexpr"},
        constexprs={(1, 1, 2): 3, (2,): 128},
        attrs={path: [["tt.divisibility", 16]] for path in divisible},
    )
    return triton.compile(source, target=triton.backends.compiler.GPUTarget("cuda", 90, 32))


TENSOR = 'Tensor([n], float32, device="cuda")'


def test_tuples_are_flattened(driver):
    compiled = compiled_scaled()
    signature = f"scaled(x: {TENSOR}, t: Tuple[{TENSOR}, Tuple[int32, float32, Int(3)]])"
    kernel = tfc.triton.from_compiled(compiled, signature, grid="ceil_div(n, BLOCK)")
    assert "args=[x, t[0], int32(t[1][0]), cast(t[1][1], float32), null, null]" in text(signature, kernel).replace(
        "float32(t[1][1])", "cast(t[1][1], float32)"
    )
    function = tfc.compile(signature, kernel)
    x, y = np.zeros((2, 300), "float32")
    function(on_device(x), (on_device(y), (300, 0.5, 3)))
    expected = struct.pack("<QQifQQ", x.ctypes.data, y.ctypes.data, 300, 0.5, 0, 0)
    assert driver.parameters() == expected
    with pytest.raises((TypeError, ValueError)):
        function(on_device(x), (on_device(y), (300, 0.5, 4)))
    # a tuple of names and numbers in the place of the signature's own tuple
    plain = f"scaled(x: {TENSOR}, y: {TENSOR}, s: float64)"
    for last in (None, 3):
        bound = tfc.triton.from_compiled(compiled, plain, grid=1, bind={"t": ("y", ["n", "s", last])})
        assert re.search(r"args=\[x, y, int32\(n\), (cast\(s, float32\)|float32\(s\)), null", text(plain, bound))
    record = f'scaled(x: {TENSOR}, r: Record("R", y: {TENSOR}, k: int32, s: float32))'
    of_record = tfc.triton.from_compiled(compiled, record, grid=1, bind={"t": ("r.y", ("r.k", "r.s", 3))})
    assert re.search(r"args=\[x, r\.y, int32\(r\.k\), (cast\(r\.s, float32\)|float32\(r\.s\))", text(record, of_record))


def test_attributes_in_tuples_are_stated():
    compiled = compiled_scaled([(1, 0), (1, 1, 0)])
    signature = f"scaled(x: {TENSOR}, t: Tuple[{{}}, Tuple[int32, float32, Int(3)]]){{}}"
    aligned = TENSOR.replace(")", ", align=16)")
    with pytest.raises(tfc.KernelError, match=re.escape("`t[0]` was compiled for addresses that are multiples of 16")):
        tfc.triton.from_compiled(compiled, signature.format(TENSOR, ""), grid=1)
    with pytest.raises(tfc.KernelError, match=re.escape("state `where t[1][0] % 16 == 0`")):
        tfc.triton.from_compiled(compiled, signature.format(aligned, ""), grid=1)
    stated = signature.format(aligned, " where t[1][0] % 32 == 0")
    assert text(stated, tfc.triton.from_compiled(compiled, stated, grid=1))


def test_wrong_tuples():
    compiled = compiled_scaled()
    good = f"scaled(x: {TENSOR}, t: Tuple[{TENSOR}, Tuple[int32, float32, Int(3)]])"
    for signature, bind, message in [
        (good.replace("Int(3)", "Int(4)"), {}, r"`t\[1\]\[2\]` was compiled as the constant 3: state .*: Int\(3\)`"),
        (good.replace("Int(3)", "int32"), {}, r"constant 3: state `where t\[1\]\[2\] == 3`"),
        (good.replace(", Int(3)", ""), {}, r"`t\[1\]` is a tuple of 3, and is bound to 2 values"),
        (good, {"t": ("x",)}, "`t` is a tuple of 2, and is bound to 1 values"),
        (good, {"t": "x"}, "`t` is a tuple of 2: expected a tuple in bind, or a Tuple or Record .*, got 'x'"),
        (good, {"t": ("x", ("n", 1.0, 5))}, r"was compiled as the constant 3, and is bound to 5"),
        (good, {"t": (("x",), ("n", 1.0, 3))}, r"`t\[0\]` is bound to \('x',\): expected the name of a tensor"),
        (good, {"t": ("x", ("n", None, 3))}, r"`t\[1\]\[1\]` was compiled as fp32, a float, and is bound to None"),
    ]:
        with pytest.raises(tfc.KernelError, match=message):
            tfc.triton.from_compiled(compiled, signature, grid=1, bind=bind)


def test_named_tuples_are_records():
    Pair = collections.namedtuple("Pair", "y n")

    @triton.jit
    def copied(x, t, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(x + at, tl.load(t.y + at, mask=at < t.n), mask=at < t.n)

    source = triton.compiler.ASTSource(
        copied, signature={"x": "*fp32", "t": Pair("*fp32", "i32"), "BLOCK": "constexpr"}, constexprs={(2,): 128}
    )
    compiled = triton.compile(source, target=triton.backends.compiler.GPUTarget("cuda", 90, 32))
    # the record's fields are found by their names
    signature = f'copied(x: {TENSOR}, t: Record("Pair", n: int32, y: {TENSOR}))'
    kernel = tfc.triton.from_compiled(compiled, signature, grid=1)
    assert "args=[x, t.y, int32(t.n), null, null]" in text(signature, kernel)


@pytest.mark.parametrize(
    "bound, where",
    [
        ("n", "n % 32 == 0"),
        ("n", "n % 4 == 0, n % 48 == 0"),
        ("n", "n == 64"),
        ("n", "64 == n"),
        ("16 * n", None),
        ("n * 32", None),
        ("n * 4", "n % 4 == 0"),
        ("n * n", "n % 4 == 0"),
        ("2 * (n + 8)", "n % 8 == 0"),
        ("n - 32", "n % 16 == 0"),
        ("min(n, 4096)", "n % 16 == 0"),
        ("n // 2", "n % 32 == 0"),
        ("ceil_div(n, 4)", "n % 64 == 0"),
        ("n % 48", "n % 16 == 0"),
        ("n + 1", "(n + 1) % 16 == 0"),
        ("n * 0", None),
    ],
)
def test_implied_multiples_are_accepted(bound, where):
    compiled = kernels.compiled(kernels.add, POINTERS, {"BLOCK": 256}, ["n"])
    signature = f"add({VECTORS})" + (f" where {where}" if where else "")
    assert text(signature, tfc.triton.from_compiled(compiled, signature, grid=1, bind={"n": bound}))


@pytest.mark.parametrize(
    "bound, where",
    [
        ("n", "n % 8 == 0"),
        ("n", "n % 24 == 0"),
        ("n", "n % 32 != 0"),
        ("n", "n % 32 == 16"),
        ("n", "n >= 16"),
        ("n", "2 * n % 32 == 0"),
        ("n * 4", "n % 2 == 0"),
        ("n + 1", "n % 16 == 0"),
        ("n + 8", "n % 16 == 0"),
        ("n // 3", "n % 16 == 0"),
        ("n // 2", "n % 16 == 0"),
        ("n % 24", "n % 16 == 0"),
        ("max(n, 1)", "n % 16 == 0"),
        (24, None),
    ],
)
def test_what_does_not_imply_a_multiple_is_refused(bound, where):
    compiled = kernels.compiled(kernels.add, POINTERS, {"BLOCK": 256}, ["n"])
    signature = f"add({VECTORS})" + (f" where {where}" if where else "")
    with pytest.raises(tfc.KernelError, match="`n` was compiled for multiples of 16"):
        tfc.triton.from_compiled(compiled, signature, grid=1, bind={"n": bound})


def test_other_attributes():
    source = triton.compiler.ASTSource(
        kernels.add,
        signature={**POINTERS, "BLOCK": "constexpr"},
        constexprs={(4,): 256},
        attrs={(0,): [["tt.divisibility", 32]], (3,): [["tt.divisibility", 8]]},
    )
    compiled = triton.compile(source, target=triton.backends.compiler.GPUTarget("cuda", 90, 32))
    with pytest.raises(tfc.KernelError, match="`x` was compiled for .* multiples of 32: state `align=32`"):
        tfc.triton.from_compiled(compiled, ADD, grid=1)
    wide = ADD.replace("align=16", "align=64")
    with pytest.raises(tfc.KernelError, match="state `where n % 8 == 0`"):
        tfc.triton.from_compiled(compiled, wide, grid=1)
    assert text(wide + " where n % 24 == 0", tfc.triton.from_compiled(compiled, wide + " where n % 24 == 0", grid=1))
    with pytest.raises(tfc.KernelError, match=r"what a signature can state, got `\(x.strides\[0\]\) % 8 == 0`"):
        tfc.triton.from_compiled(compiled, wide, grid=1, bind={"n": "x.strides[0]"})


def hip(arch, warp=64, attrs=None, block=256):
    source = triton.compiler.ASTSource(
        kernels.add, signature={**POINTERS, "BLOCK": "constexpr"}, constexprs={(4,): block}, attrs=attrs or {}
    )
    try:
        return triton.compile(source, target=triton.backends.compiler.GPUTarget("hip", arch, warp))
    except Exception as error:
        if "linker" in str(error):
            pytest.skip("this Triton needs ROCm's linker")
        raise


HIP = ADD.replace('"cuda"', '"rocm"')


def test_kernels_for_hip():
    told = launch(HIP, tfc.triton.from_compiled(hip("gfx942"), HIP, grid="ceil_div(n, BLOCK)"))
    assert told["api"] == "HIP"
    assert told["launch"] == "launch add grid=ceil_div(n, 256) block=256 args=[x, y, out, int32(n), null, null]"
    assert [of["targets"] for of in told["images"]] == [["gfx942"]]
    # a warp has 32 threads there
    narrow = launch(HIP, tfc.triton.from_compiled(hip("gfx1100", 32), HIP, grid=1))
    assert "block=128 " in narrow["launch"]
    function = tfc.compile(HIP, tfc.triton.from_compiled(hip("gfx942"), HIP, grid="ceil_div(n, BLOCK)"))
    with pytest.raises(ValueError, match="expected rocm, got cpu"):
        function(*[np.zeros(4, "float32")] * 3)


def test_several_architectures_of_hip_are_a_bundle():
    compiled = [hip("gfx942"), hip("gfx90a")]
    kernel = tfc.triton.from_compiled(compiled, HIP, grid="ceil_div(n, BLOCK)")
    told = launch(HIP, kernel)
    assert [of["targets"] for of in told["images"]] == [["gfx942", "gfx90a"]]
    # the code objects are in the bundle as they came
    (bundle,) = kernel._made[1][1]
    for number, of in enumerate(compiled, 1):
        host, device = "host-x86_64-unknown-linux-gnu-", "hipv4-amdgcn-amd-amdhsa--gfx942"
        start = 32 + 24 + len(host) + (number - 1) * (24 + len(device))
        at, size, _ = struct.unpack_from("<QQQ", bundle, start)
        assert bundle[at : at + size] == of.asm["hsaco"] and at % 4096 == 0
    with pytest.raises(tfc.KernelError, match="launches for gfx942 and gfx1100 differ in `block`: 256 and 128"):
        tfc.triton.from_compiled([hip("gfx942"), hip("gfx1100", 32)], HIP, grid=1)


def test_devices_are_those_that_the_kernel_was_compiled_for():
    cuda = kernels.compiled(kernels.add, POINTERS, {"BLOCK": 256})
    for compiled, signature, message in [
        (hip("gfx942"), ADD, '`x` was compiled for HIP: expected `device="rocm"` for `x`, got cuda'),
        (cuda, HIP, '`x` was compiled for CUDA: expected `device="cuda"`'),
        ([cuda, hip("gfx942")], ADD, "expected `device"),
        (hip("gfx942", attrs={(0,): [["tt.pointer_range", 32]]}), HIP, "`x` was compiled with tt.pointer_range"),
    ]:
        with pytest.raises(tfc.KernelError, match=message):
            tfc.triton.from_compiled(compiled, signature, grid=1)
