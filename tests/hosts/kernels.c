/* The kernels of signatures.txt: plain C, except for those that return objects of the runtime. */
#include <tvm/ffi/c_api.h>
#include <tvm/ffi/extra/c_env_api.h>

#include <stdlib.h>
#include <string.h>

/* The library's module. The wrappers' object defines the variable, and the loader sets it. */
extern void* __tvm_ffi__library_ctx;

/* ---- numbers ---- */

void scale(float* x, float* y, double f, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = (float)(x[i] * f);
}

double dot(double* a, double* b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

void outer(float* a, float* b, float* result, int64_t m, int64_t n) {
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) result[i * n + j] = a[i] * b[j];
}

static float from_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

void widen(uint16_t* x, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = from_bits((uint32_t)x[i] << 16);
}

/* float8_e4m3fn: sign, 4 bits of exponent (bias 7), 3 of mantissa. */
static float from_e4m3fn(uint8_t bits) {
  int exponent = bits >> 3 & 15, mantissa = bits & 7;
  float value = exponent == 0 ? (float)mantissa : (float)(8 + mantissa);
  for (int i = exponent == 0 ? 1 : exponent; i < 10; ++i) value /= 2;
  for (int i = 10; i < exponent; ++i) value *= 2;
  return bits & 128 ? -value : value;
}

float sum8(uint8_t* x, int64_t n) {
  float sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += from_e4m3fn(x[i]);
  return sum;
}

uint8_t is_sorted(int32_t* x, int64_t n) {
  for (int64_t i = 1; i < n; ++i)
    if (x[i - 1] > x[i]) return 0;
  return 1;
}

/* ---- texts ---- */

/* The position of `letters` in `text`, or `size` if missing. */
static size_t position(const char* text, size_t size, const char* letters, size_t letters_size) {
  for (size_t i = 0; i + letters_size <= size; ++i)
    if (memcmp(text + i, letters, letters_size) == 0) return i;
  return size;
}

int64_t count(const char* text, size_t text_size, const char* letters, size_t letters_size) {
  int64_t found = 0;
  while (letters_size > 0) {
    size_t at = position(text, text_size, letters, letters_size);
    if (at == text_size) break;
    ++found;
    text += at + letters_size;
    text_size -= at + letters_size;
  }
  return found;
}

int32_t greet(const char* name, size_t name_size, TVMFFIAny* result) {
  static const char hello[] = "hello, ";
  size_t size = sizeof hello - 1 + name_size;
  char* text = malloc(size);
  if (text == NULL) {
    TVMFFIErrorSetRaisedFromCStr("MemoryError", "greet: out of memory");
    return -1;
  }
  memcpy(text, hello, sizeof hello - 1);
  memcpy(text + sizeof hello - 1, name, name_size);
  TVMFFIByteArray bytes = {text, size};
  int32_t status = TVMFFIStringFromByteArray(&bytes, result);
  free(text);
  return status;
}

int32_t reversed(const char* b, size_t b_size, TVMFFIAny* result) {
  char* turned = malloc(b_size + 1);
  if (turned == NULL) {
    TVMFFIErrorSetRaisedFromCStr("MemoryError", "reversed: out of memory");
    return -1;
  }
  for (size_t i = 0; i < b_size; ++i) turned[i] = b[b_size - 1 - i];
  TVMFFIByteArray bytes = {turned, b_size};
  int32_t status = TVMFFIBytesFromByteArray(&bytes, result);
  free(turned);
  return status;
}

int32_t find(const char* text, size_t text_size, const char* letters, size_t letters_size, TVMFFIAny* result) {
  size_t at = position(text, text_size, letters, letters_size);
  if (at == text_size) return 0; /* the result is None */
  result->type_index = kTVMFFIInt;
  result->zero_padding = 0;
  result->v_int64 = (int64_t)at;
  return 0;
}

/* ---- containers ---- */

static void release(TVMFFIAny* value) {
  if (value->type_index >= kTVMFFIStaticObjectBegin) TVMFFIObjectDecRef(value->v_obj);
}

/* Calls a global function. */
static int32_t call_global(const char* name, TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  TVMFFIByteArray key = {name, strlen(name)};
  TVMFFIObjectHandle function = NULL;
  int32_t status = TVMFFIFunctionGetGlobal(&key, &function);
  if (status != 0) return status;
  if (function == NULL) {
    TVMFFIErrorSetRaisedFromCStr("RuntimeError", "a global function is missing");
    return -1;
  }
  status = TVMFFIFunctionCall(function, args, num_args, result);
  TVMFFIObjectDecRef(function);
  return status;
}

enum { MOST = 16 };

