"""Writes the reference of a Python package from its sources: the names in ``__all__``, with signatures and docstrings.

Reads the sources without importing them, so it needs no compiled part. Fails with a list of undocumented items: names,
fields, and parameters that no docstring names. A parameter may be named in the function's docstring, in that of
its class, or in that of a function or class which either of these two mentions, such as ``:func:`compile```.
"""

import ast
import functools
import itertools
import re
import sys
import textwrap
from pathlib import Path

PACKAGE = Path(sys.argv[1])
#: Modules that users import by themselves, after the names of the package.
MODULES = ["cc", "cuda", "hip", "host", "triton", "torch", "jax", "cute", "cutile", "helion", "numba", "tilelang", "warp"]
#: Parameters that the page explains once for all functions.
EXPLAINED = {"signature"}

#: The items without documentation.
missing: list[str] = []


def markdown(docstring: str) -> str:
    """A docstring's text with Markdown's marks for code."""
    text = re.sub(r":(?:class|func|meth|attr|mod):`~?\.?([^`]+)`", r"`\1`", docstring)
    return text.replace("``", "`").strip()


def filled(text: str) -> str:
    """A text whose first paragraph has lines of at most 120 columns."""
    first, *rest = text.split("\n\n", 1)
    return "\n\n".join([textwrap.fill(first, 120, break_long_words=False, break_on_hyphens=False), *rest])


@functools.cache
def source(module: str) -> str:
    path = PACKAGE / f"{module.replace('.', '/')}.py"
    return (path if path.exists() else path.with_suffix("") / "__init__.py").read_text()


@functools.cache
def tree(module: str) -> ast.Module:
    return ast.parse(source(module))


@functools.cache
def imported(module: str) -> dict[str, tuple[str, str]]:
    """The names that a module imports from the package, each with its module and its name there."""
    inside = f"{module}." if (PACKAGE / module).is_dir() else ""
    return {
        name.asname or name.name: (inside + node.module, name.name)
        for node in tree(module).body
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 1
        for name in node.names
    }


