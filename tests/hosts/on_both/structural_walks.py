"""Structural walks, visits, maps and mutations of Python's package: a few cases by hand, and many by a generator."""

import random
from typing import Any

import tvm_ffi
from tvm_ffi.dataclasses import field, py_class

find_access_paths = tvm_ffi.get_global_func("ffi.VisitErrorContext.FindAccessPaths")


@py_class("on_both.Var", structural_eq="var")
class Var(tvm_ffi.Object):
    name: str
    type: Any = None


@py_class("on_both.Node", structural_eq="dag")
class Node(tvm_ffi.Object):
    args: Any
    label: str


@py_class("on_both.Func", structural_eq="tree")
class Func(tvm_ffi.Object):
    params: Any = field(structural_eq="def-pattern")
    body: Any
    note: Any = field(structural_eq="ignore", default=None)


@py_class("on_both.Let", structural_eq="tree")
class Let(tvm_ffi.Object):
    var: Any = field(structural_eq="def-simple")
    value: Any
    body: Any


@py_class("on_both.Frozen", structural_eq="tree", frozen=True)
class Frozen(tvm_ffi.Object):
    inside: Any


@py_class("on_both.Hooked", structural_eq="tree")
class Hooked(tvm_ffi.Object):
    first: Any
    second: Any

    def __s_visit__(visitor, value):  # noqa: N805
        region = tvm_ffi.DefRegionKind.DEF_PATTERN
        found = visitor.with_def_region_kind(region, lambda: visitor.visit(value.second))
        return found if found is not None else visitor.visit(value.first)

    def __s_mutate__(mutator, value):  # noqa: N805
        second = mutator.with_def_region_kind(1, lambda: mutator.mutate(value.second))
        first = mutator.mutate(value.first)
        if first is value.first and second is value.second:
            return value
        return Hooked(first, second)


FIELDS = {
    Var: ["name", "type"],
    Node: ["args", "label"],
    Func: ["params", "body", "note"],
    Let: ["var", "value", "body"],
    Frozen: ["inside"],
    Hooked: ["first", "second"],
}


class Names:
    """Numbers for objects, in the order in which they are met."""

    def __init__(self):
        self.known = []

    def of(self, value):
        for number, other in enumerate(self.known):
            if other.same_as(value):
                return number
        self.known.append(value)
        return len(self.known) - 1


def text(value, names, depth=0):
    """The structure of a value, with a number for each object, so that shared ones are seen."""
    if not isinstance(value, tvm_ffi.Object) or isinstance(value, (str, bytes)):
        return repr(value)
    known = len(names.known)
    number = names.of(value)
    if number < known or depth > 40:
        return f"#{number}"
    inner = lambda x: text(x, names, depth + 1)
    if isinstance(value, (tvm_ffi.Array, tvm_ffi.List)):
        inside = ", ".join(map(inner, value))
    elif isinstance(value, (tvm_ffi.Map, tvm_ffi.Dict)):
        inside = ", ".join(f"{inner(key)}: {inner(item)}" for key, item in value.items())
    elif type(value) in FIELDS:
        inside = ", ".join(f"{name}={inner(getattr(value, name))}" for name in FIELDS[type(value)])
    else:
        inside = "..."
    return f"{type(value).__name__}#{number}({inside})"


def attempt(title, body, root=None):
    """Prints the result of `body`, or its error with the places that its context leads to."""
    try:
        print(title, "=", text(body(), Names()))
    except Exception as error:
        print(title, "raises", type(error).__name__, str(error).splitlines()[0])
        context = getattr(getattr(error, "__tvm_ffi_error__", None), "extra_context", None)
        if context is None:
            return
        pattern = context.reverse_visit_pattern
        print("  pattern", [type(item).__name__ for item in pattern], context.prev_error_context)
        if isinstance(root, tvm_ffi.Object):
            for prefix in (False, True):
                paths = [str(path) for path in find_access_paths(root, context, prefix)]
                print("  paths", prefix, paths)


def convert(value):
    return tvm_ffi.convert(value)


# Values made by a generator.


