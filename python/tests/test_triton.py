"""Launches of Triton's compiled kernels. Compiling a launch compares its arguments with the parameters in the cubin."""

from __future__ import annotations

import re

import numpy as np
import pytest
import tvm_ffi_codegen as tfc

pytest.importorskip("triton")

import triton_kernels as kernels
from triton_kernels import POINTERS, VECTORS


def launch(signature: str, kernel: tfc.Kernel) -> str:
    """The launch's text in the metadata of a library."""
    object = tfc.Library().add(signature, kernel).object()
    (function,) = tfc.inspect(object)["functions"]
    (told,) = function["metadata"]["launches"]
    return told["launch"]


def test_add_is_a_launch():
    compiled = kernels.compiled(kernels.add, POINTERS, {"BLOCK": 1024}, ["x", "y", "out"])
    signature = f"add({VECTORS})"
    kernel = tfc.triton.from_compiled(compiled, signature, grid=["ceil_div(n, 1024)"])
    text = launch(signature, kernel)
    assert text.startswith("launch add grid=ceil_div(n, 1024) block=128 ")
    assert text.endswith("args=[x, y, out, int32(n), null, null]")
    function = tfc.compile(signature, kernel)
    with pytest.raises(ValueError, match="expected cuda, got cpu"):
        function(*[np.zeros(4, "float32")] * 3)


def test_names_are_bound():
    compiled = kernels.compiled(kernels.add, POINTERS, {"BLOCK": 256})
    signature = 'sum(a: Tensor([m, 2], float32, device="cuda"), b: Tensor([m, 2], float32, device="cuda"))'
    bind = {"x": "a", "y": "b", "out": "b", "n": "2 * m"}
    kernel = tfc.triton.from_compiled(compiled, signature, grid=["ceil_div(2 * m, 256)"], bind=bind)
    assert launch(signature, kernel).endswith("args=[a, b, b, int32(2 * m), null, null]")
    for wrong, message in [
        ({**bind, "z": "a"}, "the kernel has no parameter `z`"),
        ({**bind, "x": "m"}, "`m`, but this isn.t a tensor"),
        ({"x": "a"}, "`y` is bound to `y`, but this isn't a tensor of the signature; its tensors are a, b"),
        ({**bind, "BLOCK": 3}, "is a constant of the compiled kernel"),
    ]:
        with pytest.raises(tfc.KernelError, match=message):
            tfc.triton.from_compiled(compiled, signature, grid=[1], bind=wrong)


def test_what_was_taken_for_granted_is_stated():
    compiled = kernels.compiled(kernels.add, POINTERS, {"BLOCK": 256}, ["x", "n"])
    plain = ", ".join(f'{name}: Tensor([n], float32, device="cuda")' for name in ("x", "y", "out"))
    with pytest.raises(tfc.KernelError, match="state `align=16` for `x`"):
        tfc.triton.from_compiled(compiled, f"add({plain})", grid=[1])
    with pytest.raises(tfc.KernelError, match=re.escape("state `where n % 16 == 0`")):
        tfc.triton.from_compiled(compiled, f"add({VECTORS})", grid=[1])
    signature = f"add({VECTORS}) where n % 16 == 0"
    assert "int32(n)" in launch(signature, tfc.triton.from_compiled(compiled, signature, grid=["n // 16"]))
    # the whole expression is the multiple, not its last operand
    for bound, stated in [("n + 16", "(n + 16) % 16 == 0"), ("2 * n", "2 * n % 16 == 0"), ("(n)", "n % 16 == 0")]:
        with pytest.raises(tfc.KernelError, match=re.escape(f"state `where {stated}`")):
            tfc.triton.from_compiled(compiled, f"add({VECTORS})", grid=[1], bind={"n": bound})
        signature = f"add({VECTORS}) where {stated}"
        assert f"int32({bound.strip('()')})" in launch(
            signature, tfc.triton.from_compiled(compiled, signature, grid=[1], bind={"n": bound})
        )


