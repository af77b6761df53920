"""Triton kernels whose variants are compiled when they are needed, launched on the stand-in driver."""

from __future__ import annotations

import struct

import numpy as np
import pytest
import tvm_ffi
import tvm_ffi_codegen as tfc

pytest.importorskip("triton")

import triton
import triton.language as tl
import triton_kernels as kernels
from triton_programs import HOPPER, name_add, on_device

ADD = ", ".join(f'{name}: Tensor([n], any, device="cuda")' for name in ("x", "y", "out"))
ADD = f"add({ADD}, BLOCK: int32 = 1024)"


@pytest.fixture(autouse=True)
def no_launcher(monkeypatch):
    """Triton's own launcher isn't called, in any test."""

    def run(*args, **kwargs):
        raise AssertionError("Triton's launcher was called")

    monkeypatch.setattr(triton.runtime.jit.JITFunction, "run", run)


@pytest.fixture
def compilations(monkeypatch):
    """The options and targets of Triton's compilations."""
    seen = []
    own = triton.compile

    def compile(source, target, options):
        seen.append((target.arch, dict(source.signature), dict(source.constants), dict(options)))
        return own(source, target=target, options=options)

    monkeypatch.setattr(triton, "compile", compile)
    return seen


def arrays(n, dtype="float32", offset=0):
    """Three vectors, whose addresses are multiples of 64 plus an offset in elements."""

    def aligned(values):
        memory = np.zeros(n + 32, dtype)
        start = -memory.ctypes.data % 64 // memory.itemsize + offset
        memory[start : start + n] = values
        return memory[start : start + n]

    x = np.arange(n).astype(dtype)
    return aligned(x), aligned(x[::-1]), aligned(0)


def added(function, n, device=HOPPER, offset=0, **options):
    x, y, out = arrays(n, offset=offset)
    function(*[on_device(of, device) for of in (x, y, out)], *options.values())
    return bool((out == x + y).all())


def test_a_call_compiles_its_variant_and_launches_it(driver, compilations):
    add = tfc.triton.jit(kernels.add, ADD, grid="ceil_div(n, BLOCK)")
    assert add.keys == (
        "x.dtype", "y.dtype", "out.dtype", "is_aligned(x, 16)", "is_aligned(y, 16)", "is_aligned(out, 16)",
        "n == 1", "n % 16 == 0", "n <= 2147483647", "BLOCK", "x.device.capability",
    )  # fmt: skip
    name_add(driver)
    for _ in range(3):
        assert added(add, 2500)
    assert len(compilations) == 1
    arch, types, constants, _ = compilations[0]
    assert (arch, types) == (90, {"x": "*fp32", "y": "*fp32", "out": "*fp32", "n": "i32", "BLOCK": "constexpr"})
    launches = driver.log("cuLaunchKernelEx")
    assert launches == ["cuLaunchKernelEx(grid 3 1 1, block 128 1 1, shared 0, device 1)"] * 3
    # other addresses, sizes, devices and constants are other kernels
    assert added(add, 2500, offset=1) and added(add, 2048) and added(add, 2500, device=0)
    assert [of[0] for of in compilations] == [90, 90, 90, 80]
    # the host code is for float32 alone
    driver.reset()
    (x, y, out) = map(on_device, arrays(2500, "float16"))
    add(x, y, out, 256)
    assert compilations[-1][1]["x"] == "*fp16" and list(compilations[-1][2].values()) == [256]
    assert driver.log("cuLaunchKernelEx")[-1].startswith("cuLaunchKernelEx(grid 10 1 1, ")
    stats = add.stats()
    assert (stats["misses"], stats["entries"], stats["hits"]) == (5, 5, 2)


def test_variants_state_what_was_taken_for_granted(driver):
    add = tfc.triton.jit(kernels.add, ADD, grid="ceil_div(n, BLOCK)", arch=90)
    dtypes = ["float32"] * 3
    keys = [(*dtypes, True, False, True, False, True, True, 256), (*dtypes, *[False] * 3, True, False, True, 64)]
    for key in keys:
        add.prewarm([key])
    (first, second) = [of.signature for of in add._variants._known.values()]
    vector = 'Tensor([n], float32, device="cuda"{})'
    assert [of.type for of in first.parameters[:3]] == [
        vector.format(", align=16"), vector.format(""), vector.format(", align=16")
    ]  # fmt: skip
    assert first.where == ["n % 16 == 0"] and second.where == ["n == 1"]
    (x, y, out) = map(on_device, arrays(17))
    with pytest.raises(ValueError, match="n % 16 == 0"):
        add.entries().popitem() and list(add.entries().values())[0](x, y, out, 256)