class Maker:
    def __init__(self, seed):
        self.dice = random.Random(seed)
        self.vars = [Var("x"), Var("y", convert([1, "a type"])), Var("z", Var("inner"))]
        self.nodes = [Node(convert([self.vars[0], 2]), "shared"), Node(1, "a label of many bytes")]
        self.made = []

    def value(self, depth):
        dice = self.dice
        if self.made and dice.random() < 0.15:
            return dice.choice(self.made)
        kinds = "leaf leaf var node"
        if depth > 0:
            kinds += " array list map dict func let frozen hooked node2 array list"
        value = getattr(self, dice.choice(kinds.split()))(depth - 1)
        if isinstance(value, tvm_ffi.Object):
            self.made.append(value)
        return value

    def leaf(self, _depth):
        return self.dice.choice(
            [1, 2, 3.5, True, None, "a", "a text of more than seven bytes", b"b", b"many bytes are here", 1 << 70]
        )

    def var(self, _depth):
        return self.dice.choice(self.vars)

    def node(self, _depth):
        return self.dice.choice(self.nodes)

    def some(self, depth, most=4):
        return [self.value(depth) for _ in range(self.dice.randrange(most))]

    def entries(self, depth):
        keys = ["k", 7, "a key of more than seven bytes", self.vars[1], 2.5, True, b"q"]
        return {key: self.value(depth) for key in self.dice.sample(keys, self.dice.randrange(7))}

    def array(self, depth):
        return tvm_ffi.Array(self.some(depth))

    def list(self, depth):
        return tvm_ffi.List(self.some(depth))

    def map(self, depth):
        return tvm_ffi.Map(self.entries(depth))

    def dict(self, depth):
        return tvm_ffi.Dict(self.entries(depth))

    def func(self, depth):
        params = tvm_ffi.Array([self.var(0) for _ in range(self.dice.randrange(3))])
        return Func(params, self.value(depth), self.value(depth))

    def let(self, depth):
        return Let(self.dice.choice([self.var(0), self.value(depth)]), self.value(depth), self.value(depth))

    def frozen(self, depth):
        return Frozen(self.value(depth))

    def hooked(self, depth):
        return Hooked(self.value(depth), self.value(depth))

    def node2(self, depth):
        return Node(self.value(depth), "made")


TYPES = [int, float, bool, str, bytes, Var, Node, Func, Let, Hooked, tvm_ffi.Array, tvm_ffi.List, tvm_ffi.Map]
TYPES += [tvm_ffi.Dict, tvm_ffi.Object, Any, object]


def entries_of(dice, make):
    return [(dice.choice(TYPES), make(dice, n)) for n in range(dice.randrange(4))]


def brief(value):
    return text(value, Names())[:60]


def walk_case(seed):
    dice = random.Random(seed)
    root = Maker(seed).value(4)
    events = []

    def make(with_kind):
        def of(dice, number):
            outcome = dice.choice([None, None, None, 0, 1, 1, "stop", "raise", "other"])
            after = dice.randrange(6)

            def callback(value, *kind):
                events.append((number, with_kind, [int(k) for k in kind], brief(value)))
                if len(events) <= after or outcome is None:
                    return None
                if outcome == "stop":
                    return tvm_ffi.VisitInterrupt(value)
                if outcome == "raise":
                    raise ValueError(f"of callback {number}")
                return 2.5 if outcome == "other" else outcome

            return callback

        return of

    callbacks, with_kind = entries_of(dice, make(False)), entries_of(dice, make(True))
    order = dice.choice(["pre", "post"])

    def body():
        result = tvm_ffi.structural_walk(root, callbacks, with_kind, order)
        return result if result is None else result.value

    attempt(f"walk {seed} {order}", body, root)
    print("  events", events)


def visit_case(seed):
    dice = random.Random(seed)
    root = Maker(seed).value(4)
    events = []

    def make(_dice, number):
        choice = dice.choice(["none", "default", "default", "inside", "region", "stop", "raise", "other"])
        after = dice.randrange(8)

        def callback(value, visitor):
            events.append((number, int(visitor.def_region_kind()), brief(value)))
            if len(events) > 60:
                return tvm_ffi.VisitInterrupt("long enough")
            if choice == "none":
                return None
            if choice == "inside" and isinstance(value, Let):
                return visitor.visit(value.body)
            if choice == "region":
                kind = len(events) % 3
                return visitor.with_def_region_kind(kind, lambda: visitor.default_visit(value))
            if len(events) > after:
                if choice == "stop":
                    return tvm_ffi.VisitInterrupt(value)
                if choice == "raise":
                    raise RuntimeError(f"of callback {number}")
                if choice == "other":
                    return "neither"
            return visitor.default_visit(value)

        return callback

    callbacks = entries_of(dice, make)

    def body():
        result = tvm_ffi.structural_visit(root, callbacks)
        return result if result is None else result.value

    attempt(f"visit {seed}", body, root)
    print("  events", events)


