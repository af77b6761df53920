"""Launch hooks: your functions run before and after each launch on a device."""

from __future__ import annotations

from typing import Any, Callable, NamedTuple

from ._native import function

_set_launch_hook = function("set_launch_hook")


class LaunchInfo(NamedTuple):
    """A launch, as a hook sees it."""

    #: The kernel's name in its image.
    name: str
    #: The blocks in x, y and z.
    grid: tuple[int, int, int]
    #: The threads of a block in x, y and z.
    block: tuple[int, int, int]
    #: The dynamic shared memory of a block, in bytes.
    shared_memory: int
    #: The stream's handle; 0 is the default stream.
    stream: int
    #: The device, a ``tvm_ffi.Device``.
    device: Any


def set_launch_hook(
    enter: Callable[[LaunchInfo], object] | None = None, exit: Callable[[LaunchInfo], object] | None = None
) -> None:
    """Sets the functions that run before and after each launch on a device, in place of those before.

    Without functions, launches run none again, and cost what they cost without hooks. An exception of ``enter`` fails
    the call, and nothing is launched. ``exit`` also runs if the driver has refused the launch; if the driver hasn't, an
    exception of ``exit`` fails the call.

    The hook sees launches of all libraries whose first launch comes after the import of this package. It doesn't see
    launches on the CPU or of a graph.
    """
    _set_launch_hook(_packed(enter), _packed(exit))


def _packed(hook: Callable[[LaunchInfo], object] | None) -> Callable[..., None] | None:
    if hook is None:
        return None
    if not callable(hook):
        raise TypeError(f"expected a callable or None, got {type(hook).__name__}")

    def call(name: str, grid: Any, block: Any, shared_memory: int, stream: Any, device: Any) -> None:
        handle = 0 if stream is None else stream.value or 0
        hook(LaunchInfo(str(name), tuple(grid), tuple(block), shared_memory, handle, device))

    return call
