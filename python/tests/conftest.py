"""Kernels for the tests, compiled by the C compiler of the machine."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

SAXPY = "saxpy(a: float32, x: Tensor([n], float32), y: Tensor([n], float32))"

SAXPY_C = """
#include <stdint.h>
void saxpy_kernel(float a, const float* x, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] += a * x[i];
}
"""


class Compiler:
    """The C compiler, whose objects are bytes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.count = 0

    def object(self, source: str, *flags: str) -> bytes:
        """A relocatable object of a source text."""
        self.count += 1
        path = self.folder / f"{self.count}.c"
        path.write_text(source)
        output = path.with_suffix(".o")
        subprocess.run(["cc", "-O2", "-fPIC", *flags, "-c", str(path), "-o", str(output)], check=True)
        return output.read_bytes()

    def archive(self, *sources: str) -> bytes:
        """An archive of objects."""
        members = []
        for source in sources:
            self.object(source)
            members.append(str(self.folder / f"{self.count}.o"))
        path = self.folder / f"{self.count}.a"
        subprocess.run(["ar", "rcs", str(path), *members], check=True)
        return path.read_bytes()


@pytest.fixture
def cc(tmp_path: Path) -> Compiler:
    folder = tmp_path / "cc"
    folder.mkdir()
    return Compiler(folder)


@pytest.fixture
def saxpy(cc: Compiler) -> bytes:
    return cc.object(SAXPY_C)
