"""Enums and classes of Python. The runtime makes their objects with all fields zero, and then sets the fields."""

from typing import Any, ClassVar, Optional

import tvm_ffi
from tvm_ffi.dataclasses import Enum, IntEnum, StrEnum, auto, entry, py_class


class Activation(Enum, type_key="on_both.Activation"):
    arity: int = 0
    relu: ClassVar["Activation"] = entry(arity=1)
    add = entry(arity=2)
    none = auto()


class Level(IntEnum, type_key="on_both.Level"):
    low = 3
    a_level_with_a_long_name = 1 << 40


class Colour(StrEnum, type_key="on_both.Colour"):
    red = "r"
    green = "a text of more than seven bytes"


@py_class("on_both.Record")
class Record(tvm_ffi.Object):
    number: int
    real: float
    flag: bool
    text: str
    data: bytes
    anything: Any
    items: tvm_ffi.Array
    mapping: tvm_ffi.Dict
    dtype: tvm_ffi.dtype
    device: tvm_ffi.Device
    function: Optional[tvm_ffi.Function] = None
    maybe: Optional[str] = None


for enum in (Activation, Level, Colour):
    for variant in enum:
        print(
            repr(variant), variant._int_index, variant._str_index, hash(variant) == hash(enum.get(variant._str_index))
        )
print(Activation.relu.arity, Activation.get("add").arity, Activation.none.arity)
print(Level(3) == 3, Level.a_level_with_a_long_name.value, Colour.green.value, Colour("r") is Colour.red)

values = dict(
    number=1, real=0.5, flag=True, text="a text of more than seven bytes", data=b"b", anything=[1, None], items=[1, 2]
)
values.update(mapping={"a": 1}, dtype=tvm_ffi.dtype("float32"), device=tvm_ffi.device("cpu"))
record = Record(**values)
print(record.text, record.maybe, record.function, list(record.items), dict(record.mapping), record.dtype, record.device)

# An object as the runtime makes it, before any field is set.
empty = tvm_ffi.core._lookup_type_attr(Record.__tvm_ffi_type_info__.type_index, "__ffi_new__")()
print(empty.number, empty.real, empty.flag, empty.text, empty.data, empty.anything, empty.items, empty.function)
for name in ("ffi.Enum", "ffi.IntEnum", "ffi.StrEnum", "ffi.EnumState", "ffi.VisitInterrupt"):
    try:
        print(name, tvm_ffi.get_global_func("ffi.MakeObjectFromPackedArgs")(name).__class__.__name__)
    except (TypeError, RuntimeError) as error:
        print(name, error)
