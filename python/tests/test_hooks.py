"""Launch hooks, on the stand-in driver (``tests/gpu/driver``)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import tvm_ffi
import tvm_ffi_codegen as tfc

pytest.importorskip("triton")

from test_triton_launches import add_arrays, add_kernel
from triton_kernels import VECTORS
from triton_programs import HOPPER, name_add, on_device

DEVICE = tvm_ffi.device("cuda", HOPPER)
INFO = tfc.LaunchInfo("add", (1, 1, 1), (128, 1, 1), 0, 0, DEVICE)


@pytest.fixture
def add(driver) -> Iterator:
    """A function with a launch. The hook is unset afterwards."""
    name_add(driver)
    function = tfc.compile(f"add({VECTORS})", add_kernel())
    yield lambda n: function(*[on_device(array, HOPPER) for array in add_arrays(n)])
    tfc.set_launch_hook()


def test_hooks_see_launches(add):
    seen = []
    add(5)
    tfc.set_launch_hook(lambda info: seen.append(("enter", info)), lambda info: seen.append(("exit", info)))
    add(5)
    assert seen == [("enter", INFO), ("exit", INFO)]
    assert isinstance(seen[0][1], tfc.LaunchInfo)
    # a stated stream
    seen.clear()
    with tvm_ffi.use_raw_stream(DEVICE, 0x1001):
        add(5)
    assert [info.stream for _, info in seen] == [0x1001, 0x1001]
    tfc.set_launch_hook()
    add(5)
    assert len(seen) == 2


def test_an_exception_fails_the_call(add, driver):
    def fail(info):
        raise KeyError(info.name)

    add(5)
    launches = len(driver.log("cuLaunch"))
    tfc.set_launch_hook(fail)
    with pytest.raises(KeyError, match="add"):
        add(5)
    assert len(driver.log("cuLaunch")) == launches
    tfc.set_launch_hook(exit=fail)
    with pytest.raises(KeyError, match="add"):
        add(5)
    assert len(driver.log("cuLaunch")) == launches + 1


def test_a_hook_has_to_be_callable():
    with pytest.raises(TypeError, match="expected a callable or None, got int"):
        tfc.set_launch_hook(3)