def changed(dice, number):
    """A callback of a map."""
    choice = dice.choice(["same", "same", "int", "wrap", "var", "raise", "fresh"])
    calls = [0]

    def callback(value, *_kind):
        calls[0] += 1
        if choice == "int" and isinstance(value, (int, float)) and not isinstance(value, bool):
            return value + 100
        if choice == "wrap" and isinstance(value, str) and len(value) < 40:
            return value + "!"
        if choice == "var" and isinstance(value, Var) and calls[0] < 8:
            return Var(value.name + "'", value.type)
        if choice == "fresh" and isinstance(value, tvm_ffi.Array) and calls[0] < 4:
            return tvm_ffi.Array([*value, calls[0]])
        if choice == "raise" and calls[0] > 5:
            raise KeyError(f"of callback {number}")
        return value

    return callback


def map_case(seed):
    dice = random.Random(seed)
    maker = Maker(seed)
    root = maker.value(4)
    maker.made.clear()
    callbacks, with_kind = entries_of(dice, changed), entries_of(dice, changed)
    order = dice.choice(["pre", "post"])
    before = text(root, Names())
    names = Names()

    def body():
        mapped = tvm_ffi.structural_map(root, callbacks, with_kind, order)
        # Numbers objects of the root first: shared ones have those numbers in the result.
        text(root, names)
        is_object = isinstance(root, tvm_ffi.Object) and isinstance(mapped, tvm_ffi.Object)
        print("  same as root", is_object and mapped.same_as(root))
        print("  shares", text(mapped, names))
        return mapped

    attempt(f"map {seed} {order}", body, root)
    print("  root kept", text(root, Names()) == before)


def moved_case(seed):
    """A map or mutation of a root that nothing else refers to."""
    dice = random.Random(seed)
    maker = Maker(seed)
    root = maker.value(4)
    if not isinstance(root, (tvm_ffi.Array, tvm_ffi.List, tvm_ffi.Map, tvm_ffi.Dict)):
        root = tvm_ffi.Array([root, maker.value(3), maker.value(3)])
    maker.made.clear()
    callbacks, order = entries_of(dice, changed), dice.choice(["pre", "post"])
    address = root.__chandle__()

    def body():
        if dice.random() < 0.5:
            result = tvm_ffi.structural_map(root._move(), callbacks, order=order)
        else:
            result = tvm_ffi.structural_mutate(root._move(), [(int, lambda value, mutator: value + 1)])
        print("  in place", isinstance(result, tvm_ffi.Object) and result.__chandle__() == address)
        return result

    attempt(f"moved {seed} {order}", body)


def mutate_case(seed):
    dice = random.Random(seed)
    maker = Maker(seed)
    root = maker.value(4)
    maker.made.clear()
    events = []

    def make(_dice, number):
        choice = dice.choice(["default", "default", "inside", "value", "remap", "region", "raise"])

        def callback(value, mutator, mode):
            events.append((number, int(mutator.def_region_kind()), mode, brief(value)))
            if len(events) > 60:
                return value
            if choice == "inside" and isinstance(value, Let):
                return Let(mutator.mutate(value.var), value.value, mutator.default_mutate(value.body))
            if choice == "value" and isinstance(value, (int, str)):
                return tvm_ffi.Array([value])
            if choice == "remap" and isinstance(value, Var):
                known = mutator.var_remap_get(value)
                if known is None:
                    known = Var(value.name + "2", mutator.mutate(value.type))
                    mutator.var_remap_set(value, known)
                return known
            if choice == "region":
                kind = len(events) % 3
                return mutator.with_def_region_kind(kind, lambda: mutator.default_mutate(value))
            if choice == "raise" and len(events) > 4:
                raise TypeError(f"of callback {number}")
            return mutator.default_mutate(value)

        if dice.random() < 0.5:
            return callback
        return lambda value, mutator: callback(value, mutator, -1)

    callbacks = entries_of(dice, make)
    attempt(f"mutate {seed}", lambda: tvm_ffi.structural_mutate(root, callbacks), root)
    print("  events", events)


for seed in range(120):
    walk_case(seed)
    visit_case(seed)
    map_case(seed)
    moved_case(seed)
    mutate_case(seed)


# Cases by hand.


