// The kernels. Each prints what it receives, without addresses.

#include <stdio.h>
#include <string.h>

#include "runtime.h"

/// The memory of the pool's tensors.
extern char buffer[256];

static void show_device(DLDevice device) { printf(" %d:%d", device.device_type, device.device_id); }

/// Prints the offset from the buffer's start, or the number itself if it is small.
static void show_address(const void* address) {
  const char* at = address;
  if (at >= buffer && at < buffer + sizeof buffer) {
    printf(" buffer + %d", (int)(at - buffer));
  } else if ((uintptr_t)at < 0x100000) {
    printf(" %d", (int)(uintptr_t)at);
  } else {
    printf(" elsewhere");
  }
}

#define SHOW_INTEGER(name, type) \
  void kernel_##name(type x) { printf("  kernel %lld\n", (long long)x); }
SHOW_INTEGER(i8, int8_t)
SHOW_INTEGER(u8, uint8_t)
SHOW_INTEGER(i16, int16_t)
SHOW_INTEGER(u16, uint16_t)
SHOW_INTEGER(i32, int32_t)
SHOW_INTEGER(u32, uint32_t)
SHOW_INTEGER(i64, int64_t)
SHOW_INTEGER(u64, uint64_t)
SHOW_INTEGER(truth, uint8_t)
void kernel_f32(float x) { printf("  kernel %.17g\n", x); }
void kernel_f64(double x) { printf("  kernel %.17g\n", x); }
void kernel_pointer(void* x) { printf("  kernel %lld\n", (long long)(intptr_t)x); }
void kernel_type(DLDataType x) { printf("  kernel "), show_dtype(x), printf("\n"); }
void kernel_place(DLDevice x) { printf("  kernel"), show_device(x), printf("\n"); }
void kernel_text(const char* x, size_t size) { printf("  kernel %zu bytes %.*s\n", size, (int)size, x); }
void kernel_raw(const char* x, size_t size) { printf("  kernel %zu bytes %.*s\n", size, (int)size, x); }
void kernel_anything(const TVMFFIAny* x) { printf("  kernel "), show(x); }
void kernel_none(void) { printf("  kernel\n"); }
void kernel_five(void) { printf("  kernel\n"); }
void kernel_yes(void) { printf("  kernel\n"); }

static void show_sizes(const int64_t* sizes, size_t count) {
  for (size_t i = 0; i < count; ++i) printf(" %lld", (long long)sizes[i]);
}

void kernel_sizes(const int64_t* x, size_t size) { printf("  kernel"), show_sizes(x, size), printf("\n"); }
void kernel_sizes3(const int64_t* x, size_t size, int64_t n) {
  printf("  kernel"), show_sizes(x, size), printf(", n %lld\n", (long long)n);
}
void kernel_maybe_i8(uint8_t given, int8_t x) { printf("  kernel %d %d\n", given, x); }
void kernel_maybe_f32(uint8_t given, float x) { printf("  kernel %d %.17g\n", given, x); }
void kernel_maybe_text(const char* x, size_t size) {
  printf("  kernel %s %zu bytes %.*s\n", x ? "with" : "without", size, (int)size, x ? x : "");
}
void kernel_maybe_type(uint8_t given, DLDataType x) { printf("  kernel %d ", given), show_dtype(x), printf("\n"); }
void kernel_maybe_place(uint8_t given, DLDevice x) { printf("  kernel %d", given), show_device(x), printf("\n"); }
void kernel_call(TVMFFIObjectHandle x) { printf("  kernel type %d\n", ((Object*)x)->header.type_index); }
void kernel_object(TVMFFIObjectHandle x) { printf("  kernel type %d\n", ((Object*)x)->header.type_index); }
void kernel_items(int8_t a, const char* s, size_t size, double f, uint8_t b, DLDataType t, DLDevice d) {
  printf("  kernel %d %.*s %.17g %d ", a, (int)size, s, f, b), show_dtype(t), show_device(d), printf("\n");
}
void kernel_numbers(const TVMFFIAny* x, size_t size) {
  printf("  kernel");
  for (size_t i = 0; i < size; ++i) printf(" %lld", (long long)x[i].v_int64);
  printf("\n");
}
void kernel_words(TVMFFIObjectHandle x) { printf("  kernel %d words\n", (int)((Object*)x)->sequence.size); }
void kernel_table(TVMFFIObjectHandle x) { printf("  kernel %d pairs\n", (int)((Object*)x)->map.count); }

#define SHOW_TENSOR(name) \
  void kernel_##name(void* x, int64_t n) { printf("  kernel"), show_address(x), printf(", n %lld\n", (long long)n); }
SHOW_TENSOR(matrix)
SHOW_TENSOR(double)
SHOW_TENSOR(vector)
SHOW_TENSOR(on_cuda)
SHOW_TENSOR(on_one)
SHOW_TENSOR(signs)
SHOW_TENSOR(storage)
SHOW_TENSOR(eights)
SHOW_TENSOR(maybe_matrix)
void kernel_strided(float* x, int64_t n, int64_t m, int64_t s) {
  printf("  kernel"), show_address(x), printf(", n %lld, m %lld, s %lld\n", (long long)n, (long long)m, (long long)s);
}
void kernel_handles(void* x, uint64_t byte_offset, int64_t n) {
  printf("  kernel"), show_address(x), printf(" + %d, n %lld\n", (int)byte_offset, (long long)n);
}