def test_scalars_have_the_kernels_types():
    compiled = kernels.compiled(kernels.scale, {"x": "*fp32", "by": "fp32", "n": "i64"}, {"BLOCK": 256})
    signature = 'scale(x: Tensor([n], float32, device="cuda"), by: float64)'
    kernel = tfc.triton.from_compiled(compiled, signature, grid=["ceil_div(n, 256)"])
    text = launch(signature, kernel)
    assert re.search(r"args=\[x, (float32\(by\)|cast\(by, float32\)), int64\(n\), null, null\]$", text), text
    fixed = tfc.triton.from_compiled(compiled, signature, grid=[1], bind={"by": 0.5, "n": 256})
    assert "float32(0.5), int64(256)" in launch(signature, fixed)
    half = kernels.compiled(kernels.scale, {"x": "*fp32", "by": "fp16", "n": "i64"}, {"BLOCK": 256})
    text = launch(signature, tfc.triton.from_compiled(half, signature, grid=[1]))
    assert re.search(r"args=\[x, (float16\(by\)|cast\(by, float16\)), int64\(n\)", text), text


def test_elements_and_scalars_are_of_the_kernels_types():
    compiled = kernels.compiled(kernels.scale, {"x": "*fp32", "by": "fp32", "n": "i64"}, {"BLOCK": 256})
    flagged = kernels.compiled(kernels.scale, {"x": "*fp32", "by": "fp32", "n": "i1"}, {"BLOCK": 256})
    signature = 'scale(x: Tensor([n], {}, device="cuda"), by: float64, flag: bool, i: int32)'
    for dtype in ("float16", "bfloat16", "int32", "any"):
        message = rf"`x` was compiled for elements of float32 \(fp32\), and `x` is Tensor\(\[n\], {dtype}, "
        with pytest.raises(tfc.KernelError, match=message):
            tfc.triton.from_compiled(compiled, signature.format(dtype), grid=1)
    right = signature.format("float32")
    for kernel, bind, args in [
        (compiled, {"by": 2, "n": "i"}, "float32(2.0), int64(i)"),
        (compiled, {"n": "flag"}, "cast(by, float32), cast(flag, int64)"),
        (flagged, {"n": "flag"}, "cast(by, float32), cast(flag, uint8)"),
        (flagged, {"n": True}, "cast(by, float32), uint8(1)"),
    ]:
        assert args in launch(right, tfc.triton.from_compiled(kernel, right, grid=1, bind=bind))
    for kernel, bind, message in [
        (compiled, {"by": "i"}, "`by` was compiled as fp32, a float, and is bound to `i`, which is an integer"),
        (compiled, {"by": "flag"}, "which is a bool"),
        (compiled, {"n": "by"}, "`n` was compiled as i64, an integer, and is bound to `by`, which is a float"),
        (compiled, {"n": 0.5}, "is bound to 0.5"),
        (flagged, {"n": "i"}, "`n` was compiled as i1, a bool, and is bound to `i`, which is an integer"),
        (flagged, {"n": 7}, "is bound to 7"),
    ]:
        with pytest.raises(tfc.KernelError, match=message):
            tfc.triton.from_compiled(kernel, right, grid=1, bind=bind)


def test_a_grid_is_one_extent_or_up_to_three():
    compiled = kernels.compiled(kernels.add, POINTERS, {"BLOCK": 1024})
    signature = f"add({VECTORS})"
    for grid, text in [("ceil_div(n, 1024)", "grid=ceil_div(n, 1024) "), (7, "grid=7 "), (("n", 2), "grid=(n, 2) ")]:
        assert text in launch(signature, tfc.triton.from_compiled(compiled, signature, grid=grid))
    for grid, error, message in [
        ([], ValueError, "grid: expected one to three extents, got 0"),
        ([1, 2, 3, 4], ValueError, "got 4"),
        ("", ValueError, "got an empty str"),
        ([1.5], TypeError, r"grid\[0\]: expected an int, or an expression as a str"),
        (None, TypeError, "grid: expected an int"),
    ]:
        with pytest.raises(error, match=message):
            tfc.triton.from_compiled(compiled, signature, grid=grid)


