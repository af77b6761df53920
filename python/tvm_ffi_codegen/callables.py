"""Functions of a library as Python functions: keyword arguments, defaults, documentation, and stubs for type checkers."""

from __future__ import annotations

import inspect as py_inspect
import json
from collections.abc import Callable, Iterable
from typing import Any

import tvm_ffi

from .functions import FunctionInfo, HasFunctions, functions, of_module

#: Python's types by those of upstream's schema.
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
    """The type that a type checker sees for a parameter or a result."""
    kind, args = schema["type"], [_annotation(arg) for arg in schema.get("args", [])]
    if kind == "Optional":
        return args[0] if args[0].endswith("None") or args[0] == "Any" else f"{args[0]} | None"
    if kind == "DLTensor*":
        # whatever has `__dlpack__`: a tensor of PyTorch, an array of NumPy or JAX, an `ffi.Tensor`
        return "SupportsDLPack"
    if kind in _CONTAINERS:
        return f"{_CONTAINERS[kind]}[{', '.join(args)}]" if args else _CONTAINERS[kind]
    if kind == "ffi.Shape":
        return "Sequence[int]"
    if kind == "ffi.Function":
        return "Callable[..., Any]"
    return _SCALARS.get(kind, "tvm_ffi.Object")


def _default(value: Any, schema: dict[str, Any]) -> Any:
    """A default of the metadata as the value that it stands for."""
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
    # a float that JSON doesn't have is a text
    return float(value) if kind == "float" else value


class _Callable:
    """A function of a library as Python has it."""

    def __init__(self, of: FunctionInfo) -> None:
        schema = of.metadata["type_schema"]
        types = json.loads(schema) if isinstance(schema, str) else schema
        self.name = of.name
        self.doc = of.doc
        self.text = of.signature.text
        self.types: list[dict[str, Any]] = types["named_args"]["params"]
        self.parameters: list[dict[str, Any]] = of.metadata["parameters"]
        self.returns = _annotation(types["named_args"]["return"][0])

    def signature(self) -> py_inspect.Signature:
        """The function's signature with Python's values as defaults."""
        parameters = [
            py_inspect.Parameter(
                of["name"],
                py_inspect.Parameter.KEYWORD_ONLY if of.get("keyword_only") else py_inspect.Parameter.POSITIONAL_OR_KEYWORD,
                default=_default(of["default"], schema) if "default" in of else py_inspect.Parameter.empty,
                annotation=_annotation(schema),
            )
            for of, schema in zip(self.parameters, self.types)
        ]
        return py_inspect.Signature(parameters, return_annotation=self.returns)

    def stub(self) -> str:
        """The function in a ``.pyi`` file."""
        parameters = [
            f"{of['name']}: {_annotation(schema)}{' = ...' if 'default' in of else ''}"
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


def python_callable(module: tvm_ffi.Module, name: str) -> Callable[..., Any]:
    """A function of a module as a Python function.

    It takes keyword arguments, has ``__signature__`` with the defaults as values, ``__doc__`` and ``__name__``. Arguments by position
    alone cost one Python call more than the module's own function.
    """
    known = _Callable(of_module(module, name))
    function = module.get_function(name)
    signature = known.signature()
    keyword_only = any(of.get("keyword_only") for of in known.parameters)

    def call(*args: Any, **kwargs: Any) -> Any:
        if not kwargs and not keyword_only:
            return function(*args)
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return function(*bound.arguments.values())

    call.__name__ = call.__qualname__ = name
    call.__doc__ = "\n\n".join(text for text in (known.doc, known.text) if text)
    call.__signature__ = signature  # type: ignore[attr-defined]
    return call


_STUB_HEADER = '''\
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import tvm_ffi

class SupportsDLPack(Protocol):
    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...

'''


def stubs(library: HasFunctions, names: Iterable[str] | None = None) -> str:
    """The text of a ``.pyi`` file with the functions of a library: all, or those of ``names``, as :func:`functions` has them."""
    return _STUB_HEADER + "".join(_Callable(of).stub() for of in functions(library, names))
