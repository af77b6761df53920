"""The example of a compiler in Python."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples/python_dsl"


def test_the_mini_compiler_runs():
    done = subprocess.run([sys.executable, EXAMPLE / "main.py"], capture_output=True, text=True, env=os.environ)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[:2] == ["saxpy is right: True", "matmul is right: True"]
    assert lines[2].startswith("Mismatched b.shape[0] on argument #1 when calling: `matmul(")
    source = (EXAMPLE / "main.py").read_text().splitlines()
    line = 1 + next(number for number, text in enumerate(source) if text.strip().startswith("b:"))
    assert lines[3] == f"at main.py:{line} in matmul"
    assert lines[4] == "the library is right: True - y += a * x"


def test_the_integration_is_short():
    source = (EXAMPLE / "dsl.py").read_text()
    between = source.split("# begin: TVM FFI\n")[1].split("# end: TVM FFI\n")[0].splitlines()
    lines = [line for line in between if line.strip() and not line.strip().startswith("#")]
    assert len(lines) <= 40, len(lines)