def in_place():
    """Lists and arrays that only their container refers to keep their identity when they are moved."""
    root = tvm_ffi.List([tvm_ffi.Array([1, 2]), tvm_ffi.Dict({"k": tvm_ffi.List([3])}), tvm_ffi.Map({"m": 4})])
    ids = [root.__chandle__(), *[item.__chandle__() for item in root]]
    result = tvm_ffi.structural_map(root._move(), (int, lambda value: value + 1))
    print("in place", [a == b for a, b in zip(ids, [result.__chandle__(), *[item.__chandle__() for item in result]])])
    print(text(result, Names()))
    shared = tvm_ffi.Array([1, 2])
    root = tvm_ffi.List([shared, shared, tvm_ffi.Array([shared])])
    result = tvm_ffi.structural_map(root._move(), (int, lambda value: value + 1))
    print("shared", text(result, Names()), text(shared, Names()))


def order_of_maps():
    for size in (3, 9):
        for kind in (tvm_ffi.Map, tvm_ffi.Dict):
            root = kind({f"key {n}": n for n in range(size)})
            for move in (False, True):
                given = kind(dict(root.items()))._move() if move else root
                result = tvm_ffi.structural_map(given, (int, lambda value: value * 10 if value in (1, 5) else value))
                print(kind.__name__, size, move, text(result, Names()))


def messages():
    walk = tvm_ffi.get_global_func("ffi.StructuralWalk")
    mutate = tvm_ffi.get_global_func("ffi.StructuralMutate")
    identity = lambda *args: None
    for callbacks in ([(1, 2)], [(1,)], [5], 5, [("a", identity)], [tvm_ffi.List([1, identity])]):
        attempt(f"callbacks {callbacks if callbacks == 5 else len(callbacks)}", lambda: walk([1], callbacks, [], 0))
    attempt("order", lambda: walk([1], [], [], "x"))
    attempt("other order", lambda: walk([1], [], [], 7))
    for entry in [(-1, identity), (-1, identity, 2), (-1, identity, "s"), (-1, lambda v, m: 7, False)]:
        attempt("entry", lambda: mutate([1], [entry]))
    for result in ("s", 1.5, True, [1], 0, 1):
        attempt("result", lambda: walk([1, [2]], [(-1, lambda value: result)], [], 0))
    attempt("not a visitor", lambda: tvm_ffi.get_global_func("ffi.StructuralVisitorVisit")(1, 2))
    attempt("not a context", lambda: find_access_paths(convert([1]), 1, True))
    attempt("no copies", lambda: tvm_ffi.structural_map(convert([identity]), (int, identity)))
    attempt("frozen", lambda: tvm_ffi.structural_map(Frozen(convert([1])), (int, lambda value: 2)))
    attempt("key", lambda: tvm_ffi.structural_mutate([1], (int, lambda value, mutator: mutator.var_remap_get(value))))


def errors():
    """An error that passes callbacks and walks keeps one context."""
    root = Let(1, Frozen(convert(["bad"])), Func(convert([]), convert({"k": Frozen("bad")})))

    def fail(value, *_):
        raise ValueError("bad leaf")

    def inner(value, visitor):
        return visitor.default_visit(value)

    def before(value, *_):
        return find_access_paths(root, "no context", False)

    for name, leaf in (("error", fail), ("error of a function", before)):
        attempt(f"{name} in walk", lambda: tvm_ffi.structural_walk(root, (str, leaf)), root)
        attempt(f"{name} in visit", lambda: tvm_ffi.structural_visit(root, [(Let, inner), (str, leaf)]), root)
        attempt(f"{name} in map", lambda: tvm_ffi.structural_map(root, (str, leaf)), root)
        attempt(f"{name} in mutate", lambda: tvm_ffi.structural_mutate(root, (str, leaf)), root)


def kept():
    """A visitor and a mutator outlive their walks."""
    visitors, mutators = [], []

    def keep_visitor(value, visitor):
        visitors.append(visitor)

    def keep_mutator(value, mutator):
        mutators.append(mutator)
        return value + 1

    tvm_ffi.structural_visit(convert([1]), (int, keep_visitor))
    print("kept visitor", visitors[0].visit(convert([1, 2])), len(visitors), visitors[0].def_region_kind())
    tvm_ffi.structural_mutate(convert([1]), (int, keep_mutator))
    mutator, var = mutators[0], Var("v")
    print("kept mutator", text(mutator.mutate(convert([1, 2])), Names()), text(mutator.default_mutate(5), Names()))
    mutator.var_remap_set(var, 9)
    print("kept", mutator.var_remap_get(var), mutator.var_remap_get(Var("w")), text(mutator.mutate(var), Names()))


in_place()
order_of_maps()
messages()
errors()
kept()
