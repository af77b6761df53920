"""The example of a graph compiler in Python. The step `hosts` compares its libraries with those of the one in Rust."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"
EXAMPLE = EXAMPLES / "graph_compiler_py"


def test_the_model_runs_and_errors_have_its_lines():
    done = subprocess.run([sys.executable, EXAMPLE / "main.py"], capture_output=True, text=True, env=os.environ)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].endswith(" as NumPy computes it")
    # the example in Rust raises the same errors in the same lines: this is its output
    output = (EXAMPLES / "graph_compiler/output.txt").read_text()
    model = (EXAMPLES / "graph_compiler/model.py").read_text().splitlines()
    errors = {1: "def forward(x, w, bias):", 7: "    y = host.clip(y)"}
    for line, text in errors.items():
        assert model[line - 1] == text
        at = lines.index(f"  model.py:{line} in forward")
        error = next(of for of in reversed(lines[:at]) if of.startswith("ValueError"))
        assert f"  {error}\n  File \"model.py\", line {line}, in forward\n" in output
    assert lines[-1].startswith("  main.py:") and lines[-1].endswith(" in clip")


def test_the_integration_is_short():
    source = (EXAMPLE / "compiler.py").read_text()
    between = source.split("# begin: TVM FFI\n")[1].split("# end: TVM FFI\n")[0].splitlines()
    lines = [line for line in between if line.strip() and not line.strip().startswith("#")]
    assert len(lines) <= 60, len(lines)
