"""Structural equality, hashes and keys, graphs as JSON, access paths and pickles. A generator makes the cases: objects
with fields of every kind, shared nodes, variables in and out of definition regions, containers in containers."""

import pickle
import random
from typing import Any, ClassVar, Optional

import numpy as np
import tvm_ffi
from tvm_ffi import structural_equal, structural_hash
from tvm_ffi.access_path import AccessPath
from tvm_ffi.dataclasses import Enum, IntEnum, StrEnum, entry, field, py_class
from tvm_ffi.serialization import from_json_graph_str, to_json_graph_str
from tvm_ffi.structural import StructuralKey, get_first_structural_mismatch


class Op(Enum, type_key="structures.Op"):
    arity: int = 0
    neg: ClassVar["Op"] = entry(arity=1)
    add = entry(arity=2)


class Level(IntEnum, type_key="structures.Level"):
    low = 3
    high = 1 << 40


class Colour(StrEnum, type_key="structures.Colour"):
    red = "r"
    green = "a text of more than seven bytes"


@py_class("structures.Var", structural_eq="var")
class Var(tvm_ffi.Object):
    name: str = field(structural_eq="ignore")
    kind: Any = None


@py_class("structures.Tree", structural_eq="tree")
class Tree(tvm_ffi.Object):
    number: int
    real: float
    flag: bool
    text: str
    data: bytes
    dtype: tvm_ffi.dtype
    device: tvm_ffi.Device
    anything: Any
    items: tvm_ffi.Array
    mapping: tvm_ffi.Map
    note: str = field(default="", structural_eq="ignore")
    maybe: Optional[tvm_ffi.Object] = None


@py_class("structures.Leaf", structural_eq="const-tree")
class Leaf(tvm_ffi.Object):
    value: Any


@py_class("structures.Grown", structural_eq="const-tree")
class Grown(Leaf):
    more: int = 7


@py_class("structures.Shared", structural_eq="dag")
class Shared(tvm_ffi.Object):
    items: tvm_ffi.List
    entries: tvm_ffi.Dict


@py_class("structures.Alone", structural_eq="singleton")
class Alone(tvm_ffi.Object):
    value: int


@py_class("structures.Opaque", structural_eq=None)
class Opaque(tvm_ffi.Object):
    value: int


@py_class("structures.Pattern", structural_eq="tree")
class Pattern(tvm_ffi.Object):
    params: tvm_ffi.Array = field(structural_eq="def-pattern")
    body: Any = None


@py_class("structures.Simple", structural_eq="tree")
class Simple(tvm_ffi.Object):
    params: tvm_ffi.Array = field(structural_eq="def-simple")
    body: Any = None


@py_class("structures.Hooked", structural_eq="tree")
class Hooked(tvm_ffi.Object):
    """Compared by functions of its own: the parameters are defined, the body is compared in the opposite order."""

    params: tvm_ffi.Array
    body: Any
    tag: int

    def __s_equal__(self, other, compare):
        return compare(self.params, other.params, 1, "params") and compare(self.body, other.body, 0, "body")

    def __s_hash__(self, start, combine):
        return combine(self.body, combine(self.params, start, 1), 0)


@py_class("structures.Encoded", structural_eq="tree")
class Encoded(tvm_ffi.Object):
    values: tvm_ffi.Array

    def __data_to_json__(self):
        return {"joined": ",".join(str(value) for value in self.values)}

    @staticmethod
    def __data_from_json__(data):
        return Encoded(values=[int(word) for word in data["joined"].split(",")])


