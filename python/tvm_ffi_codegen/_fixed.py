"""A fixed dispatch as host text: conditions on the keys, and the variants' functions in the same library."""

from __future__ import annotations

import re
from collections.abc import Iterable

import tvm_ffi

from ._text import quoted, unused
from ._variants import Variant
from .errors import KernelError
from .key import Key, Keys
from .signature import Signature


def forwarding(signature: Signature) -> str:
    """The signature of a function that forwards its calls, as text. The callee checks its own result."""
    if signature.returns is None:
        return signature.text
    constraints = f" where {', '.join(signature.where)}" if signature.where else ""
    head = signature.text.removesuffix(constraints)
    return f"{head.removesuffix(f' -> {signature.returns}')} -> Any{constraints}"


def fixed(
    signature: Signature, keys: Keys, variants: Iterable[tuple[Key, Variant]]
) -> tuple[str, list[Variant]]:
    """The block of a function that chooses one of the variants, and the variants with names of their own."""
    name = signature.name
    used = {of.name for of in signature.parameters} | set(signature.dim_vars)
    operands, lines = [], []
    for number, (expression, kind) in enumerate(zip(keys.expressions, keys.kinds)):
        if kind not in ("bool", "int", "any"):
            operands.append(expression)
            continue
        operands.append(unused(f"key{number}", used))
        lines.append(f"let {operands[-1]} = {expression};")
    rows, named, taken = [], [], {name}
    for key, variant in variants:
        own = re.sub(r"\W+", "_", f"{name}__{'_'.join(map(str, key.values()))}", flags=re.ASCII)
        while own in taken:
            own += "_"
        taken.add(own)
        tests = [_test(name, of, operand) for (name, of), operand in zip(key.items(), operands)]
        lines.append(f"if {' and '.join(tests)} {{ forward symbol {own}(); }}")
        rows.append(", ".join(map(str, key.values())))
        named.append(variant.renamed(own))
    got = ", ".join(f"{_plain(of)} = {{}}" for of in keys.names)
    more = f", and {len(rows) - _LISTED} more" if len(rows) > _LISTED else ""
    listed = "; ".join(map(_plain, rows[:_LISTED]))
    message = f"`{name}` has no variant for {got}; the variants are for ({', '.join(map(_plain, keys.names))}): {listed}{more}"
    lines.append(f"raise ValueError({', '.join([quoted(message), *operands])});")
    return "\n  ".join(["{", *lines]) + "\n}", named


#: How many variants an error lists.
_LISTED = 64


def _plain(text: str) -> str:
    """A text in the message of a `raise`, where braces stand for values."""
    return text.replace("{", "{{").replace("}", "}}")


def _test(name: str, value: object, operand: str) -> str:
    """The condition that a key has a value."""
    if isinstance(value, tvm_ffi.dtype):
        return f"{operand} == {value}"
    if isinstance(value, bool):
        return operand if value else f"not {operand}"
    if isinstance(value, int):
        return f"{operand} == {value}"
    raise KernelError(f"the key `{name}` has the value {value}, which a fixed dispatch can't compare with")
