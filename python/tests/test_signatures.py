"""Signatures, their parts and their errors."""

from __future__ import annotations

import pytest
import tvm_ffi_codegen as tfc

from conftest import SAXPY


def test_a_signature_tells_its_parts():
    signature = tfc.Signature(SAXPY)
    assert (signature.name, signature.symbol, signature.text) == ("saxpy", "__tvm_ffi_saxpy", SAXPY)
    assert signature.dim_vars == ["n"] and signature.arity == (3, 3) and signature.returns is None
    assert signature.parameters[1] == tfc.Parameter("x", "Tensor([n], float32)", None)
    assert signature == tfc.Signature(signature.text) and hash(signature) == hash(tfc.Signature(SAXPY))
    assert signature != tfc.Signature("f()") and signature != SAXPY
    assert repr(signature) == f"Signature({SAXPY!r})"


def test_a_signature_is_built_of_parts():
    built = tfc.Signature.build(
        "f",
        {"x": "Tensor([n, 4], int8)", "scale": "float64", "to": "device", "name": "str"},
        defaults={"scale": 1.5, "to": "cuda:1", "name": "anybody"},
        returns="Tensor([n], int8)",
        where=["n % 16 == 0", "n > 0"],
    )
    assert built.returns == "Tensor([n], int8)" and built.arity == (1, 4)
    assert built.where == ["n % 16 == 0", "n > 0"]
    assert [of.default for of in built.parameters] == [None, "1.5", '"cuda:1"', '"anybody"']
    escaped = 'a "quoted"\\\nline'
    texts = tfc.Signature.build(
        "f", {"s": "str", "o": "Optional[str]", "b": "bool"}, defaults={"s": escaped, "o": None, "b": True}
    )
    assert [of.default for of in texts.parameters] == [r'"a \"quoted\"\\\nline"', "None", "True"]
    assert tfc.Signature(texts.text) == texts
    with pytest.raises(ValueError, match="unknown parameter `z`"):
        tfc.Signature.build("f", {}, defaults={"z": 1})
    with pytest.raises(TypeError, match=r"defaults\['x'\]: expected None, a bool"):
        tfc.Signature.build("f", {"x": "int64"}, defaults={"x": [1]})


def test_marks_tell_the_use_of_tensors_and_keywords():
    signature = tfc.Signature(
        "f(x: Tensor([n], int8), y: Tensor([n], int8, out=True), *, k: int64, z: Tensor([], int8, inout=True))"
    )
    assert [of.access for of in signature.parameters] == ["in", "out", None, "inout"]
    assert [of.keyword_only for of in signature.parameters] == [False, False, True, True]
    assert tfc.Signature("f(x: Tensor([], int8))").parameters[0].access is None
    built = tfc.Signature.build("f", {"x": "int64", "y": "int64"}, defaults={"y": 2}, keyword_only="y")
    assert built.text == "f(x: int64, *, y: int64 = 2)"
    with pytest.raises(ValueError, match="unknown keyword-only parameter `z`"):
        tfc.Signature.build("f", {}, keyword_only="z")
    with pytest.raises(tfc.SignatureError) as raised:
        tfc.Signature("f(x: Tensor([], int8, out=True, inout=True))")
    assert raised.value.errors[0].column == 33


def test_prototypes_are_those_of_conventions():
    prototype = tfc.Signature(SAXPY).prototype()
    assert str(prototype) == "void saxpy(float a, float* x, float* y, int64_t n);"
    assert str(prototype) in tfc.Kernel.symbol("saxpy").header(SAXPY)
    assert prototype.returns is None
    assert prototype.parameters[1] == tfc.CParameter("x", "float*", "x.data", "x.data")
    assert prototype.parameters[3] == tfc.CParameter("n", "int64_t", "n, from x.shape[0]", "n")
    status = tfc.Signature("f(n: int64) -> float64").prototype(returns="status")
    assert status.returns == "int32_t" and status.parameters[-1].type == "double*"
    memref = tfc.Signature(SAXPY).prototype("memref")
    assert len(memref.parameters) == 1 + 2 * 5
    with pytest.raises(ValueError, match="convention: expected flat, dltensor, memref"):
        tfc.Signature(SAXPY).prototype("fastcall")
    with pytest.raises(ValueError, match="returns: expected nothing, status or value"):
        tfc.Signature(SAXPY).prototype(returns="maybe")


def test_errors_are_values():
    with pytest.raises(tfc.SignatureError) as raised:
        tfc.Signature("f(x: Tensor([n], fp16))")
    assert isinstance(raised.value, ValueError) and isinstance(raised.value, tfc.CodegenError)
    (error,) = raised.value.errors
    assert (error.path, error.line, error.column, error.span) == (None, 1, 18, (17, 21))
    assert (error.expected, error.got) == ("a dtype", "`fp16`")
    assert "did you mean `float16`" in error.message

    with pytest.raises(tfc.SignatureError) as raised:
        tfc.Signature("f(x: fp16,\n  y int8)")
    first, second = raised.value.errors
    assert (first.line, first.column, first.got) == (1, 6, "`fp16`")
    assert (second.line, second.column, second.expected, second.got) == (2, 5, "`:`", "`int8`")

    with pytest.raises(tfc.SignatureError) as raised:
        tfc.Signature("f(x: Tensor([n], float32, align=3),\n  y: Tensor([-1], int8))")
    first, second = raised.value.errors
    assert (first.path, first.expected, first.got) == ("x.align", "a power of two", "3")
    assert (second.path, second.line, second.column) == ("y.shape[0]", 2, 14)


def test_locations_are_parts_of_signatures():
    location = tfc.SourceLocation("model.py", 7, "forward")
    tfc.Signature(SAXPY, locations={"signature": location, "x": location})
    with pytest.raises(tfc.CodegenError, match="`z` isn.t a part"):
        tfc.Signature(SAXPY, locations={"z": location})
    with pytest.raises(tfc.CodegenError, match="isn't a part"):
        tfc.Signature(SAXPY, locations={"where[0]": location})