def test_matmul_has_a_grid_of_two_extents_and_shared_memory():
    types = {**{name: "*fp16" for name in "ab"}, "c": "*fp32"}
    numbers = {name: "i32" for name in ("m", "n", "k", "stride_a", "stride_b", "stride_c")}
    compiled = kernels.compiled(kernels.matmul, {**types, **numbers}, {"M": 64, "N": 64, "K": 32}, num_warps=8)
    signature = (
        'matmul(a: Tensor([m, k], float16, device="cuda"), b: Tensor([k, n], float16, device="cuda"), '
        'c: Tensor([m, n], float32, device="cuda"))'
    )
    bind = {"stride_a": "k", "stride_b": "n", "stride_c": "n"}
    kernel = tfc.triton.from_compiled(compiled, signature, grid=["ceil_div(m, 64)", "ceil_div(n, 64)"], bind=bind)
    text = launch(signature, kernel)
    assert text.startswith("launch matmul grid=(ceil_div(m, 64), ceil_div(n, 64)) block=256 shared_memory=")
    assert compiled.metadata.shared > 0 and f"shared_memory={compiled.metadata.shared} " in text
    assert "int32(m), int32(n), int32(k), int32(k), int32(n), int32(n), null, null" in text


def test_descriptors_are_tensor_maps():
    types = {"source": "tensordesc<fp16[64,64]>", "target": "tensordesc<fp16[64,64]>"}
    compiled = kernels.compiled(kernels.copy, types, {"M": 64})
    signature = ", ".join(f'{name}: Tensor([m, n], float16, device="cuda", align=16)' for name in ("source", "target"))
    signature = f"copy({signature}) where n % 8 == 0"
    text = launch(signature, tfc.triton.from_compiled(compiled, signature, grid=["ceil_div(m, 64)"]))
    each = (
        "tensor_map({0}, box=(64, 64), swizzle=128, l2_promotion=128), int32(m), int32(n), "
        "int64({0}.strides[0]), int64({0}.strides[1])"
    )
    assert each.format("source") in text and each.format("target") in text
    wide = signature.replace("float16", "float32")
    with pytest.raises(tfc.KernelError, match=r"`source` was compiled for elements of float16 \(fp16\)"):
        tfc.triton.from_compiled(compiled, wide, grid=[1])
    vector = 'copy(source: Tensor([n], float16, device="cuda"), target: Tensor([n], float16, device="cuda"))'
    with pytest.raises(tfc.KernelError, match="a descriptor of 2 dimensions"):
        tfc.triton.from_compiled(compiled, vector, grid=[1])


def test_clusters_and_attributes_are_the_kernels():
    compiled = kernels.compiled(kernels.add, POINTERS, {"BLOCK": 1024}, num_ctas=2)
    signature = f"add({VECTORS})"
    text = launch(signature, tfc.triton.from_compiled(compiled, signature, grid=["ceil_div(n, 1024)"]))
    assert "grid=ceil_div(n, 1024) * 2 " in text and "cluster=(2, 1, 1)" in text


def test_metadata_that_is_not_known_is_an_error():
    compiled = kernels.compiled(kernels.add, POINTERS, {"BLOCK": 1024})

    class Metadata:
        def __init__(self, **more):
            self.fields = {**compiled.metadata._asdict(), **more}

        def _asdict(self):
            return self.fields

    class Compiled:
        asm, src = compiled.asm, compiled.src

        def __init__(self, **more):
            self.metadata = Metadata(**more)

    class Xpu:
        backend = "xpu"

    for more, message in [
        ({"launch_twice": True}, "not known: launch_twice"),
        ({"target": Xpu()}, "expected a kernel for cuda or hip, got one for xpu"),
        ({"cluster_dims": (1, 2, 1)}, "clusters"),
        ({"instrumentation_mode": "gsan"}, "instrumentation"),
    ]:
        with pytest.raises(tfc.KernelError, match=message):
            tfc.triton.from_compiled(Compiled(**more), f"add({VECTORS})", grid=[1])