int32_t split(const char* text, size_t text_size, const char* by, size_t by_size, TVMFFIAny* result) {
  if (by_size == 0) {
    TVMFFIErrorSetRaisedFromCStr("ValueError", "split: `by` is empty");
    return -1;
  }
  TVMFFIAny parts[MOST];
  int32_t num = 0, status = 0;
  for (int more = 1; more && status == 0 && num < MOST;) {
    size_t at = position(text, text_size, by, by_size);
    TVMFFIByteArray part = {text, at};
    memset(&parts[num], 0, sizeof parts[num]);
    status = TVMFFIStringFromByteArray(&part, &parts[num]);
    if (status == 0) ++num;
    more = at != text_size;
    if (more) text += at + by_size, text_size -= at + by_size;
  }
  if (status == 0) status = call_global("ffi.Array", parts, num, result);
  for (int32_t i = 0; i < num; ++i) release(&parts[i]);
  return status;
}

int32_t lengths(const TVMFFIAny* words, size_t words_size, TVMFFIAny* result) {
  TVMFFIAny pairs[2 * MOST];
  int32_t num = 0;
  memset(pairs, 0, sizeof pairs);
  for (size_t i = 0; i < words_size && i < MOST; ++i) {
    pairs[num++] = words[i];
    pairs[num].type_index = kTVMFFIInt;
    /* an element is a small string or one on the heap */
    pairs[num++].v_int64 = words[i].type_index == kTVMFFISmallStr
                               ? (int64_t)words[i].small_str_len
                               : (int64_t)((const TVMFFIByteArray*)((const char*)words[i].v_obj + sizeof(TVMFFIObject)))->size;
  }
  return call_global("ffi.Map", pairs, num, result);
}

/* ---- tensors of any kind ---- */

void* address(DLTensor* x) { return x->data; }

DLDataType dtype_of(DLTensor* x) { return x->dtype; }

DLDevice device_of(DLTensor* x) { return x->device; }

int32_t shape_of(DLTensor* x, TVMFFIAny* result) {
  TVMFFIAny sizes[MOST];
  memset(sizes, 0, sizeof sizes);
  for (int32_t i = 0; i < x->ndim && i < MOST; ++i) {
    sizes[i].type_index = kTVMFFIInt;
    sizes[i].v_int64 = x->shape[i];
  }
  return call_global("ffi.Shape", sizes, x->ndim < MOST ? x->ndim : MOST, result);
}

/* ---- functions and modules ---- */

static int next(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)args;
  if (num_args != 0) {
    TVMFFIErrorSetRaisedFromCStr("TypeError", "a counter takes no arguments");
    return -1;
  }
  result->type_index = kTVMFFIInt;
  result->zero_padding = 0;
  result->v_int64 = ++*(int64_t*)self;
  return 0;
}

int32_t counter(TVMFFIAny* result) {
  int64_t* count = calloc(1, sizeof *count);
  if (count == NULL) {
    TVMFFIErrorSetRaisedFromCStr("MemoryError", "counter: out of memory");
    return -1;
  }
  TVMFFIObjectHandle function = NULL;
  int32_t status = TVMFFIFunctionCreate(count, next, free, &function);
  if (status != 0) {
    free(count);
    return status;
  }
  result->type_index = kTVMFFIFunction;
  result->zero_padding = 0;
  result->v_obj = (TVMFFIObject*)function;
  return 0;
}

int32_t library(TVMFFIAny* result) {
  if (__tvm_ffi__library_ctx == NULL) {
    TVMFFIErrorSetRaisedFromCStr("RuntimeError", "library: __tvm_ffi__library_ctx is NULL");
    return -1;
  }
  TVMFFIObjectIncRef(__tvm_ffi__library_ctx);
  result->type_index = kTVMFFIModule;
  result->zero_padding = 0;
  result->v_obj = (TVMFFIObject*)__tvm_ffi__library_ctx;
  return 0;
}

/* Calls a function of a module that the library imports. */
int32_t price(const char* item, size_t item_size, int8_t number, TVMFFIAny* result) {
  TVMFFIObjectHandle price_of = NULL;
  int32_t status = TVMFFIEnvModLookupFromImports(__tvm_ffi__library_ctx, "price_of", &price_of);
  if (status != 0) return status;
  TVMFFIByteArray bytes = {item, item_size};
  TVMFFIAny arg, found;
  memset(&arg, 0, sizeof arg);
  memset(&found, 0, sizeof found);
  status = TVMFFIStringFromByteArray(&bytes, &arg);
  if (status == 0) status = TVMFFIFunctionCall(price_of, &arg, 1, &found);
  if (status == 0) {
    result->type_index = kTVMFFIInt;
    result->zero_padding = 0;
    result->v_int64 = found.v_int64 * number;
  }
  release(&arg);
  /* price_of belongs to the module: the lookup lends it */
  return status;
}
