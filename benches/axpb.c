// y = a * x + b, as a C programmer writes it. Compiled by `benches/llvm.rs`.
void axpb(float a, float b, const float* x, float* y, long n) {
  for (long i = 0; i < n; ++i) y[i] = a * x[i] + b;
}
