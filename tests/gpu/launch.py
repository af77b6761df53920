"""Calls a library that launches, on tensors that say they are on a device of the stand-in driver."""

import ctypes
import sys

import numpy
import tvm_ffi

CUDA = 2


class OnDevice:
    """An array of NumPy's that says it is on a device, by the DLPack protocol without versions."""

    def __init__(self, array, number):
        self.array, self.number = array, number

    def __dlpack_device__(self):
        return (CUDA, self.number)

    def __dlpack__(self, *, stream=None, **_):
        capsule = self.array.__dlpack__()
        pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
        pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        # DLManagedTensor begins with a DLTensor, whose device is behind the address of its data
        device = ctypes.cast(pointer_of(capsule, b"dltensor") + 8, ctypes.POINTER(ctypes.c_int32))
        device[0], device[1] = CUDA, self.number
        return capsule


def main(driver, library):
    standin = ctypes.CDLL(driver)
    standin.standin_log.restype = ctypes.c_char_p
    module = tvm_ffi.load_module(library)
    arrays = [numpy.arange(5, dtype="float32"), numpy.arange(5, dtype="float32") / 2, numpy.zeros(5, dtype="float32")]
    tensors = [tvm_ffi.from_dlpack(OnDevice(array, 1)) for array in arrays]
    module.prepare(tvm_ffi.device("cuda", 1))
    module.add(*tensors)
    print(arrays[2].tolist())
    log = standin.standin_log().decode().splitlines()
    print(*[line for line in log if line.startswith("cuLaunch")], sep="\n")
    standin.standin_fail_name(b"cuLaunchKernelEx", 719)
    try:
        module.add(*tensors)
    except RuntimeError as error:
        print("RuntimeError:", str(error).split("`: ")[1].split(", ")[0])


main(*sys.argv[1:])
