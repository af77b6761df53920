"""Function metadata in Python's terms: annotations, defaults, documentation and stubs."""

from __future__ import annotations

import inspect as py_inspect
import json
import keyword
from collections.abc import Mapping
from typing import Any

import tvm_ffi

#: Python types by the types of upstream's schema.
_SCALARS = {
    "int": "int",
    "float": "float",
    "bool": "bool",
    "void*": "int | None",
    "ffi.String": "str",
    "ffi.Bytes": "bytes",
    "DataType": "tvm_ffi.dtype",
    "Device": "tvm_ffi.Device",
    "ffi.Module": "tvm_ffi.Module",
    "ffi.Tensor": "tvm_ffi.Tensor",
    "Any": "Any",
    "None": "None",
}
_CONTAINERS = {
    "ffi.Array": "Sequence",
    "ffi.List": "Sequence",
    "ffi.Map": "Mapping",
    "ffi.Dict": "Mapping",
    "Tuple": "tuple",
}


def _annotation(schema: dict[str, Any]) -> str:
    """The annotation of a parameter or a result."""
    if "fields" in schema:
        # a record: a dataclass of TVM FFI, a dictionary or a named tuple
        return "tvm_ffi.Object | Mapping[str, Any] | Sequence[Any]"
    kind, args = schema["type"], [_annotation(arg) for arg in schema.get("args", [])]
    if kind == "Optional":
        return args[0] if args[0].endswith("None") or args[0] == "Any" else f"{args[0]} | None"
    if kind == "DLTensor*":
        # any object with `__dlpack__`: a PyTorch tensor, a NumPy or JAX array, an `ffi.Tensor`
        return "SupportsDLPack"
    if kind in _CONTAINERS:
        return f"{_CONTAINERS[kind]}[{', '.join(args)}]" if args else _CONTAINERS[kind]
    if kind == "ffi.Shape":
        return "Sequence[int]"
    if kind == "ffi.Function":
        return "Callable[..., Any]"
    return _SCALARS.get(kind, "tvm_ffi.Object")


def _default(value: Any, schema: dict[str, Any]) -> Any:
    """Converts a default in the metadata to the value that it stands for."""
    kind = schema["type"]
    if value is None:
        return None
    if kind == "Optional":
        return _default(value, schema["args"][0])
    if kind == "Device":
        return tvm_ffi.device(value)
    if kind == "DataType":
        return tvm_ffi.dtype(value)
    if kind == "ffi.Bytes":
        return value.encode()
    # JSON has no infinity and no NaN, so the metadata has them as strings
    return float(value) if kind == "float" else value


def _as_name(identifier: str) -> str:
    """A name that Python's grammar has for a parameter."""
    return f"{identifier}_" if keyword.iskeyword(identifier) else identifier


class Described:
    """A function's name, documentation and Python signature.

    The metadata has ``signature``, ``type_schema`` and ``parameters``.
    """

    def __init__(self, name: str, doc: str | None, metadata: Mapping[str, Any]) -> None:
        schema = metadata["type_schema"]
        types = json.loads(schema) if isinstance(schema, str) else schema
        self.name = name
        self.doc = doc
        self.text: str = metadata["signature"]
        self.types: list[dict[str, Any]] = types["named_args"]["params"]
        self.parameters: list[dict[str, Any]] = metadata["parameters"]
        self.returns = _annotation(types["named_args"]["return"][0])

    @property
    def documentation(self) -> str:
        """The documentation, followed by the signature's text."""
        return "\n\n".join(text for text in (self.doc, self.text) if text)

    def signature(self) -> py_inspect.Signature:
        """The Python signature, with the defaults as values."""
        parameters = [
            py_inspect.Parameter(
                of["name"],
                (
                    py_inspect.Parameter.KEYWORD_ONLY
                    if of.get("keyword_only")
                    else py_inspect.Parameter.POSITIONAL_OR_KEYWORD
                ),
                default=_default(of["default"], schema) if "default" in of else py_inspect.Parameter.empty,
                annotation=_annotation(schema),
            )
            for of, schema in zip(self.parameters, self.types)
        ]
        return py_inspect.Signature(parameters, return_annotation=self.returns)

    def stub(self) -> str:
        """The function's entry in a ``.pyi`` file."""
        if not self.name.isidentifier() or keyword.iskeyword(self.name):
            return f"# `{self.name}` isn't a name in Python: use `module[{json.dumps(self.name)}]`\n"
        parameters = [
            f"{_as_name(of['name'])}: {_annotation(schema)}{' = ...' if 'default' in of else ''}"
            for of, schema in zip(self.parameters, self.types)
        ]
        keyword_only = [bool(of.get("keyword_only")) for of in self.parameters]
        if True in keyword_only:
            parameters.insert(keyword_only.index(True), "*")
        head = f"def {self.name}({', '.join(parameters)}) -> {self.returns}:"
        text = self.doc or ""
        if not text:
            return f"{head} ...\n"
        lines = text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"').splitlines()
        body = "\n".join(f"    {line}".rstrip() for line in lines)
        return f'{head}\n    """{body.lstrip()}"""\n'
