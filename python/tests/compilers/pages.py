"""The programs of the pages in ``docs/howto/compilers``, as they are pasted and run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

PAGES = Path(__file__).parents[3] / "docs/howto/compilers"


def programs(page: str) -> list[tuple[str, str]]:
    """The page's programs in Python that a ``text`` block follows, each with that block: what the program prints."""
    text = (PAGES / f"{page}.md").read_text()
    return re.findall(r"```python\n(.*?)```\s*(?:[^`\n]*:\n\s*)?```text\n(.*?)```", text, re.DOTALL)


def check(page: str, folder: Path) -> None:
    """Runs each program of a page in a process of its own, in an empty directory, and compares what it prints."""
    found = programs(page)
    assert found, f"{page} has no program with its output"
    for program, printed in found:
        (folder / "program.py").write_text(program)
        done = subprocess.run(
            [sys.executable, "program.py"], cwd=folder, capture_output=True, text=True, env=os.environ
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout == printed, done.stdout