static void show_tensor(const DLTensor* x) {
  printf("  kernel"), show_address(x->data), printf(" + %d, ndim %d, ", (int)x->byte_offset, x->ndim);
  show_dtype(x->dtype), show_device(x->device);
  printf(", sizes"), show_sizes(x->shape, (size_t)x->ndim);
  printf(", strides"), show_sizes(x->strides, (size_t)x->ndim), printf("\n");
}

void kernel_open(DLTensor* x) { show_tensor(x); }
void kernel_described(DLTensor* x) { show_tensor(x); }
void kernel_reffed(void* allocated, void* aligned, int64_t offset, int64_t n, int64_t m, int64_t s, int64_t t) {
  printf("  kernel"), show_address(allocated), show_address(aligned);
  printf(" %d %d %d %d %d\n", (int)offset, (int)n, (int)m, (int)s, (int)t);
}

void kernel_registers(int8_t a, uint8_t b, int16_t c, DLDataType d, DLDevice e, int32_t f, DLDataType g, DLDevice h,
                      uint16_t i, int8_t j, uint8_t k, float l, double m, float n, float o, float p, double q,
                      uint8_t given, int16_t r) {
  printf("  kernel %d %d %d ", a, b, c), show_dtype(d), show_device(e), printf(" %d ", f), show_dtype(g), show_device(h);
  printf(" %d %d %d %.9g %.9g %.9g %.9g %.9g %.9g %d %d\n", i, j, k, l, m, n, o, p, q, given, r);
}
void kernel_two(float* x, float* y, void* stream, int64_t n) {
  printf("  kernel"), show_address(x), show_address(y), printf(" %lld %lld\n", (long long)(intptr_t)stream, (long long)n);
}
void kernel_same(DLTensor* x, DLTensor* y) { show_tensor(x), show_tensor(y); }
void kernel_left_out(int32_t i, int64_t j, double f, const char* s, size_t s_size, const char* b, size_t b_size,
                     DLDataType t, DLDevice d, uint8_t given, int64_t o, uint8_t z) {
  printf("  kernel %d %lld %.17g %.*s %.*s ", i, (long long)j, f, (int)s_size, s, (int)b_size, b);
  show_dtype(t), show_device(d), printf(" %d %lld %d\n", given, (long long)o, z);
}
void kernel_symbol(int64_t n, float* x) { printf("  kernel %lld", (long long)n), show_address(x), printf("\n"); }

int32_t kernel_raw_call(void* handle, const TVMFFIAny* args, int32_t count, TVMFFIAny* result) {
  (void)handle;
  for (int32_t i = 0; i < count; ++i) printf("  kernel "), show(&args[i]);
  *result = args[count - 1];
  return 0;
}

#define RETURN(name, type) \
  type kernel_ret_##name(type x) { return x; }
RETURN(i8, int8_t)
RETURN(u8, uint8_t)
RETURN(i16, int16_t)
RETURN(u16, uint16_t)
RETURN(i32, int32_t)
RETURN(u32, uint32_t)
RETURN(i64, int64_t)
RETURN(u64, uint64_t)
RETURN(f32, float)
RETURN(f64, double)
RETURN(handle, void*)
RETURN(dtype, DLDataType)
RETURN(device, DLDevice)
uint8_t kernel_ret_bool(int8_t x) { return (uint8_t)x; }
DLDataType kernel_ret_dtype_7(int8_t a, int8_t b, int8_t c, int8_t d, DLDataType e, int8_t f, int8_t g) {
  printf("  kernel %d %d %d %d %d %d\n", a, b, c, d, f, g);
  return e;
}
int32_t kernel_ret_str(const char* x, size_t size, TVMFFIAny* result) {
  // borrowed; the wrapper copies it
  static char copy[64];
  snprintf(copy, sizeof copy, "%.*s", (int)size, x);
  *result = (TVMFFIAny){.type_index = kTVMFFIRawStr, .v_c_str = copy};
  return 0;
}
int32_t kernel_ret_bytes(const char* x, size_t size, TVMFFIAny* result) {
  *result = (TVMFFIAny){.type_index = kTVMFFISmallBytes, .small_str_len = (uint32_t)(size < 7 ? size : 7)};
  memcpy(result->v_bytes, x, result->small_str_len);
  return 0;
}
int32_t kernel_ret_any(const TVMFFIAny* x, TVMFFIAny* result) {
  *result = *x;
  return 0;
}
void kernel_alloc(int64_t n, DLDataType t, DLDevice d, void* result) {
  printf("  kernel %d ", (int)n), show_dtype(t), show_device(d), printf(" %d\n", result != NULL);
}
void kernel_alloc_beside(float* x, void* result, int64_t n) {
  printf("  kernel"), show_address(x), printf(" %d %d\n", result != NULL, (int)n);
}
void kernel_alloc_there(int64_t n, void* result) { printf("  kernel %d %d\n", (int)n, result != NULL); }