@functools.cache
def definitions(module: str) -> dict[str, ast.stmt]:
    """The classes, functions and constants of a module."""
    nodes = {node.name: node for node in tree(module).body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    constants = [node for node in tree(module).body if isinstance(node, ast.Assign)]
    return {**nodes, **{ast.unparse(node.targets[0]): node for node in constants}}


def defined(module: str, name: str) -> tuple[str, ast.stmt] | None:
    """The module and the definition of a name that a module has."""
    if name in definitions(module):
        return module, definitions(module)[name]
    return defined(*imported(module)[name]) if name in imported(module) else None


def public(module: str) -> list[str]:
    """The names in a module's ``__all__``, except modules, in the order of their definitions."""
    listed = ast.literal_eval(definitions(module)["__all__"].value)
    return [name for name in (*imported(module), *definitions(module)) if name in listed]


def mentioned(module: str, owner: str, text: str) -> str:
    """The docstrings of the functions and classes that a docstring mentions."""
    found = []
    for path in re.findall(r":(?:func|class|meth):`~?([^`]+)`", text):
        first, *rest = path.removeprefix("tvm_ffi_codegen.").split(".")
        if first in MODULES and rest:
            of = defined(first, rest.pop(0))
        else:
            near = [] if path.startswith("tvm_ffi_codegen.") else [module, module.split(".")[0]]
            of = next(filter(None, (defined(scope, first) for scope in [*near, "__init__"])), None)
        if of is None and owner:
            of, rest = defined(module, owner), [first]
        node = of and of[1]
        if node and rest:
            node = next((member for member in node.body if getattr(member, "name", None) == rest[0]), None)
        if node is None:
            missing.append(f"{module}: a docstring mentions `{path}`, which is not there")
        else:
            found.append(ast.get_docstring(node) or "")
    return " ".join(found)


def check(module: str, name: str, function: ast.FunctionDef, owner: ast.ClassDef | None = None) -> None:
    """Lists a function that has no docstring, or else its parameters that no docstring names."""
    text = ast.get_docstring(function) or ""
    if not text and function.name != "__init__":
        missing.append(f"{module}: `{name}` has no docstring")
        return
    text += f" {ast.get_docstring(owner) or ''}" if owner else ""
    text += mentioned(module, owner.name if owner else "", text)
    given = function.args
    for argument in [*given.posonlyargs, *given.args, given.vararg, *given.kwonlyargs, given.kwarg]:
        known = argument is None or argument.arg in ("self", "cls") or argument.arg in EXPLAINED
        if not known and not re.search(rf"\b{argument.arg}\b", text):
            missing.append(f"{module}: `{name}` doesn't say what `{argument.arg}` is")


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
    returns = f" -> {ast.unparse(function.returns)}" if function.returns and function.name != "__init__" else ""
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


def comment(module: str, node: ast.stmt) -> str:
    """The comment above a field or constant, whose lines start with ``#:``."""
    lines = source(module).splitlines()[: node.lineno - 1]
    above = itertools.takewhile(lambda line: line.lstrip().startswith("#:"), reversed(lines))
    return markdown(" ".join(line.lstrip().removeprefix("#:").strip() for line in reversed(list(above))))


def field(module: str, owner: str, member: ast.AnnAssign) -> str:
    name = f"{owner}.{ast.unparse(member.target).removeprefix('self.')}"
    text = comment(module, member)
    if not text:
        missing.append(f"{module}: `{name}` has no comment")
    return filled(f"`{name}: {ast.unparse(member.annotation)}`: {text}") + "\n"


def described_class(module: str, node: ast.ClassDef) -> str:
    """A class with its fields, its constructor and its methods."""
    if not ast.get_docstring(node):
        missing.append(f"{module}: `{node.name}` has no docstring")
    parts = [f"### `{node.name}`\n\n{markdown(ast.get_docstring(node) or '')}\n"]
    for member in node.body:
        if isinstance(member, ast.AnnAssign) and not ast.unparse(member.target).startswith("_"):
            parts.append(field(module, node.name, member))
        if not isinstance(member, ast.FunctionDef) or "overload" in decorators(member):
            continue
        name, docstring = f"{node.name}.{member.name}", markdown(ast.get_docstring(member) or "")
        if member.name == "__init__":
            # a constructor with a private parameter is the package's own
            if not any(argument.arg.startswith("_") for argument in member.args.args):
                check(module, node.name, member, node)
                parts.append(entry(signature(member, node.name), docstring))
            fields = [of for of in member.body if isinstance(of, ast.AnnAssign)]
            public = [of for of in fields if not ast.unparse(of.target).startswith("self._")]
            parts += [field(module, node.name, of) for of in public]
        elif not member.name.startswith("_"):
            check(module, name, member, node)
            if "property" in decorators(member):
                parts.append(filled(f"`{name}`: {docstring}") + "\n")
            else:
                parts.append(entry(signature(member, name), docstring))
    return "\n".join(parts)


def described(module: str, name: str) -> str:
    """The reference of a public name of a module."""
    module, node = defined(module, name)
    if isinstance(node, ast.ClassDef):
        return described_class(module, node)
    if isinstance(node, ast.FunctionDef):
        check(module, name, node)
        return f"### `{name}`\n\n" + entry(signature(node, name), markdown(ast.get_docstring(node) or ""))
    if not comment(module, node):
        missing.append(f"{module}: `{name}` has no comment")
    return f"### `{name}`\n\n{filled(comment(module, node))}\n"


def main() -> None:
    pages = ["## `tvm_ffi_codegen`\n"]
    pages += [described("__init__", name) for name in sorted(public("__init__"), key=str.lower)]
    for module in MODULES:
        docstring = markdown(ast.get_docstring(tree(module)) or "")
        if not docstring:
            missing.append(f"{module} has no docstring")
        pages.append(f"## `tvm_ffi_codegen.{module}`\n\n{docstring}\n")
        pages.append("\n".join(described(module, name) for name in public(module)))
    files = {path.stem for path in PACKAGE.iterdir() if path.is_dir() or path.suffix == ".py"}
    known = {*MODULES, *(module for module, _ in imported("__init__").values())}
    missing.extend(f"{name} is not in MODULES" for name in files - known if not name.startswith("_"))
    if missing:
        sys.exit("\n".join(sorted(set(missing))))
    print("\n".join(pages))


if __name__ == "__main__":
    main()
