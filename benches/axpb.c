// y = a * x + b, as a C programmer writes it. `benches/llvm.rs` compiles it.
void axpb(float a, float b, const float* x, float* y, long n) {
  for (long i = 0; i < n; ++i) y[i] = a * x[i] + b;
}
