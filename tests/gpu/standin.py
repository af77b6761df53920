"""The stand-in driver in Python: tensors on its devices, host code for kernels of cubins, and the recorded calls."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

CUDA = 2


class OnDevice:
    """A NumPy array that claims to be on a device, using the unversioned DLPack protocol."""

    def __init__(self, array, number):
        self.array, self.number = array, number

    def __dlpack_device__(self):
        return (CUDA, self.number)

    def __dlpack__(self, *, stream=None, **_):
        capsule = self.array.__dlpack__()
        pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
        pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        # DLManagedTensor begins with a DLTensor; its device follows the data pointer
        device = ctypes.cast(pointer_of(capsule, b"dltensor") + 8, ctypes.POINTER(ctypes.c_int32))
        device[0], device[1] = CUDA, self.number
        return capsule


class Extent(ctypes.Structure):
    """``struct extent`` of driver/standin.h."""

    _fields_ = [("x", ctypes.c_uint32), ("y", ctypes.c_uint32), ("z", ctypes.c_uint32)]


class Thread(ctypes.Structure):
    """The first fields of ``struct thread`` of driver/standin.h."""

    _fields_ = [("grid", Extent), ("block", Extent), ("block_index", Extent), ("index", Extent)]


class TensorMap(ctypes.Structure):
    """``struct tensor_map`` of driver/standin.h."""

    _fields_ = [
        ("magic", ctypes.c_uint64),
        ("address", ctypes.c_uint64),
        ("dims", ctypes.c_uint64 * 5),
        ("strides", ctypes.c_uint64 * 4),
        ("box", ctypes.c_uint16 * 5),
        ("steps", ctypes.c_uint8 * 5),
        ("rank", ctypes.c_uint8),
        ("bytes", ctypes.c_uint8),
    ]


_PROGRAM = ctypes.CFUNCTYPE(None, ctypes.POINTER(Thread), ctypes.POINTER(ctypes.c_void_p))


class Driver:
    """The stand-in for CUDA's driver, loaded from a path. Later loads of ``libcuda.so.1`` in this process get it."""

    def __init__(self, path: str) -> None:
        self._library = ctypes.CDLL(path)
        self._library.standin_log.restype = ctypes.c_char_p
        self._library.standin_parameters.restype = ctypes.c_void_p
        self._library.standin_stream.restype = ctypes.c_void_p
        self._library.standin_program.argtypes = [ctypes.c_char_p, _PROGRAM]
        self._programs: list[object] = []

    def reset(self) -> None:
        """Clears the recorded calls, requested failures, and host code."""
        self._library.standin_reset()
        self._programs.clear()

    def log(self, beginning: str = "") -> list[str]:
        """The lines of the recorded calls that start with this text."""
        lines = self._library.standin_log().decode().splitlines()
        return [line for line in lines if line.startswith(beginning)]

    def stream(self) -> int:
        """The stream of the last launch."""
        return self._library.standin_stream() or 0

    def fail(self, name: str, status: int) -> None:
        """Makes all calls of a function fail."""
        self._library.standin_fail_name(name.encode(), status)

    def capability(self, device: int, capability: int) -> None:
        """Sets the compute capability of a device, such as 90."""
        self._library.standin_capability(device, capability)

    def parameters(self) -> bytes:
        """The parameters of the last launch, in the device's layout."""
        size = ctypes.c_uint32()
        address = self._library.standin_parameters(ctypes.byref(size))
        return ctypes.string_at(address, size.value)

    def program(self, entry: str, types: list[type], run: Callable[..., None]) -> None:
        """Registers host code for a kernel of cubins.

        ``run`` receives a block's index, the grid, and the parameters, which have these C types.
        """

        def called(thread, params):
            values = [ctypes.cast(params[number], ctypes.POINTER(of))[0] for number, of in enumerate(types)]
            run(thread[0].block_index, thread[0].grid, *values)

        # kept alive, because the driver calls it until it is reset
        self._programs.append(_PROGRAM(called))
        assert self._library.standin_program(entry.encode(), self._programs[-1]) == 0
