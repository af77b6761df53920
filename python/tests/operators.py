"""Functions that the tests of frameworks turn into operators. A C compiler compiles them."""

from __future__ import annotations

SOURCE = r"""
#include <math.h>
#include <stdint.h>
#include <string.h>
typedef struct { int32_t type, id; } Device;
typedef struct { uint8_t code, bits; uint16_t lanes; } DType;

void scale(float a, const float* x, float* y, int64_t n) { for (int64_t i = 0; i < n; ++i) y[i] = a * x[i]; }
void add_to(const float* x, float* y, float by, int64_t n) { for (int64_t i = 0; i < n; ++i) y[i] += by * x[i]; }
/* the output stands between the inputs */
void sub(const float* x, float* y, const float* z, int64_t n) { for (int64_t i = 0; i < n; ++i) y[i] = x[i] - z[i]; }
/* sums of 4 rows, each twice */
void pool(const float* x, float* y, int64_t n, int64_t c) {
  for (int64_t t = 0; t < (n + 3) / 4; ++t) for (int64_t j = 0; j < c; ++j) {
    float sum = 0;
    for (int64_t i = 4 * t; i < n && i < 4 * t + 4; ++i) sum += x[i * c + j];
    y[t * 2 * c + j] = y[t * 2 * c + c + j] = sum;
  }
}
void split(const float* x, float* low, float* high, int64_t m) {
  memcpy(low, x, 4 * m);
  memcpy(high, x + m, 4 * m);
}
void fill(int64_t n, float value, float* y) { for (int64_t i = 0; i < n; ++i) y[i] = value; }
void twice(const float* x, float* result, int64_t n) { for (int64_t i = 0; i < n; ++i) result[i] = 2 * x[i]; }
void signs(const float* x, uint8_t* result, int64_t n) { for (int64_t i = 0; i < n; ++i) result[i] = x[i] < 0; }
void biased(const float* x, const float* bias, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] + (bias ? bias[i] : 0);
}
/* the number is a half */
void marked(uint16_t half, const float* x, float* y, float* z, int64_t n) {
  for (int64_t i = 0; i < n; ++i) { y[i] = half == 0x3800 ? 0.5f * x[i] : -1; z[i] += x[i]; }
}
void both(const float* x, float* first, float* second, int64_t n) {
  for (int64_t i = 0; i < n; ++i) { first[i] = x[i] + 1; second[2 * i] = second[2 * i + 1] = x[i]; }
}
/* one number of each argument */
void tell(int64_t* y, int64_t big, double number, uint8_t on, const char* name, int64_t name_len, Device to, DType kind,
          double limit) {
  y[0] = big; y[1] = (int64_t)(number * 1e15); y[2] = on; y[3] = name_len ? name[0] : 0; y[4] = to.type * 10 + to.id;
  y[5] = kind.code * 100 + kind.bits; y[6] = isinf(limit);
}
"""

SIGNATURES = (
    "scale(a: float32, x: Tensor([n], float32), y: Tensor([n], float32))",
    "add_to(x: Tensor([n], float32), y: Tensor([n], float32), by: float32 = 1.0)",
    "sub(x: Tensor([n], float32), y: Tensor([n], float32), z: Tensor([n], float32))",
    "pool(x: Tensor([n, c], float32), y: Tensor([ceil_div(n, 4), 2 * c], float32)) where c > 0",
    "split(x: Tensor([2 * m], float32), low: Tensor([m], float32), high: Tensor([m], float32))",
    "fill(n: int64, value: float32, y: Tensor([n], float32))",
    "twice(x: Tensor([n], float32)) -> Tensor([n], float32)",
    "signs(x: Tensor([n], float32)) -> Tensor([n], bool)",
    "biased(x: Tensor([n], float32), bias: Optional[Tensor([n], float32)], y: Tensor([n], float32))",
    "marked(half: float16, x: Tensor([n], float32), y: Tensor([n], float32, out=True), *, "
    "z: Tensor([n], float32, inout=True))",
    "both(x: Tensor([n], float32)) -> Tuple[Tensor([n], float32), Tensor([2 * n], float32)]",
    'tell(y: Tensor([7], int64), big: int64, number: float64 = 0.1, on: bool = True, name: str = "abc", '
    'to: device = "cuda:1", kind: dtype = "bfloat16", limit: float64 = inf)',
)

#: The tensors that the functions of :data:`SIGNATURES` write; None if they are marked in the signature.
OUTPUTS = {
    "scale": ["y"], "sub": ["y"], "pool": ["y"], "split": ["low", "high"], "fill": ["y"], "twice": [], "signs": [],
    "biased": ["y"], "marked": None, "both": [], "tell": ["y"],
}  # fmt: skip