def test_names_are_bound_and_constants_are_functions_of_the_key(driver, compilations):
    tensors = ", ".join(f'{name}: Tensor([m, 2], float32, device="cuda", align=16)' for name in "abc")
    bind = {"x": "a", "y": "b", "out": "c", "n": "m * 2", "BLOCK": lambda key: 64 if key["m > 100"] else 1024}
    add = tfc.triton.jit(
        kernels.add,
        f"add({tensors}) where m * 2 % 16 == 0",
        bind=bind,
        grid=["ceil_div(2 * m, BLOCK)"],
        keys=["m > 100"],
        options=lambda key: {"num_warps": 8 if key["m > 100"] else 1},
        arch=[80, 90],
    )
    for m in (200, 8):
        add(*[on_device(of.reshape(m, 2)) for of in arrays(2 * m)])
    assert [of[0] for of in compilations] == [80, 90, 80, 90]
    assert driver.log("cuLaunchKernelEx") == [
        "cuLaunchKernelEx(grid 7 1 1, block 256 1 1, shared 0, device 1)",
        "cuLaunchKernelEx(grid 1 1 1, block 32 1 1, shared 0, device 1)",
    ]


def test_an_export_has_all_variants(driver, tmp_path):
    add = tfc.triton.jit(kernels.add, ADD, grid="ceil_div(n, BLOCK)", keys=["x.dtype", "BLOCK"], arch=[80, 90])
    # dtypes of the other tensors are not among the keys
    with pytest.raises(tfc.KernelError, match=r"keys: `y` needs a variant for each value of `y\.dtype`"):
        add.prewarm([("float32", 64)])
    keys = ["x.dtype", "y.dtype", "out.dtype", "BLOCK"]
    add = tfc.triton.jit(kernels.add, ADD, grid="ceil_div(n, BLOCK)", keys=keys, arch=[80, 90])
    add.prewarm([(*[dtype] * 3, block) for dtype in ("float32", "float16") for block in (64, 1024)])
    add.export(tmp_path / "add.so")
    module = tvm_ffi.load_module(str(tmp_path / "add.so"))
    name_add(driver)
    assert added(module.add, 2500, block=1024) and added(module.add, 2500, 0, block=1024)
    assert driver.log("cuLaunchKernelEx")[0].startswith("cuLaunchKernelEx(grid 3 1 1, ")
    with pytest.raises(ValueError, match="float32, float32, float32, 1024"):
        added(module.add, 2500, block=3)


def test_a_cache_keeps_what_triton_has_compiled(driver, compilations, tmp_path):
    def make(**options):
        return tfc.triton.jit(
            kernels.add, ADD, grid="ceil_div(n, BLOCK)", cache=tfc.Cache(tmp_path / "cache"), **options
        )

    name_add(driver)
    assert added(make(), 2500) and len(compilations) == 1
    assert added(make(), 2500) and len(compilations) == 1
    # another option is another kernel
    assert added(make(options={"num_warps": 8}), 2500) and len(compilations) == 2
    with pytest.raises(ValueError, match="version: expected a str with a cache"):
        make(options=lambda key: {})
    assert added(make(options=lambda key: {}, version="1"), 2500) and len(compilations) == 3


@triton.jit
def scale(x, by, n: tl.int64, flag, rows, BLOCK: tl.constexpr, KIND: tl.constexpr = 3):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if flag:
        tl.store(x + at, tl.load(x + at, mask=at < n * rows) * by, mask=at < n * rows)


def test_numbers_have_the_types_that_triton_gives_them(driver, compilations):
    signature = 'scale(x: Tensor([n], float32, device="cuda"), by: float64, flag: bool, rows: int64)'
    function = tfc.triton.jit(scale, signature, grid=1, bind={"BLOCK": 32}, arch=90)
    assert function.keys == (
        "is_aligned(x, 16)", "n == 1", "n % 16 == 0", "rows == 1", "rows % 16 == 0",
        "rows >= -2147483648 and rows <= 2147483647",
    )  # fmt: skip
    (x, _, _) = arrays(32)
    for rows in (1, 7, 1 << 40):
        function(on_device(x), 0.5, True, rows)
    types = {"x": "*fp32", "by": "fp32", "n": "i64", "flag": "u1", "BLOCK": "constexpr", "KIND": "constexpr"}
    for (_, seen, constants, _), rows in zip(compilations, ("constexpr", "i32", "i64")):
        assert seen == {**types, "rows": rows}
        assert set(constants.values()) == ({1, 32, 3} if rows == "constexpr" else {32, 3})


