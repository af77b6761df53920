"""Kernels for the tests, compiled with this machine's C compiler."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

DRIVER = Path(__file__).parents[2] / "tests/gpu"
sys.path.insert(0, str(DRIVER))

from standin import Driver

SAXPY = "saxpy(a: float32, x: Tensor([n], float32), y: Tensor([n], float32))"

SAXPY_C = """
#include <stdint.h>
void saxpy_kernel(float a, const float* x, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] += a * x[i];
}
"""


class Compiler:
    """The C compiler. It returns objects as bytes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.count = 0

    def object(self, source: str, *flags: str) -> bytes:
        """Compiles a source text to a relocatable object."""
        self.count += 1
        path = self.folder / f"{self.count}.c"
        path.write_text(source)
        output = path.with_suffix(".o")
        subprocess.run(["cc", "-O2", "-fPIC", *flags, "-c", str(path), "-o", str(output)], check=True)
        return output.read_bytes()

    def archive(self, *members: str | bytes) -> bytes:
        """Makes an archive from objects and source texts."""
        paths = []
        for member in members:
            data = self.object(member) if isinstance(member, str) else member
            paths.append(self.folder / f"member{len(paths)}.o")
            paths[-1].write_bytes(data)
        self.count += 1
        path = self.folder / f"{self.count}.a"
        subprocess.run(["ar", "rcs", str(path), *map(str, paths)], check=True)
        return path.read_bytes()


@pytest.fixture
def cc(tmp_path: Path) -> Compiler:
    folder = tmp_path / "cc"
    folder.mkdir()
    return Compiler(folder)


@pytest.fixture
def saxpy(cc: Compiler) -> bytes:
    return cc.object(SAXPY_C)


@pytest.fixture(scope="session")
def loaded_driver(tmp_path_factory: pytest.TempPathFactory) -> Driver:
    """The stand-in for CUDA's driver, compiled and loaded into this process. Generated code finds it by its name."""
    path = tmp_path_factory.mktemp("driver") / "libcuda.so.1"
    source = str(DRIVER / "driver/driver.c")
    # its functions call each other, also where a compiler's library has global functions of the same names
    options = ["-O1", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1,-Bsymbolic", "-o", str(path), "-ldl", "-pthread"]
    subprocess.run(["cc", source, *options], check=True)
    return Driver(str(path))


@pytest.fixture
def driver(loaded_driver: Driver, monkeypatch: pytest.MonkeyPatch) -> Driver:
    """The stand-in driver. ``PATH`` is empty, so the test finds no program, and no C compiler."""
    loaded_driver.reset()
    monkeypatch.setenv("PATH", "")
    return loaded_driver
