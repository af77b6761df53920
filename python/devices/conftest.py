"""Tests of the package on the machine's GPU: ``cargo xtask gpu`` runs them where PyTorch is installed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

# the kernels of the tests that run on the stand-in driver
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    import torch

    if not torch.cuda.is_available():
        for item in items:
            item.add_marker(pytest.mark.skip(reason="PyTorch finds no GPU on this machine"))