def test_wrong_kernels_and_names():
    for change, error, message in [
        ({"kernel": kernels.add.fn}, TypeError, "kernel: expected a kernel under @triton.jit"),
        ({"bind": {"z": "x"}}, tfc.KernelError, "the kernel has no parameter `z`"),
        ({"signature": ADD.replace(", BLOCK: int32 = 1024", "")}, tfc.KernelError, "`BLOCK` is neither bound nor"),
        ({"bind": {"n": lambda key: 3}}, tfc.KernelError, "only a constant of the kernel can be"),
        ({"grid": None}, TypeError, "grid: expected an int"),
        ({"arch": "sm_90"}, ValueError, r"arch\[0\]: expected a compute capability such as 90"),
    ]:
        given = {"kernel": kernels.add, "signature": ADD, "grid": 1, **change}
        with pytest.raises(error, match=message):
            tfc.triton.jit(given.pop("kernel"), given.pop("signature"), **given)
    without = tfc.triton.jit(kernels.add, ADD, grid=1, keys=["x.dtype", "y.dtype", "out.dtype", "BLOCK"])
    with pytest.raises(tfc.KernelError, match="no key tells the device's compute capability"):
        without.prewarm([("float32", "float32", "float32", 64)])


def test_the_grid_is_a_function(driver, tmp_path):
    def grid(meta):
        return (triton.cdiv(meta["n"], meta["BLOCK"]),)

    add = tfc.triton.jit(kernels.add, ADD, grid=grid)
    name_add(driver)
    assert added(add, 2500) and added(add, 2500, block=1024)
    launches = [line.partition(",")[0] for line in driver.log("cuLaunchKernelEx")]
    assert launches == ["cuLaunchKernelEx(grid 3 1 1"] * 2
    with pytest.raises(ValueError, match="version: expected a str with a cache"):
        tfc.triton.jit(kernels.add, ADD, grid=grid, cache=tfc.Cache(tmp_path / "cache"))


def test_a_stated_multiple_of_32_is_one_of_16(driver, compilations):
    signature = ADD.replace("float32", "any") + " where n % 32 == 0"
    add = tfc.triton.jit(kernels.add, signature, grid="ceil_div(n, BLOCK)")
    assert "n % 16 == 0" not in add.keys and "n == 1" not in add.keys
    name_add(driver)
    assert added(add, 2048)
    ((variant, _, _),) = add._variants._known.values()
    assert variant.where == ["n % 32 == 0"]


def test_an_optional_tensor_has_a_variant_for_none(driver, compilations, tmp_path):
    vector = 'Tensor([n], any, device="cuda")'
    signature = f"biased(x: {vector}, scale: float64 = 1.0, b: Optional[{vector}] = None)"
    with pytest.raises(tfc.KernelError, match="`b` may be None, which has no dtype: expected a dtype of its own"):
        tfc.triton.jit(kernels.biased, signature, grid=1, bind={"BLOCK": 128}, arch=90)
    head, _, rest = signature.partition(" b:")
    signature = f"{head} b:{rest.replace('any', 'float32')}"
    function = tfc.triton.jit(kernels.biased, signature, grid="ceil_div(n, BLOCK)", bind={"BLOCK": 128}, arch=90)
    assert function.keys[:4] == ("b.given", "x.dtype", "is_aligned(x, 16)", "b.given and is_aligned(b, 16)")
    x, b, _ = arrays(300)
    function(on_device(x))
    assert compilations[-1][1] == {"x": "*fp32", "b": "constexpr", "n": "i32", "BLOCK": "constexpr"}
    assert driver.parameters() == struct.pack("<Qi4xQQ", x.ctypes.data, 300, 0, 0)
    function(on_device(x), 1.0, on_device(b))
    assert compilations[-1][1]["b"] == "*fp32"
    assert driver.parameters() == struct.pack("<QQi4xQQ", x.ctypes.data, b.ctypes.data, 300, 0, 0)
    function(on_device(x), 2.0)
    assert len(compilations) == 2
    function.export(tmp_path / "biased.so")
    module = tvm_ffi.load_module(str(tmp_path / "biased.so"))
    module.biased(on_device(x), 1.0, on_device(b))
    module.biased(on_device(x))
    assert driver.parameters() == struct.pack("<Qi4xQQ", x.ctypes.data, 300, 0, 0)
    # the variants state what they are for
    texts = sorted(of.signature.text for of in function._variants._known.values())
    typed = vector.replace("any", "float32").replace('"cuda"', '"cuda", align=16')
    assert texts == [f"biased(x: {typed}, scale: float64, b: {of})" for of in ("None", typed)]


def test_variants_for_hip():
    signature = ADD.replace('"cuda"', '"rocm"')
    keys = ["x.dtype", "y.dtype", "out.dtype", "BLOCK"]
    add = tfc.triton.jit(kernels.add, signature, grid="ceil_div(n, BLOCK)", keys=keys, arch=["gfx942", "gfx90a"])
    try:
        add.prewarm([("float32", "float32", "float32", 256)])
    except RuntimeError as error:
        if "ROCm linker" not in str(error):
            raise
        pytest.skip("this Triton needs ROCm's linker")
    functions = tfc.functions(add.library().object())
    (launch,) = [of.metadata["launches"][0] for of in functions if "launches" in of.metadata]
    assert launch["api"] == "HIP" and [of["targets"] for of in launch["images"]] == [["gfx942", "gfx90a"]]
