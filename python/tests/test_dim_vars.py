"""Python computes the same dimensions as wrappers."""

from __future__ import annotations

import random

import numpy as np
import pytest
import tvm_ffi_codegen as tfc
from tvm_ffi_codegen._dim_vars import DimVars, Numbers, show

MOST = 2**63 - 1


def stated(text: str) -> str:
    """A signature that compares an expression with a parameter."""
    return f"f(n: int64, m: int64, r: int64) where {text} == r"


def dim_of(text: str):
    """An expression as data."""
    return tfc.Signature(stated(text)).structure["where"][0][1]


def test_a_structure_has_types_dims_and_constraints():
    signature = tfc.Signature(
        'f(a: uint8, x: Tensor([n, ceil_div(m, 2)], float32, device="cuda:1", strides=[s, 1]), m: int64, e: EnvStream, '
        "y: Optional[Tensor([...], any, device=any, strides=any)] = None, t: Tuple[Int(3), Bool(True)] , "
        'o: Object("my.T"), d: dtype, k: Array[Shape([n])]) -> Tensor([min(n, 4)], d, device="cuda") '
        "where n % 16 == 0".replace(" = None", "")
    )
    structure = signature.structure
    types = {of["name"]: of["type"] for of in structure["parameters"]}
    assert types["a"] == {"kind": "scalar", "name": "uint8"}
    assert types["x"] == {
        "kind": "tensor",
        "shape": ["n", ["ceil_div", "m", 2]],
        "dtype": "float32",
        "device": {"kind": "cuda", "id": 1},
        "strides": ["s", 1],
    }
    tensor = {"kind": "tensor", "shape": None, "dtype": "any", "device": "any", "strides": "any"}
    assert types["y"] == {"kind": "optional", "of": [tensor]}
    assert types["t"] == {"kind": "tuple", "of": [{"kind": "int", "value": 3}, {"kind": "bool", "value": True}]}
    assert types["o"] == {"kind": "object", "key": "my.T"} and "e" not in types
    assert types["k"] == {"kind": "array", "of": [{"kind": "shape", "shape": ["n"]}]}
    result = structure["result"]
    assert (result["shape"], result["dtype"]) == ([["min", "n", 4]], {"parameter": "d"})
    assert result["device"] == {"kind": "cuda", "id": None} and result["strides"] is None
    assert structure["where"] == [["==", ["%", "n", 16], 0]]


def expression(random: random.Random, depth: int) -> str:
    if depth == 0 or random.random() < 0.2:
        return random.choice(["n", "m", str(random.randrange(-9, 10))])
    x, y = expression(random, depth - 1), expression(random, depth - 1)
    operation = random.choice(["+", "-", "*", "//", "%", "ceil_div", "min", "max"])
    return f"{operation}({x}, {y})" if operation.isalpha() or "_" in operation else f"(({x}) {operation} ({y}))"


def test_expressions_have_the_values_that_wrappers_compute():
    rng = random.Random(1)
    values = [0, 1, -1, 2, -7, 13, 100, -(2**31), 2**31, MOST, -MOST - 1]
    computed = failed = 0
    for _ in range(150):
        text = expression(rng, 3)
        try:
            f, dim = tfc.compile(stated(text), tfc.Kernel.check_only()), dim_of(text)
        except tfc.SignatureError:
            # a part without variables can't be computed, such as a division by 0
            continue
        for n, m in [(rng.choice(values), rng.choice(values)) for _ in range(8)]:
            try:
                value = DimVars(Numbers(), {"n": n, "m": m}).compute(dim)
            except ValueError:
                failed += 1
                for result in (0, 1):
                    with pytest.raises(Exception):
                        f(n, m, result)
                continue
            computed += 1
            f(n, m, value)
            with pytest.raises(ValueError):
                f(n, m, value + 1 if value < MOST else value - 1)
    assert computed > 500 and failed > 50, (computed, failed)


@pytest.mark.parametrize(
    "text, shown",
    [
        ("n + 2 * m", "n + (2 * m)"),
        ("(n + m) * 3 // 4", "((n + m) * 3) // 4"),
        ("max(n - 1, m % 5)", "max(n - 1, m % 5)"),
        ("n - (m - 1)", "n - (m - 1)"),
    ],
)
def test_dims_are_shown_with_all_parentheses(text, shown):
    assert show(dim_of(text)) == shown and dim_of(shown) == dim_of(text)


SOLVED = "f(x: Tensor([2 * n + k], int8), y: Tensor([n - m, 3 - k], int8), z: Tensor([m], int8))"


def solve(signature: str, *arrays: np.ndarray) -> dict[str, int]:
    """The dimension variables of a call, as :class:`DimVars` computes them."""
    structure = tfc.Signature(signature).structure
    dim_vars = DimVars(Numbers(), {})
    for of, array in zip(structure["parameters"], arrays):
        for number, (dim, size) in enumerate(zip(of["type"]["shape"], array.shape)):
            dim_vars.match(dim, size, f"{of['name']}.shape[{number}]")
    dim_vars.settle()
    return dim_vars.values


def test_dimension_variables_are_solved_for_as_wrappers_do():
    f = tfc.compile(SOLVED, tfc.Kernel.check_only())
    arrays = [np.zeros(11, "int8"), np.zeros((3, 2), "int8"), np.zeros(2, "int8")]
    f(*arrays)
    assert solve(SOLVED, *arrays) == {"n": 5, "k": 1, "m": 2}
    for wrong in ([np.zeros(12, "int8"), *arrays[1:]], [*arrays[:2], np.zeros(3, "int8")]):
        with pytest.raises(ValueError):
            f(*wrong)
        with pytest.raises(ValueError):
            solve(SOLVED, *wrong)
