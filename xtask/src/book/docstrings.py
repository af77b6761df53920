"""Writes the reference of a Python package from its sources: what ``__all__`` names, with signatures and docstrings.

Reads the sources without importing them, so it needs no compiled part.
"""

import ast
import itertools
import re
import sys
import textwrap
from pathlib import Path

PACKAGE = Path(sys.argv[1])
#: Modules that users import by themselves, after the names of the package.
MODULES = ["cc", "cuda", "hip", "host", "triton", "torch", "jax", "cute", "cutile", "helion", "numba", "tilelang", "warp"]


def markdown(docstring: str) -> str:
    """A docstring's text with Markdown's marks for code."""
    text = re.sub(r":(?:class|func|meth|attr|mod):`~?\.?([^`]+)`", r"`\1`", docstring)
    return text.replace("``", "`").strip()


def filled(text: str) -> str:
    """A text whose first paragraph has lines of at most 120 columns."""
    first, *rest = text.split("\n\n", 1)
    return "\n\n".join([textwrap.fill(first, 120, break_long_words=False, break_on_hyphens=False), *rest])


def source(module: str) -> str:
    path = PACKAGE / f"{module}.py"
    return (path if path.exists() else PACKAGE / module / "__init__.py").read_text()


def tree(module: str) -> ast.Module:
    return ast.parse(source(module))


def signature(function: ast.FunctionDef, name: str) -> str:
    """A function's signature, on one line if it is short."""
    arguments = function.args
    words = []
    positional = arguments.posonlyargs + arguments.args
    defaults = [None] * (len(positional) - len(arguments.defaults)) + arguments.defaults
    for argument, default in zip(positional, defaults):
        if argument.arg not in ("self", "cls"):
            words.append(one(argument, default))
    if arguments.vararg:
        words.append("*" + one(arguments.vararg, None))
    elif arguments.kwonlyargs:
        words.append("*")
    words += [one(argument, default) for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults)]
    if arguments.kwarg:
        words.append("**" + one(arguments.kwarg, None))
    returns = f" -> {ast.unparse(function.returns)}" if function.returns else ""
    line = f"{name}({', '.join(words)}){returns}"
    if len(line) <= 100:
        return line
    return "\n".join([f"{name}(", *(f"    {word}," for word in words), f"){returns}"])


def one(argument: ast.arg, default: ast.expr | None) -> str:
    text = argument.arg + (f": {ast.unparse(argument.annotation)}" if argument.annotation else "")
    if default is None:
        return text
    return f"{text} = {ast.unparse(default)}" if argument.annotation else f"{text}={ast.unparse(default)}"


def decorators(function: ast.FunctionDef) -> set[str]:
    return {ast.unparse(decorator) for decorator in function.decorator_list}


def entry(code: str, docstring: str) -> str:
    return f"```python\n{code}\n```\n\n{docstring}".rstrip() + "\n"


def field_comment(lines: list[str], field: ast.AnnAssign) -> str:
    """The comment above a field, whose lines start with ``#:``."""
    above = itertools.takewhile(lambda line: line.lstrip().startswith("#:"), reversed(lines[: field.lineno - 1]))
    return " ".join(line.lstrip().removeprefix("#:").strip() for line in reversed(list(above)))


def described_class(node: ast.ClassDef, lines: list[str]) -> str:
    """A class with its fields, its constructor and its methods, if they are documented."""
    parts = [f"### `{node.name}`\n\n{markdown(ast.get_docstring(node) or '')}\n"]
    for member in node.body:
        if isinstance(member, ast.AnnAssign) and (comment := markdown(field_comment(lines, member))):
            field = f"`{node.name}.{ast.unparse(member.target)}: {ast.unparse(member.annotation)}`"
            parts.append(filled(f"{field}: {comment}") + "\n")
        if not isinstance(member, ast.FunctionDef):
            continue
        marks = decorators(member)
        docstring = markdown(ast.get_docstring(member) or "")
        if member.name == "__init__" and docstring:
            parts.append(entry(signature(member, node.name), docstring))
        elif not member.name.startswith("_") and docstring and "overload" not in marks:
            if "property" in marks:
                parts.append(filled(f"`{node.name}.{member.name}`: {docstring}") + "\n")
            else:
                parts.append(entry(signature(member, f"{node.name}.{member.name}"), docstring))
    return "\n".join(parts)


def described(module: str, node: ast.stmt) -> str | None:
    if isinstance(node, ast.ClassDef):
        return described_class(node, source(module).splitlines())
    if isinstance(node, ast.FunctionDef) and ast.get_docstring(node):
        return f"### `{node.name}`\n\n" + entry(signature(node, node.name), markdown(ast.get_docstring(node)))
    return None


def definitions(module: str) -> dict[str, ast.stmt]:
    nodes = [node for node in tree(module).body if isinstance(node, (ast.ClassDef, ast.FunctionDef))]
    return {node.name: node for node in nodes}


def main() -> None:
    package = tree("__init__")
    sources = {
        name.asname or name.name: node.module
        for node in package.body
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 1
        for name in node.names
    }
    print("## `tvm_ffi_codegen`\n")
    for name, module in sorted(sources.items(), key=lambda item: item[0].lower()):
        text = described(module, definitions(module)[name])
        if text is None:
            sys.exit(f"{module}.{name} has no docstring")
        print(text)
    for module in MODULES:
        docstring = markdown(ast.get_docstring(tree(module)) or "")
        texts = [described(module, node) for name, node in definitions(module).items() if not name.startswith("_")]
        print(f"## `tvm_ffi_codegen.{module}`\n\n{docstring}\n")
        print("\n".join(text for text in texts if text))


if __name__ == "__main__":
    main()
