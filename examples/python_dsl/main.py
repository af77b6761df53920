"""Kernels in the language, run on NumPy arrays and linked into a library."""

import os
import tempfile

import numpy as np
import tvm_ffi

from dsl import kernel, link


@kernel
def saxpy(
    a: "float32",
    x: "Tensor([n], float32)",
    y: "Tensor([n], float32)",
):
    """y += a * x"""
    for i in range(n):
        y[i] += a * x[i]


@kernel
def matmul(
    a: "Tensor([m, k], float64)",
    b: "Tensor([k, n], float64)",
    c: "Tensor([m, n], float64)",
):
    for row in range(m):
        for column in range(n):
            c[row * n + column] = 0
            for i in range(k):
                c[row * n + column] += a[row * k + i] * b[i * n + column]


def main() -> None:
    x, y = np.arange(1000, dtype="float32"), np.ones(1000, "float32")
    saxpy(3.0, x, y)
    print("saxpy is right:", bool((y == 3 * x + 1).all()))

    a, b, c = np.random.rand(3, 4), np.random.rand(4, 5), np.zeros((3, 5))
    matmul(a, b, c)
    print("matmul is right:", bool(np.allclose(c, a @ b)))
    try:
        matmul(a, a, c)
    except ValueError as error:
        print(error)
        frame = error.__traceback__
        while frame.tb_next is not None:
            frame = frame.tb_next
        code = frame.tb_frame.f_code
        print(f"at {os.path.basename(code.co_filename)}:{frame.tb_lineno} in {code.co_name}")

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "kernels.so")
        link(path, saxpy, matmul)
        module = tvm_ffi.load_module(path)
        module.matmul(a, b, c)
        print("the library is right:", bool(np.allclose(c, a @ b)), "-", module.get_function_doc("saxpy"))


if __name__ == "__main__":
    main()
