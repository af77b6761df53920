"""Records as arguments: dataclasses of TVM FFI, named tuples and dictionaries."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
import tvm_ffi
import tvm_ffi_codegen as tfc
from tvm_ffi.dataclasses import py_class

TEXT = 'scaled(cfg: Record("Config", alpha: float64, shape: Tuple[int64, int64], name: str, x: Tensor([n], float32)))'
BLOCK = """{
  ensure cfg.name.size > 0, ValueError("no name");
  for i in range(0, cfg.shape[1]) { cfg.x[i] = cfg.x[i] * float32(cfg.alpha) + float32(cfg.shape[0]); }
}"""


@py_class("test_records.Base")
class Base(tvm_ffi.Object):
    alpha: Any
    shape: Any


@py_class("test_records.Config")
class Config(Base):
    name: Any
    x: Any


@py_class("test_records.Typed")
class Typed(tvm_ffi.Object):
    x: tvm_ffi.Tensor
    name: str
    more: bool
    alpha: float
    shape: Any


class Named(NamedTuple):
    alpha: Any
    shape: Any
    name: Any
    x: Any


FORMS = {
    "dataclass": lambda **fields: Config(**fields),
    "named tuple": lambda **fields: Named(**fields),
    "dict": lambda **fields: dict(reversed(fields.items())),
    "Map": lambda **fields: tvm_ffi.Map(fields),
    "Dict": lambda **fields: tvm_ffi.Dict(fields),
    "List": lambda **fields: tvm_ffi.List(list(fields.values())),
}


@pytest.fixture(scope="module")
def scaled():
    return tfc.compile(f"{TEXT} where cfg.shape[1] <= n", tfc.Kernel.host(BLOCK))


def vector():
    array = np.arange(3, dtype="float32")
    return array, tvm_ffi.from_dlpack(array)


@pytest.mark.parametrize("form", FORMS)
def test_each_form_is_taken(scaled, form):
    array, x = vector()
    scaled(FORMS[form](alpha=2, shape=(10, 2), name="a name on the heap", x=x))
    assert array.tolist() == [10, 12, 2]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("wrong", "kind", "message"),
    [
        ({"alpha": "2"}, TypeError, "Mismatched type of cfg.alpha {}, expected float64, got str"),
        ({"shape": 2}, TypeError, "Mismatched type of cfg.shape {}, expected Tuple, got int"),
        ({"shape": (1,)}, TypeError, "Mismatched length of cfg.shape {}, expected 2, got 1"),
        ({"name": None}, TypeError, "Mismatched type of cfg.name {}, expected str, got None"),
        ({"name": ""}, ValueError, "no name"),
        ({"x": "x"}, TypeError, "Mismatched type of cfg.x {}, expected Tensor, got str"),
        (
            {"shape": (1, 4)},
            ValueError,
            "Mismatched constraint {}, expected cfg.shape[1] <= n, got cfg.shape[1] = 4 from "
            "cfg.shape[1], n = 3 from cfg.x.shape[0]",
        ),
    ],
)
def test_each_wrong_field_is_named(scaled, form, wrong, kind, message):
    _, x = vector()
    with pytest.raises(kind) as raised:
        scaled(FORMS[form](**{"alpha": 2, "shape": (10, 2), "name": "a", "x": x, **wrong}))
    calling = f"when calling: `{TEXT} where cfg.shape[1] <= n`"
    of_argument = kind is TypeError
    assert str(raised.value) == message.format(f"on argument #0 {calling}" if of_argument else calling)


def test_what_is_no_such_record_is_refused(scaled):
    _, x = vector()
    fields = {"alpha": 2, "shape": (10, 2), "name": "a", "x": x}
    of = lambda what, got: f"Mismatched {what} of cfg on argument #0 when calling: `{scaled.signature}`, expected {got}"
    keys = "alpha, shape, name, x"
    for wrong, message in [
        ({**fields, "y": 1}, of("keys", f"{keys}, got 5 keys")),
        ({**{name: of for name, of in fields.items() if name != "x"}, "y": 1}, of("keys", f"{keys}, got no x")),
        ((2, (10, 2), "a"), of("length", "4, got 3")),
        (3, of("type", 'Record("Config"), got int')),
        (None, of("type", 'Record("Config"), got None')),
        (x, of("type", 'Record("Config"), got Tensor')),
        (
            Base(alpha=2, shape=(10, 2)),
            of("type", 'Record("Config"), got test_records.Base, which has no field name'),
        ),
    ]:
        with pytest.raises(TypeError) as raised:
            scaled(wrong)
        assert str(raised.value) == message


@pytest.mark.parametrize("compiled", ["here", "in a file"])
def test_a_field_is_read_by_its_getter(compiled, cc, tmp_path):
    text = 'f(cfg: Record("Typed", alpha: float32, shape: Shape([n]), name: str, x: Tensor([n], float32))) -> float32'
    source = """
    #include <stddef.h>
    #include <stdint.h>
    float f(float alpha, const int64_t* shape, size_t shape_size, const char* name, size_t name_size, float* x,
            int64_t n) {
      return alpha * (x[n - 1] + name_size);
    }
    """
    object = cc.object(source)
    if compiled == "here":
        function = tfc.compile(text, tfc.Kernel.object(object, "f"))
    else:
        tfc.Library().add(text, tfc.Kernel.symbol("f")).link(tmp_path / "f.so", objects=object)
        function = tvm_ffi.load_module(str(tmp_path / "f.so")).f
    _, x = vector()
    cfg = Typed(x=x, name="a name on the heap", more=True, alpha=0.5, shape=tvm_ffi.Shape((3,)))
    with pytest.raises(ValueError, match="Mismatched cfg.x.shape.0. .*, expected 4 "):
        function(Typed(x=x, name="", more=True, alpha=0.5, shape=tvm_ffi.Shape((4,))))
    assert function(cfg) == 0.5 * (2 + 18)


def test_metadata_and_stubs_have_records():
    library = tfc.Library().add(f"{TEXT} where cfg.shape[1] <= n", tfc.Kernel.host(BLOCK))
    (described,) = tfc.functions(library)
    (parameter,) = described.metadata["parameters"]
    assert parameter["name"] == "cfg" and parameter["type"] == TEXT[len("scaled(cfg: ") : -1]
    schema = tvm_ffi.core.TypeSchema.from_json_str(described.metadata["type_schema"])
    assert "Config" in repr(schema)
    assert "cfg: tvm_ffi.Object | Mapping[str, Any] | Sequence[Any]" in tfc.stubs(library)
    record = described.signature.structure["parameters"][0]["type"]
    assert (record["kind"], record["name"], record["fields"]) == ("record", "Config", ["alpha", "shape", "name", "x"])
    assert record["of"][1] == {"kind": "tuple", "of": 2 * [{"kind": "scalar", "name": "int64"}]}


def test_a_callable_takes_records_by_keyword(scaled):
    array, x = vector()
    tfc.python_callable(scaled)(cfg=Named(2, (1, 3), "a", x))
    assert array.tolist() == [1, 3, 5]


def test_the_builder_has_fields():
    program = tfc.host.Program()
    b = program.function('total(cfg: Record("C", size: int64, t: Tuple[int64, float64])) -> float64')
    cfg = b.arg("cfg")
    b.ret(tfc.host.cast("float64", cfg.size + cfg.t[0]) * cfg.t[1])
    assert "return float64(cfg.size + cfg.t[0]) * cfg.t[1];" in str(program)
    total = tfc.program(str(program)).compile()["total"]
    assert total({"size": 3, "t": (4, 0.5)}) == 3.5
