"""Calls a library with a stream: the environment's, a handle, an object with `__cuda_stream__`, the default stream."""

import sys

import numpy
import tvm_ffi
from standin import Driver, OnDevice


class Stream:
    """A stream of some framework. The stand-in takes the device from the lowest bit of its handle."""

    def __cuda_stream__(self):
        return (0, 0x2001)


def main(driver, library):
    standin = Driver(driver)
    add = tvm_ffi.load_module(library).add
    device = tvm_ffi.device("cuda", 1)
    arrays = [numpy.arange(5, dtype="float32"), numpy.arange(5, dtype="float32") / 2, numpy.zeros(5, dtype="float32")]
    tensors = [tvm_ffi.from_dlpack(OnDevice(array, 1)) for array in arrays]
    with tvm_ffi.use_raw_stream(device, 0x1001):
        for stream in [(), (None,), (Stream(),), (0x3001,), (0,)]:
            add(*tensors, *stream)
            print(hex(standin.stream()))
    add(*tensors)
    print(hex(standin.stream()))
    print(arrays[2].tolist())


main(*sys.argv[1:])