class Maker:
    """Makes the same value for the same seed, but for the leaf whose number is `changed`."""

    def __init__(self, seed: int, changed: int = -1, variables: bool = True):
        self.random = random.Random(seed)
        self.leaves = 0
        self.changed = changed
        self.variables = variables
        self.known: list[Any] = []
        self.scope: list[Var] = []

    def leaf(self) -> Any:
        choice = self.random.randrange(12)
        number = self.random.randrange(1000)
        self.leaves += 1
        if self.leaves - 1 == self.changed:
            number += 1000
            choice = self.random.choice([choice, 0])
        return [
            lambda: number,
            lambda: -number * (1 << 50),
            lambda: (number - 500) / 8,
            lambda: float("nan") if number < 500 else float("-inf"),
            lambda: number % 2 == 0,
            lambda: None,
            lambda: f"s{number}",
            lambda: f'a longer string, with number {number} and \u00e9\n"/',
            lambda: str(number).encode(),
            lambda: b"\x00\xff more than seven bytes" + str(number).encode(),
            lambda: tvm_ffi.dtype(["int8", "float32", "bfloat16", "bool", "uint64x4", "float8_e4m3fn"][number % 6]),
            lambda: tvm_ffi.Device(["cpu", "cuda", "rocm"][number % 3], number // 100),
        ][choice]()

    def value(self, depth: int) -> Any:
        choice = self.random.randrange(18)
        if depth <= 0 or choice < 4:
            return self.leaf()
        made = self.inner(depth - 1, choice)
        self.known.append(made)
        return made

    def values(self, depth: int) -> list[Any]:
        return [self.value(depth) for _ in range(self.random.randrange(4))]

    def var(self, depth: int) -> Any:
        if not self.variables:
            return self.leaf()
        var = Var(name=f"v{self.random.randrange(10)}", kind=self.value(depth))
        self.scope.append(var)
        return var

    def inner(self, depth: int, choice: int) -> Any:
        if choice == 4:
            return tvm_ffi.Array(self.values(depth))
        if choice == 5:
            return tvm_ffi.List(self.values(depth))
        if choice == 6:
            return tvm_ffi.Map({self.key(): self.value(depth) for _ in range(self.random.randrange(4))})
        if choice == 7:
            return tvm_ffi.Dict({self.key(): self.value(depth) for _ in range(self.random.randrange(4))})
        if choice == 8:
            return tvm_ffi.Shape([self.random.randrange(100) for _ in range(self.random.randrange(4))])
        if choice == 9 and self.known:
            return self.random.choice(self.known)
        if choice == 10 and self.scope:
            return self.random.choice(self.scope)
        if choice == 11:
            return (
                Leaf(self.leaf()) if self.random.random() < 0.5 else Grown(self.value(depth), self.random.randrange(9))
            )
        if choice == 12:
            entries = {self.key(): self.value(depth) for _ in range(self.random.randrange(3))}
            return Shared(items=self.values(depth), entries=entries)
        if choice in (13, 14):
            params = [self.var(depth) for _ in range(self.random.randrange(3))]
            kind = [Pattern, Simple][choice - 13]
            return kind(params=params, body=self.value(depth))
        if choice == 15:
            params = [self.var(depth) for _ in range(self.random.randrange(3))]
            return Hooked(params=params, body=self.value(depth), tag=self.random.randrange(100))
        if choice == 16:
            return self.random.choice([Op.neg, Op.add, Level.low, Level.high, Colour.red, Colour.green])
        return Tree(
            number=self.random.randrange(-5, 5),
            real=self.random.randrange(-5, 5) / 4,
            flag=self.random.random() < 0.5,
            text=f"text {self.random.randrange(5)}",
            data=bytes([self.random.randrange(256) for _ in range(self.random.randrange(12))]),
            dtype=self.random.choice(["int32", "float64", "bool"]),
            device=tvm_ffi.Device("cuda", self.random.randrange(3)),
            anything=self.value(depth),
            items=self.values(depth),
            mapping={self.key(): self.value(depth) for _ in range(self.random.randrange(3))},
            note=f"note {self.random.randrange(100)}",
            maybe=Leaf(1) if self.random.random() < 0.5 else None,
        )

    def key(self) -> Any:
        number = self.random.randrange(6)
        return [number, f"k{number}", f"a longer key {number}", number / 2, b"k%d" % number, None][
            self.random.randrange(6)
        ]


def attempt(call, *args):
    try:
        return call(*args)
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"


def paths(one, other, map_free_vars):
    found = get_first_structural_mismatch(one, other, map_free_vars)
    return "same" if found is None else " | ".join(str(path) for path in found)


def generated():
    for seed in range(400):
        variables = seed % 2 == 0
        maker = Maker(seed, variables=variables)
        value = tvm_ffi.convert([maker.value(5)])
        text = attempt(to_json_graph_str, value)
        print(seed, "json", text)
        for map_free_vars in (False, True):
            if map_free_vars or not variables:
                print(seed, "hash", attempt(structural_hash, value, map_free_vars))
        again = tvm_ffi.convert([Maker(seed, variables=variables).value(5)])
        changed = tvm_ffi.convert([Maker(seed, random.Random(seed).randrange(maker.leaves + 1), variables).value(5)])
        for name, other in (("itself", value), ("again", again), ("changed", changed)):
            for map_free_vars in (False, True):
                print(
                    seed,
                    name,
                    attempt(structural_equal, value, other, map_free_vars),
                    attempt(paths, value, other, map_free_vars),
                )
        read = attempt(from_json_graph_str, text)
        if not isinstance(read, str):
            print(seed, "read", attempt(to_json_graph_str, read) == text, attempt(structural_equal, value, read, True))


def written_cases():
    shared = Leaf(1)
    cases = {
        "None": None,
        "int": 5,
        "text": "abc",
        "shape": tvm_ffi.Shape((1, 2)),
        "big": 1 << 100,
        "float": 1e300,
        "shared": tvm_ffi.Array([shared, shared]),
        "map": tvm_ffi.Map({"a": [1], "b": [1]}),
        "encoded": Encoded([1, 2, 3]),
        "enums": tvm_ffi.Array([Op.add, Level.high, Colour.green]),
        "opaque": Opaque(1),
        "function": tvm_ffi.convert(lambda x: x),
        "tensor": tvm_ffi.from_dlpack(np.arange(3)),
        "alone": Alone(1),
        "key": StructuralKey([1, 2]),
        "dtype": tvm_ffi.dtype("int32"),
        "device": tvm_ffi.Device("cuda", 3),
        "path": AccessPath.root().attr("x").array_item(1),
    }
    for name, value in cases.items():
        print(name, attempt(to_json_graph_str, value), attempt(to_json_graph_str, value, {"a": 1, "b": "c"}))
        print(name, attempt(structural_hash, value))
    tangled = tvm_ffi.List([1])
    tangled.append(tangled)
    print("a list in itself", attempt(to_json_graph_str, tangled))
    nested = tvm_ffi.Dict({"a": tvm_ffi.Array([1])})
    nested["b"] = tvm_ffi.Array([tvm_ffi.List([nested])])
    print("a dict in itself", attempt(to_json_graph_str, nested))


MALFORMED = [
    "",
    "{}",
    "[]",
    "3",
    '{"root_index":0}',
    '{"root_index":"a","nodes":[]}',
    '{"root_index":0,"nodes":{}}',
    '{"root_index":0,"nodes":[]}',
    '{"root_index":-1,"nodes":[{"type":"None"}]}',
    '{"root_index":0,"nodes":[3]}',
    '{"root_index":0,"nodes":[{}]}',
    '{"root_index":0,"nodes":[{"type":3}]}',
    '{"root_index":0,"nodes":[{"type":"no.such.Type","data":1}]}',
    '{"root_index":0,"nodes":[{"type":"int"}]}',
    '{"root_index":0,"nodes":[{"type":"int","data":"a"}]}',
    '{"root_index":0,"nodes":[{"type":"int","data":1.5}]}',
    '{"root_index":0,"nodes":[{"type":"bool","data":1}]}',
    '{"root_index":0,"nodes":[{"type":"float","data":1}]}',
    '{"root_index":0,"nodes":[{"type":"DataType","data":"no such"}]}',
    '{"root_index":0,"nodes":[{"type":"DataType","data":"int32"}]}',
    '{"root_index":0,"nodes":[{"type":"Device","data":[1]}]}',
    '{"root_index":0,"nodes":[{"type":"Device","data":[2,3]}]}',
    '{"root_index":0,"nodes":[{"type":"ffi.Bytes","data":"abc"}]}',
    '{"root_index":0,"nodes":[{"type":"ffi.Bytes","data":"YWJj"}]}',
    '{"root_index":0,"nodes":[{"type":"ffi.Array","data":[1,2]}]}',
    '{"root_index":0,"nodes":[{"type":"ffi.Map","data":[0]}]}',
    '{"root_index":0,"nodes":[{"type":"ffi.Dict","data":[1,1,1]},{"type":"int","data":3}]}',
    '{"root_index":0,"nodes":[{"type":"ffi.Dict","data":[1,1]},{"type":"int","data":3}]}',
    '{"root_index":0,"nodes":[{"type":"ffi.Array","data":["a"]}]}',
    '{"root_index":0,"nodes":[{"type":"ffi.Array","data":3}]}',
    '{"root_index":0,"nodes":[{"type":"structures.Leaf","data":{}}]}',
    '{"root_index":0,"nodes":[{"type":"structures.Leaf","data":[]}]}',
    '{"root_index":0,"nodes":[{"type":"structures.Leaf","data":{"value":1}},{"type":"int","data":4}]}',
    '{"root_index":0,"nodes":[{"type":"structures.Alone","data":{"value":"a"}}]}',
    '{"root_index":0,"nodes":[{"type":"structures.Grown","data":{"value":1}},{"type":"int","data":4}]}',
    '{"root_index":0,"nodes":[{"type":"structures.Op","data":"neg"}]}',
    '{"root_index":0,"nodes":[{"type":"structures.Op","data":"none"}]}',
    '{"root_index":0,"nodes":[{"type":"structures.Level","data":0}]}',
    '{"root_index":0,"nodes":[{"type":"structures.Level","data":9}]}',
    '{"root_index":0,"nodes":[{"type":"structures.Colour","data":"r"}]}',
    '{"root_index":0,"nodes":[{"type":"structures.Opaque","data":{"value":5}}]}',
    '{"root_index":0,"nodes":[{"type":"ffi.Function","data":{}}]}',
    '{"root_index":0,"nodes":[{"type":"ffi.Tensor","data":{}}]}',
    '{"root_index":0,"nodes":[{"type":"ffi.Shape","data":[1,-2]}]}',
    '{"root_index":0,"nodes":[{"type":"ffi.Shape","data":[1,"a"]}]}',
    '{"root_index":0,"nodes":[{"type":"ffi.BigInt","data":"123456789012345678901234567890"}]}',
    '{"root_index":0,"nodes":[{"type":"ffi.BigInt","data":"12a"}]}',
    '{"root_index":0,"nodes":[{"type":"ffi.String","data":1}]}',
]


def malformed():
    for text in MALFORMED:
        print(text, "->", attempt(lambda: repr(from_json_graph_str(text))))


def tensors():
    base = np.arange(12, dtype="int32").reshape(3, 4)
    made = {
        name: tvm_ffi.from_dlpack(array)
        for name, array in {
            "a": base.copy(),
            "same": base.copy(),
            "other": base + 1,
            "flat": base.copy().reshape(12),
            "typed": base.astype("int64"),
            "gaps": base[:, ::2],
            "empty": np.zeros((0, 3), "float32"),
            "odd": np.arange(5, dtype="uint8"),
        }.items()
    }
    for name, tensor in made.items():
        for skip in (False, True):
            print(
                name,
                skip,
                attempt(structural_equal, made["a"], tensor, False, skip),
                attempt(structural_hash, tensor, False, skip),
            )


def keys():
    one, same, other = StructuralKey([1, "a"]), StructuralKey([1, "a"]), StructuralKey([1, "b"])
    print(one == same, one == other, hash(one) == hash(same), one.hash_i64, other.hash_i64, one.key)
    mapping = tvm_ffi.Map({one: 1, other: 2})
    print(len(mapping), mapping[same], len(tvm_ffi.Dict({one: 1, same: 2})))
    equal = tvm_ffi.get_global_func("ffi.StructuralKeyEqual")
    print(attempt(equal, one, same), attempt(equal, 1, one), attempt(equal, one, None), attempt(equal, 1, 1))
    print(attempt(structural_equal, one, same), attempt(StructuralKey, Opaque(1)))


def access_paths():
    root = AccessPath.root()
    path = root.attr("x").array_item(3).map_item("k").attr_missing("y").array_item_missing(-1).map_item_missing(2.5)
    print(path, root, len(path.to_steps()), [step.kind for step in path.to_steps()])
    print(path.parent == root.attr("x").array_item(3).map_item("k").attr_missing("y").array_item_missing(-1))
    print(root.is_prefix_of(path), path.is_prefix_of(root), path.is_prefix_of(path), path == root.attr("x"))
    print(root.attr("x") == root.attr("x"), root.attr("x") == root.attr("y"), root.attr("1") == root.array_item(1))
    print(
        attempt(root._attr, 3),
        attempt(root._extend, root),
        attempt(root._array_item, "a"),
        attempt(root._is_prefix_of, 3),
    )
    for step in path.to_steps():
        root = root._extend(step)
    print(root == path)


def pickles():
    values = [
        tvm_ffi.Array([1, "a", None]),
        tvm_ffi.Map({"a": [1, 2]}),
        tvm_ffi.List([1.5, [2]]),
        tvm_ffi.Dict({1: {2: 3}}),
        tvm_ffi.Shape((1, 2, 3)),
        tvm_ffi.dtype("float16"),
        tvm_ffi.Device("cuda", 1),
        Leaf(Leaf("deep")),
        Maker(3).inner(2, 17),
        Op.add,
        Level.high,
        Colour.red,
        Encoded([4, 5]),
        AccessPath.root().attr("x"),
    ]
    for value in values:
        read = pickle.loads(pickle.dumps(value))
        print(type(read).__name__, type(read) is type(value), read is value, repr(read) == repr(value))
    tensor = tvm_ffi.from_dlpack(np.zeros((2, 3), "float32"))
    description = tvm_ffi.Map({"shape": tensor.shape, "dtype": tensor.dtype, "device": tensor.device})
    read = pickle.loads(pickle.dumps(description))
    print(read["shape"], read["dtype"], read["device"], structural_equal(read, description))
    for refused in (tensor, Opaque, tvm_ffi.convert(lambda: 1)):
        print(attempt(lambda: type(pickle.loads(pickle.dumps(refused))).__name__))


generated()
written_cases()
malformed()
tensors()
keys()
access_paths()
pickles()
