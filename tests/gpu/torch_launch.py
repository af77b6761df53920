"""Calls a library that launches kernels, with PyTorch tensors on a real device, on several streams, and in a graph."""

import sys

import torch
import tvm_ffi


def main(library):
    module = tvm_ffi.load_module(library)
    x = torch.arange(100_000, dtype=torch.float32, device="cuda")
    y = 0.5 * x
    z = torch.zeros_like(x)
    module.prepare(tvm_ffi.device("cuda", 0))
    module.add(x, y, z)
    print("default stream:", torch.equal(z, x + y))

    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream), tvm_ffi.use_torch_stream():
        z.zero_()
        module.add(x, y, z)
    stream.synchronize()
    print("another stream:", torch.equal(z, x + y))

    graph = torch.cuda.CUDAGraph()
    z.zero_()
    with tvm_ffi.use_torch_stream(torch.cuda.graph(graph)):
        module.add(x, y, z)
        module.add(z, y, x)
    captured = z.abs().sum().item()
    graph.replay()
    torch.cuda.synchronize()
    print("graph:", captured == 0, torch.equal(x, 4 * y), torch.equal(z, 3 * y))

    try:
        module.add(x, y, z.cpu())
    except ValueError as error:
        # the part after the signature, which ends with a backtick
        print("ValueError:", str(error).rsplit("`, ", 1)[-1])


main(*sys.argv[1:])
