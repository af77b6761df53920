"""Kernels of functions."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from typing import Union

from ._native import decode, function
from .signature import CParameter, Prototype, Signature, as_signature

_check_only = function("kernel_check_only")
_symbol = function("kernel_symbol")
_object = function("kernel_object")
_llvm_ir = function("kernel_llvm_ir")
_bitcode = function("kernel_bitcode")
_address = function("kernel_address")
_launch = function("kernel_launch")
_launch_on_cpu = function("kernel_launch_on_cpu")
_first_use = function("kernel_first_use")
_prototype = function("kernel_prototype")
_header = function("kernel_header")

#: An extent of a launch: a number, or an expression such as ``ceil_div(n, 128)``; or up to three of them.
Extents = Union[int, str, Sequence[Union[int, str]]]


class Kernel:
    """The kernel of a function, by one of the constructors below.

    A native kernel is a C function. Its ``convention`` says how it takes its arguments: ``flat`` (the default),
    ``dltensor``, ``memref`` or ``packed``. It ``returns`` ``"nothing"``, ``"value"`` or ``"status"`` (an ``int32_t``, 0 for
    success); unless stated, what the signature says. ``args`` state the C parameters in place of those of ``flat``, as a launch's
    text has them: ``["x", "int32(n)", "x.device_id"]``; an integer that doesn't fit is a ``ValueError``. :meth:`prototype` shows what that means in C. Whoever hands over a kernel
    vouches that it is that function, and that it stays within its arguments.
    """

    __slots__ = ("_native",)

    def __init__(self, native: object) -> None:
        self._native = native

    @staticmethod
    def check_only() -> Kernel:
        """No kernel: the function only checks its arguments."""
        return Kernel(_check_only())

    @staticmethod
    def symbol(
        name: str, *, convention: str | None = None, returns: str | None = None, args: Iterable[str] | None = None
    ) -> Kernel:
        """The C function of a symbol, which an object has, or in this process any library."""
        return Kernel(_symbol(name, convention, returns, _args(args)))

    @staticmethod
    def object(
        objects: bytes | Iterable[bytes],
        symbol: str,
        *,
        convention: str | None = None,
        returns: str | None = None,
        args: Iterable[str] | None = None,
    ) -> Kernel:
        """The C function of a symbol, with the object, archive or several of them that have it: for this process."""
        return Kernel(_object(as_list(objects), symbol, convention, returns, _args(args)))

    @staticmethod
    def llvm_ir(
        text: str,
        symbol: str,
        *,
        convention: str | None = None,
        returns: str | None = None,
        args: Iterable[str] | None = None,
    ) -> Kernel:
        """The C function of a symbol in LLVM's textual IR, which the machine's LLVM compiles: see :func:`llvm_version`."""
        return Kernel(_llvm_ir(text, symbol, convention, returns, _args(args)))

    @staticmethod
    def bitcode(
        bitcode: bytes,
        symbol: str,
        *,
        convention: str | None = None,
        returns: str | None = None,
        args: Iterable[str] | None = None,
    ) -> Kernel:
        """The C function of a symbol in LLVM's bitcode, of version 22 or an older one, which the machine's LLVM compiles."""
        return Kernel(_bitcode(bytes(bitcode), symbol, convention, returns, _args(args)))

    @staticmethod
    def address(
        address: int | ctypes._CFuncPtr,
        *,
        keep_alive: object = None,
        convention: str | None = None,
        returns: str | None = None,
        args: Iterable[str] | None = None,
    ) -> Kernel:
        """The C function at an address of this process: a number, or a function of ``ctypes``.

        ``keep_alive`` is any object that owns the code. It lives as long as a function that calls it.
        """
        if not isinstance(address, int):
            keep_alive = (address, keep_alive)
            address = ctypes.cast(address, ctypes.c_void_p).value or 0
        # numbers that are larger than an int64 are addresses, too
        signed = address - (1 << 64) if address >= 1 << 63 else address
        return Kernel(_address(signed, _Owner(keep_alive), convention, returns, _args(args)))

    @staticmethod
    def launch(launch: str, images: bytes | Iterable[bytes]) -> Kernel:
        """A kernel of a device by the text of its launch, ``launch ENTRY grid=...`` (``docs/gpu.md``), with its images: cubins,
        fatbins, PTX, or AMD's code objects."""
        return Kernel(_launch(launch, as_list(images)))

    @staticmethod
    def cuda(
        images: bytes | Iterable[bytes],
        entry: str,
        *,
        grid: Extents = 1,
        block: Extents = 1,
        args: Iterable[str] | None = None,
        cluster: Extents | None = None,
        preferred_cluster: Extents | None = None,
        shared: int | str = 0,
        priority: int | None = None,
        cooperative: bool = False,
        programmatic: bool = False,
        non_portable_cluster: bool = False,
    ) -> Kernel:
        """A kernel of a CUDA device: the launch by its parts.

        ``args`` are the kernel's parameters as a launch's text has them: ``["x", "y", "int32(n)"]``; unless given, those of convention
        ``flat``.
        """
        words = ["launch", f'"{entry}"', f"grid={_extents(grid)}", f"block={_extents(block)}"]
        for name, extents in (("cluster", cluster), ("preferred_cluster", preferred_cluster)):
            if extents is not None:
                words.append(f"{name}={_extents(extents)}")
        if shared != 0:
            words.append(f"shared={shared}")
        if args is not None:
            words.append(f"args=[{', '.join(args)}]")
        if priority is not None:
            words.append(f"priority={priority}")
        flags = {
            "cooperative": cooperative,
            "programmatic": programmatic,
            "non_portable_cluster": non_portable_cluster,
        }
        words.extend(name for name, is_set in flags.items() if is_set)
        return Kernel.launch(" ".join(words), images)

    @staticmethod
    def launch_on_cpu(launch: str, function: Kernel) -> Kernel:
        """A launch on the CPU by its text: a native kernel that is called for each block of the grid."""
        return Kernel(_launch_on_cpu(launch, function._native))

    @staticmethod
    def first_use(kernels: Iterable[Kernel]) -> Kernel:
        """What the first launches of kernels on a device do, as a function of its own: ``NAME(device: device)``."""
        return Kernel(_first_use([kernel._native for kernel in kernels]))

    def prototype(self, signature: Signature | str) -> Prototype:
        """The C function that the kernel has to be for a signature."""
        signature = as_signature(signature)
        parts = decode(_prototype(signature._native, self._native))
        return Prototype(parts["text"], tuple(CParameter(**parameter) for parameter in parts["params"]), parts["returns"])


    def header(self, signature: Signature | str) -> str:
        """The C function that the kernel has to be, as a C header."""
        return str(_header(as_signature(signature)._native, self._native))


def _args(args: Iterable[str] | None) -> str | None:
    """Stated C parameters as a launch's text has them."""
    if isinstance(args, str):
        raise TypeError(f"expected a list of parameters, got {args!r}")
    return None if args is None else ", ".join(args)


class _Owner:
    """An object that the native library holds as what it is, and doesn't convert."""

    __slots__ = ("owned",)

    def __init__(self, owned: object) -> None:
        self.owned = owned


def as_list(parts: bytes | Iterable[bytes]) -> list[bytes]:
    """Bytes as a list of one; several as a list."""
    if isinstance(parts, (bytes, bytearray, memoryview)):
        return [bytes(parts)]
    return [bytes(part) for part in parts]


def _extents(extents: Extents) -> str:
    if isinstance(extents, (int, str)):
        return str(extents) if isinstance(extents, int) else f"({extents})"
    return f"({', '.join(str(extent) for extent in extents)})"
