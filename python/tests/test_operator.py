"""Functions as frameworks see them, and the functions of libraries."""

from __future__ import annotations

import pytest
import tvm_ffi
import tvm_ffi_codegen as tfc
from tvm_ffi_codegen._operator import Operator

TEXT = "f(x: Tensor([n], float32), y: Tensor([n], float32), z: Tensor([n], float32))"


MARKED = "f(x: Tensor([n], float32), y: Tensor([n], float32, out=True), z: Tensor([n], float32, inout=True))"


def access(text: str, **stated) -> dict[str, str]:
    """How each parameter is used."""
    operator = Operator(None, tfc.Signature(text), stated.get("outputs"), stated.get("inouts"))
    return {of.name: of.access for of in operator.parameters}


def test_marks_of_metadata_say_what_is_written():
    marks = {"y": "out", "z": "inout"}
    assert access(MARKED) == {"x": "in", **marks}
    # stated uses replace the marks
    assert access(MARKED, outputs=["x"]) == {"x": "out", "y": "in", "z": "in"}
    assert access(TEXT, outputs=["y"], inouts=["z"]) == {"x": "in", **marks}
    assert access(TEXT, outputs=[]) == {"x": "in", "y": "in", "z": "in"}
    assert access("f(n: int64)") == {"n": "in"}
    with pytest.raises(ValueError, match="nothing says which tensors `f` writes"):
        access(TEXT)
    with pytest.raises(ValueError, match="its tensors are none"):
        access("f(n: int64)", outputs=["n"])
    with pytest.raises(TypeError, match="outputs: expected a list of str, got 'xy'"):
        access(TEXT, outputs="xy")


def test_compiled_functions_tell_their_signatures():
    function = tfc.compile(MARKED, tfc.Kernel.check_only())
    assert Operator.of(function, "f", None, None, None).signature == tfc.Signature(MARKED)
    with pytest.raises(ValueError, match="a bare tvm_ffi.Function has no signature"):
        Operator.of(tvm_ffi.convert(lambda: None), "f", None, None, None)


def test_functions_of_a_library_are_listed(saxpy, tmp_path):
    library = tfc.Library()
    library.add("first(n: int64)", tfc.Kernel.check_only(), doc="Does nothing.")
    library.add(TEXT, tfc.Kernel.check_only())
    listed = tfc.functions(library)
    assert [(of.name, of.signature, of.doc) for of in listed] == [
        ("f", tfc.Signature(TEXT), None),
        ("first", tfc.Signature("first(n: int64)"), "Does nothing."),
    ]
    assert listed[0].metadata["parameters"][0]["name"] == "x"
    path = tmp_path / "lib.so"
    library.link(path)
    assert tfc.functions(path) == tfc.functions(path.read_bytes()) == listed
    assert tfc.functions(path, ["f"]) == tfc.functions(tvm_ffi.load_module(path), ["f"]) == listed[:1]
    with pytest.raises(ValueError, match="no metadata of `g`"):
        tfc.functions(path, ["g"])
    with pytest.raises(ValueError, match="can't list its functions"):
        tfc.functions(tvm_ffi.load_module(path))
    with pytest.raises(AttributeError, match="no metadata of a function `g`"):
        tfc.functions(tvm_ffi.load_module(path), ["g"])
