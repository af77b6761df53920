"""The modules of the package don't import each other in a circle."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from importlib.util import resolve_name
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "tvm_ffi_codegen"


def named_in(tree: ast.AST, package: str) -> Iterator[str]:
    """The full names in all import statements of a module, also inside functions and for type checkers."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (of.name for of in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = resolve_name("." * node.level + (node.module or ""), package)
            yield from (f"{base}.{of.name}" for of in node.names)


def circle(package: Path) -> list[str] | None:
    """Modules of a package that import each other in a circle, or None."""
    files = {file.relative_to(package.parent).with_suffix("").parts: file for file in package.rglob("*.py")}
    modules = {".".join(of[:-1] if of[-1] == "__init__" else of): (of, file) for of, file in files.items()}
    graph = {}
    for module, (parts, file) in modules.items():
        # a name that isn't a module belongs to the module in front of it
        names = named_in(ast.parse(file.read_text()), ".".join(parts[:-1]))
        imported = {name if name in modules else name.rpartition(".")[0] for name in names}
        graph[module] = (imported & set(modules)) - {module}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return error.args[1]
    return None


def test_no_modules_import_each_other_in_a_circle():
    assert circle(PACKAGE) is None


@pytest.mark.parametrize(
    "text",
    [
        "from . import first",
        "from .first import f",
        "from package import first",
        "import package.first",
        "def f():\n    from .first import f",
        "if TYPE_CHECKING:\n    from .first import f",
        "from .inner import g",
    ],
)
def test_every_form_of_import_counts(text, tmp_path):
    package = tmp_path / "package"
    (package / "inner").mkdir(parents=True)
    (package / "__init__.py").write_text("from .first import f\nfrom .second import f")
    (package / "first.py").write_text("from .second import f")
    (package / "second.py").write_text("import os")
    (package / "inner/__init__.py").write_text("from ..first import g")
    assert circle(package) is None
    (package / "second.py").write_text(text)
    assert {"package.first", "package.second"} <= set(circle(package))
