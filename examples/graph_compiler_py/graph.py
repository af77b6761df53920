"""The front end: reads a model. It knows nothing of the TVM FFI."""

from __future__ import annotations

import ast
from dataclasses import dataclass


@dataclass(frozen=True)
class Node:
    """A value of the graph: a parameter of the model, or what a function makes of other values."""

    #: The function; None for a parameter.
    function: str | None
    #: The nodes that it takes, by their numbers, and its texts.
    operands: tuple[int | str, ...]
    #: The parameter's name.
    name: str
    #: The line in the model's source.
    line: int


@dataclass(frozen=True)
class Graph:
    name: str
    file: str
    #: The last node is the result.
    nodes: tuple[Node, ...]

    @staticmethod
    def read(file: str, source: str) -> Graph:
        """Reads a model: a function with statements ``y = f(x, ...)`` and a ``return``."""
        (function,) = ast.parse(source, file).body
        nodes = [Node(None, (), arg.arg, arg.lineno) for arg in function.args.args]
        numbers = {node.name: number for number, node in enumerate(nodes)}
        for statement in function.body:
            call, names = statement.value, [target.id for target in getattr(statement, "targets", [])]
            if not isinstance(call, ast.Call):
                raise SyntaxError(f"{file}:{statement.lineno}: expected a call")
            operands = tuple(numbers[of.id] if isinstance(of, ast.Name) else of.value for of in call.args)
            nodes.append(Node(ast.unparse(call.func), operands, "", statement.lineno))
            numbers.update(dict.fromkeys(names, len(nodes) - 1))
        return Graph(function.name, file, tuple(nodes))
