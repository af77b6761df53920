"""A fixed dispatch as host text: a ``match`` over the keys, and the variants' functions in the same library."""

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
    rows, named, taken = [], [], {signature.name}
    for key, variant in variants:
        patterns = [_pattern(name, of) for name, of in key.items()]
        values = "_".join(map(str, key.values()))
        own = unused(re.sub(r"\W+", "_", f"{signature.name}__{values}", flags=re.ASCII), taken)
        taken.add(own)
        rows.append(f"{', '.join(patterns)} => forward symbol {own}();")
        named.append(variant.renamed(own))
    lines = "\n    ".join(rows)
    return f"{{\n  match {', '.join(keys.expressions)} {{\n    {lines}\n  }}\n}}", named


def _pattern(name: str, value: object) -> str:
    """The pattern of a key's value."""
    if isinstance(value, tvm_ffi.dtype):
        return str(value)
    if isinstance(value, (bool, int)):
        return str(value)
    if isinstance(value, str):
        return quoted(value)
    raise KernelError(f"the key `{name}` has the value {value}, which a fixed dispatch can't compare with")
