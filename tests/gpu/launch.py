"""Calls a library that launches kernels, with tensors that claim to be on a device of the stand-in driver."""

import sys

import numpy
import tvm_ffi
from standin import Driver, OnDevice


def main(driver, library):
    standin = Driver(driver)
    module = tvm_ffi.load_module(library)
    arrays = [numpy.arange(5, dtype="float32"), numpy.arange(5, dtype="float32") / 2, numpy.zeros(5, dtype="float32")]
    tensors = [tvm_ffi.from_dlpack(OnDevice(array, 1)) for array in arrays]
    module.prepare(tvm_ffi.device("cuda", 1))
    module.add(*tensors)
    print(arrays[2].tolist())
    print(*standin.log("cuLaunch"), sep="\n")
    standin.fail("cuLaunchKernelEx", 719)
    try:
        module.add(*tensors)
    except RuntimeError as error:
        print("RuntimeError:", str(error).split("`: ")[1].split(", ")[0])


main(*sys.argv[1:])
