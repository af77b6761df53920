// Calls wrappers and prints the outcomes without addresses. The output is the same on every target.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime.h"

_Alignas(64) char buffer[256];

typedef int (*Wrapper)(void*, const TVMFFIAny*, int32_t, TVMFFIAny*);

static void run(const char* what, Wrapper wrapper, const TVMFFIAny* args, int32_t count) {
  printf("%s\n", what);
  TVMFFIAny result = {.type_index = kTVMFFINone};
  int code = wrapper(NULL, args, count, &result);
  const char* error = take_error();
  printf("  %d: ", code);
  if (error != NULL) {
    printf("%s\n  ", error);
  }
  show(&result);
}

/// Calls a wrapper with these arguments.
#define CALL(name, ...)                                                                    \
  do {                                                                                     \
    extern int __tvm_ffi_##name(void*, const TVMFFIAny*, int32_t, TVMFFIAny*);             \
    const TVMFFIAny args[] = {__VA_ARGS__};                                                \
    run(#name "(" #__VA_ARGS__ ")", __tvm_ffi_##name, args, sizeof args / sizeof *args);   \
  } while (0)

#define CALL_WITHOUT(name, args, count)                                                    \
  do {                                                                                     \
    extern int __tvm_ffi_##name(void*, const TVMFFIAny*, int32_t, TVMFFIAny*);             \
    run(#name "() " #args " " #count, __tvm_ffi_##name, args, count);                      \
  } while (0)

// Values.

static TVMFFIAny none(void) { return (TVMFFIAny){.type_index = kTVMFFINone}; }
static TVMFFIAny integer(int64_t value) { return (TVMFFIAny){.type_index = kTVMFFIInt, .v_int64 = value}; }
static TVMFFIAny truth(int value) { return (TVMFFIAny){.type_index = kTVMFFIBool, .v_int64 = value}; }
static TVMFFIAny real(double value) { return (TVMFFIAny){.type_index = kTVMFFIFloat, .v_float64 = value}; }
static TVMFFIAny handle(intptr_t value) { return (TVMFFIAny){.type_index = kTVMFFIOpaquePtr, .v_ptr = (void*)value}; }
static TVMFFIAny dtype(int code, int bits, int lanes) {
  TVMFFIAny value = {.type_index = kTVMFFIDataType};
  value.v_dtype = (DLDataType){(uint8_t)code, (uint8_t)bits, (uint16_t)lanes};
  return value;
}
static TVMFFIAny device(int kind, int id) {
  return (TVMFFIAny){.type_index = kTVMFFIDevice, .v_device = {(DLDeviceType)kind, id}};
}
static TVMFFIAny raw(const char* text) { return (TVMFFIAny){.type_index = kTVMFFIRawStr, .v_c_str = text}; }
static TVMFFIAny pointer(int32_t type_index, void* value) {
  return (TVMFFIAny){.type_index = type_index, .v_ptr = value};
}
static TVMFFIAny byte_array(const char* text) {
  TVMFFIByteArray* array = malloc(sizeof *array);
  *array = (TVMFFIByteArray){text, strlen(text)};
  return pointer(kTVMFFIByteArrayPtr, array);
}
static TVMFFIAny small(int32_t type_index, const char* text) {
  TVMFFIAny value = {.type_index = type_index, .small_str_len = (uint32_t)strlen(text)};
  memcpy(value.v_bytes, text, strlen(text));
  return value;
}
static TVMFFIAny string(int32_t type_index, const char* text) {
  Object* object = new_object(type_index);
  object->text = (TVMFFIByteArray){text, strlen(text)};
  return pointer(type_index, object);
}
static TVMFFIAny object(int32_t type_index) { return pointer(type_index, new_object(type_index)); }
static TVMFFIAny shape(const int64_t* sizes, size_t count) {
  Object* made = new_object(kTVMFFIShape);
  made->shape = (TVMFFIShapeCell){sizes, count};
  return pointer(kTVMFFIShape, made);
}
static TVMFFIAny sequence(int32_t type_index, const TVMFFIAny* values, size_t count) {
  Object* made = new_object(type_index);
  TVMFFIAny* copy = calloc(count ? count : 1, sizeof *copy);
  memcpy(copy, values, count * sizeof *copy);
  made->sequence = (TVMFFISeqCell){.data = count ? copy : NULL, .size = (int64_t)count};
  return pointer(type_index, made);
}
#define SEQUENCE(type_index, ...) \
  sequence(type_index, (TVMFFIAny[]){__VA_ARGS__}, sizeof((TVMFFIAny[]){__VA_ARGS__}) / sizeof(TVMFFIAny))
static TVMFFIAny map_of(int32_t type_index, TVMFFIAny list) {
  Object* made = new_object(type_index);
  Object* pairs = (Object*)list.v_obj;
  made->map.pairs = pairs->sequence.data;
  made->map.count = pairs->sequence.size / 2;
  return pointer(type_index, made);
}
static TVMFFIAny reference(TVMFFIAny to) {
  TVMFFIObject** place = malloc(sizeof *place);
  *place = to.v_obj;
  return pointer(kTVMFFIObjectRValueRef, place);
}

// Tensors.

static DLTensor plain(void) {
  static const int64_t sizes[] = {2, 4}, strides[] = {4, 1};
  DLTensor tensor = {.data = buffer, .device = {kDLCPU, 0}, .ndim = 2, .dtype = {kDLFloat, 32, 1}};
  tensor.shape = (int64_t*)sizes;
  tensor.strides = (int64_t*)strides;
  return tensor;
}
static TVMFFIAny by_pointer(DLTensor tensor) {
  DLTensor* copy = malloc(sizeof *copy);
  *copy = tensor;
  return pointer(kTVMFFIDLTensorPtr, copy);
}
static TVMFFIAny by_object(DLTensor tensor) {
  Object* made = new_object(kTVMFFITensor);
  made->tensor = tensor;
  return pointer(kTVMFFITensor, made);
}
static DLTensor sized(const int64_t* sizes, const int64_t* strides) {
  DLTensor tensor = plain();
  tensor.shape = (int64_t*)sizes;
  tensor.strides = (int64_t*)strides;
  return tensor;
}
static DLTensor line(int device_type, int id, const int64_t* size) {
  DLTensor tensor = sized(size, NULL);
  tensor.ndim = 1;
  tensor.device = (DLDevice){(DLDeviceType)device_type, id};
  return tensor;
}

static void pool_of_values(const char* name, Wrapper wrapper) {
  static const int64_t integers[] = {0,     1,      -1,      3,          7,           127,        128,       255,
                                     256,   -128,   -129,    32767,      32768,       65535,      65536,     -32769,
                                     70000, 1 << 24, (1 << 24) + 1, 2147483647, 2147483648LL, 4294967295LL, 4294967296LL,
                                     -2147483649LL, -5000000000LL, INT64_MAX, INT64_MIN};
  static const double reals[] = {0.0, -0.0, 1.5, 16777217.0, 1e300, -1e-300, 0.1};
  static const int dtypes[][3] = {{kDLFloat, 32, 1}, {kDLInt, 8, 4}, {kDLBool, 8, 1}, {kDLBfloat, 16, 1},
                                  {kDLFloat8_e4m3fn, 8, 1}, {200, 7, 513}, {kDLUInt, 1, 0xfffc}};
  static const int devices[][2] = {{kDLCPU, 0}, {kDLCPU, 1}, {kDLCUDA, 0}, {kDLCUDA, 258}, {kDLROCM, -1}, {99, 3}};
  static const char* const texts[] = {"", "a", "int8", "float16", "float32x4", "bool", "nonsense", "rather a long text"};
  static const int64_t twos[] = {2, 3}, fours[] = {5, 4}, negative[] = {-2, 3};
  TVMFFIAny pool[128];
  int count = 0;
#define ADD(value) (pool[count++] = (value))
#define ADD_ALL(array, make) \
  for (size_t i = 0; i < sizeof(array) / sizeof *(array); ++i) ADD(make)
  ADD(none());
  ADD_ALL(integers, integer(integers[i]));
  ADD(truth(0)), ADD(truth(1));
  ADD_ALL(reals, real(reals[i]));
  ADD(handle(0)), ADD(handle(4660));
  ADD_ALL(dtypes, dtype(dtypes[i][0], dtypes[i][1], dtypes[i][2]));
  ADD_ALL(devices, device(devices[i][0], devices[i][1]));
  ADD_ALL(texts, raw(texts[i]));
  ADD_ALL(texts, byte_array(texts[i]));
  ADD_ALL(texts, strlen(texts[i]) > 7 ? string(kTVMFFIStr, texts[i]) : small(kTVMFFISmallStr, texts[i]));
  ADD_ALL(texts, strlen(texts[i]) > 7 ? string(kTVMFFIBytes, texts[i]) : small(kTVMFFISmallBytes, texts[i]));
  for (int type = kTVMFFIDLTensorPtr; type <= kTVMFFIObjectRValueRef; ++type) ADD(pointer(type, NULL));
  ADD(pointer(kTVMFFIStr, NULL)), ADD(pointer(kTVMFFIFunction, NULL)), ADD(pointer(kTVMFFIArray, NULL));
  ADD(shape(twos, 2)), ADD(shape(fours, 2)), ADD(shape(negative, 2)), ADD(shape(twos, 1)), ADD(shape(NULL, 0));
  ADD(object(kTVMFFIFunction)), ADD(object(kTVMFFIModule)), ADD(object(kBase)), ADD(object(kDerived)), ADD(object(kOther));
  ADD(pointer(500, buffer)), ADD(pointer(-7, NULL)), ADD(pointer(kTVMFFIUnchanged, NULL)), ADD(pointer(kBase, NULL));
  ADD(reference(string(kTVMFFIStr, "behind a reference"))), ADD(reference(object(kTVMFFIFunction)));
  ADD(reference(object(kDerived))), ADD(by_pointer(plain())), ADD(by_object(plain()));
  for (int i = 0; i < count; ++i) {
    char what[64];
    snprintf(what, sizeof what, "%s(value %d)", name, i);
    run(what, wrapper, &pool[i], 1);
  }
  const TVMFFIAny containers[] = {
      SEQUENCE(kTVMFFIArray, integer(2), integer(3)),
      SEQUENCE(kTVMFFIList, integer(4), integer(3)),
      SEQUENCE(kTVMFFIArray, integer(1), truth(1)),
      SEQUENCE(kTVMFFIList, small(kTVMFFISmallStr, "a"), string(kTVMFFIStr, "rather long")),
      SEQUENCE(kTVMFFIList, small(kTVMFFISmallStr, "a"), raw("borrowed")),
      sequence(kTVMFFIArray, NULL, 0),
      sequence(kTVMFFIList, NULL, 0),
      SEQUENCE(kTVMFFIArray, integer(-5), raw("text"), SEQUENCE(kTVMFFIList, integer(2), integer(1)), raw("int8"), device(kDLCUDA, 3)),
      SEQUENCE(kTVMFFIArray, integer(-5), small(kTVMFFISmallStr, "abc"), SEQUENCE(kTVMFFIArray, real(2.5), truth(1)),
               dtype(kDLInt, 8, 4), device(kDLCUDA, 3)),
      SEQUENCE(kTVMFFIArray, integer(200), small(kTVMFFISmallStr, "abc"), SEQUENCE(kTVMFFIArray, real(2.5), truth(1)),
               dtype(kDLInt, 8, 4), device(kDLCUDA, 3)),
      SEQUENCE(kTVMFFIArray, integer(2), small(kTVMFFISmallStr, "abc"), SEQUENCE(kTVMFFIArray, real(2.5), real(1)),
               dtype(kDLInt, 8, 4), device(kDLCUDA, 3)),
      map_of(kTVMFFIMap, SEQUENCE(kTVMFFIArray, small(kTVMFFISmallStr, "one"), integer(1), string(kTVMFFIStr, "rather long"), integer(2))),
      map_of(kTVMFFIMap, SEQUENCE(kTVMFFIArray, small(kTVMFFISmallStr, "one"), integer(1), string(kTVMFFIStr, "rather long"), real(2))),
      map_of(kTVMFFIMap, SEQUENCE(kTVMFFIArray, integer(8), integer(1))),
      map_of(kTVMFFIDict, SEQUENCE(kTVMFFIArray, small(kTVMFFISmallStr, "one"), integer(1))),
  };
  for (size_t i = 0; i < sizeof containers / sizeof *containers; ++i) {
    char what[64];
    snprintf(what, sizeof what, "%s(container %d)", name, (int)i);
    run(what, wrapper, &containers[i], 1);
  }
}

static void pool_of_tensors(const char* name, Wrapper wrapper) {
  static const int64_t sizes[][2] = {{2, 4}, {3, 4}, {2, 5}, {-1, 4}, {0, 4}, {1, 4}, {2, 1}, {INT64_MAX, 4}};
  static const int64_t strides[][2] = {{4, 1}, {8, 1}, {1, 4}, {5, 1}, {4, 4294967297LL}, {0, 0}, {-4, 1}};
  static const DLDataType dtypes[] = {{kDLFloat, 32, 1}, {kDLFloat, 64, 1}, {kDLInt, 32, 1}, {kDLUInt, 32, 1}, {kDLInt, 8, 4},
                                      {kDLUInt, 8, 4}, {kDLInt, 16, 2}, {kDLFloat8_e4m3fn, 8, 1}, {kDLFloat8_e4m3, 8, 1},
                                      {kDLFloat8_e5m2, 8, 1}, {kDLFloat, 32, 2}, {200, 32, 1}, {kDLFloat, 32, 0xfffc},
                                      {kDLFloat, 16, 0x8001}};
  static const DLDevice devices[] = {{kDLCPU, 0}, {kDLCPU, 1}, {kDLCUDA, 0}, {kDLCUDA, 1}, {kDLCUDA, 258}, {kDLOpenCL, 0},
                                     {kDLROCM, 0}, {(DLDeviceType)99, 3}, {kDLCUDA, -1}};
  DLTensor pool[512];
  int count = 0;
  for (size_t t = 0; t < sizeof dtypes / sizeof *dtypes; ++t) {
    for (size_t d = 0; d < sizeof devices / sizeof *devices; ++d) {
      DLTensor tensor = plain();
      tensor.dtype = dtypes[t];
      tensor.device = devices[d];
      pool[count++] = tensor;
    }
  }
  // for the dtypes and devices in signatures, vary all other fields
  const DLTensor bases[] = {pool[0], pool[2], pool[3], pool[5], pool[18], pool[36], pool[54], pool[63]};
  for (size_t b = 0; b < sizeof bases / sizeof *bases; ++b) {
#define WITH(field, value)     \
  do {                         \
    pool[count] = bases[b];    \
    pool[count].field = value; \
    ++count;                   \
  } while (0)
    for (int32_t ndim = -1; ndim < 4; ++ndim) {
      if (ndim != 2 && ndim != 3) WITH(ndim, ndim);
    }
    WITH(ndim, 65); WITH(ndim, 1 << 24);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; ++s) WITH(shape, (int64_t*)sizes[s]);
    for (size_t s = 0; s < sizeof strides / sizeof *strides; ++s) WITH(strides, (int64_t*)strides[s]);
    WITH(shape, NULL); WITH(strides, NULL); WITH(data, NULL);
    for (uint64_t offset = 1; offset < 64; offset *= 2) WITH(byte_offset, offset);
    WITH(data, buffer + 2);
  }
  for (int i = 0; i < count; ++i) {
    for (int is_object = 0; is_object < 2; ++is_object) {
      TVMFFIAny arg = is_object ? by_object(pool[i]) : by_pointer(pool[i]);
      char what[64];
      snprintf(what, sizeof what, "%s(tensor %d as %s)", name, i, is_object ? "object" : "pointer");
      run(what, wrapper, &arg, 1);
    }
  }
}

#define VALUES(name)                                                           \
  do {                                                                         \
    extern int __tvm_ffi_##name(void*, const TVMFFIAny*, int32_t, TVMFFIAny*); \
    pool_of_values(#name, __tvm_ffi_##name);                                   \
  } while (0)
#define TENSORS(name)                                                          \
  do {                                                                         \
    extern int __tvm_ffi_##name(void*, const TVMFFIAny*, int32_t, TVMFFIAny*); \
    pool_of_tensors(#name, __tvm_ffi_##name);                                  \
  } while (0)

int main(void) {
  VALUES(i8); VALUES(u8); VALUES(i16); VALUES(u16); VALUES(i32); VALUES(u32); VALUES(i64); VALUES(u64);
  VALUES(f32); VALUES(f64); VALUES(truth); VALUES(pointer); VALUES(type); VALUES(place); VALUES(text); VALUES(raw);
  VALUES(anything); VALUES(none); VALUES(five); VALUES(yes); VALUES(sizes); VALUES(sizes3);
  VALUES(maybe_i8); VALUES(maybe_f32); VALUES(maybe_text); VALUES(maybe_type); VALUES(maybe_place);
  VALUES(call); VALUES(object); VALUES(items); VALUES(numbers); VALUES(words); VALUES(table); VALUES(matrix);
  VALUES(left_out); VALUES(ret_any);
  VALUES(ret_i8); VALUES(ret_u8); VALUES(ret_i16); VALUES(ret_u16); VALUES(ret_i32); VALUES(ret_u32); VALUES(ret_i64);
  VALUES(ret_u64); VALUES(ret_f32); VALUES(ret_f64); VALUES(ret_bool); VALUES(ret_handle); VALUES(ret_dtype);
  VALUES(ret_device); VALUES(ret_str); VALUES(ret_bytes); VALUES(alloc_there); VALUES(raw_call);

  TENSORS(matrix); TENSORS(strided); TENSORS(double); TENSORS(vector); TENSORS(on_cuda); TENSORS(on_one); TENSORS(open);
  TENSORS(handles); TENSORS(signs); TENSORS(storage); TENSORS(eights); TENSORS(maybe_matrix); TENSORS(described);
  TENSORS(reffed);

  CALL_WITHOUT(i8, NULL, 0);
  CALL_WITHOUT(i8, NULL, 1);
  CALL_WITHOUT(left_out, NULL, 0);
  CALL(i8, integer(1), integer(2));
  CALL(registers, integer(-3), integer(200), integer(-30000), dtype(kDLInt, 8, 258), device(kDLCUDA, 5), integer(-70000),
       dtype(kDLBfloat, 16, 1), device(kDLROCM, 6), integer(60000), integer(-9), truth(1), real(1.5), real(-2.25), real(3.5),
       real(-4.5), real(5.5), real(6.25), integer(-12345));
  CALL(registers, integer(-3), integer(200), integer(-30000), raw("int8"), device(kDLCUDA, 5), integer(-70000),
       raw("float32x4"), device(kDLROCM, 6), integer(60000), integer(-9), integer(1), integer(1), integer(-2), integer(3),
       integer(-4), integer(5), integer(6), none());
  static const int64_t one = 1, three = 3, five = 5;
  const TVMFFIAny on_one = by_object(line(kDLCUDA, 1, &three)), on_two = by_pointer(line(kDLCUDA, 2, &three));
  CALL(two, on_one, on_one);
  CALL(two, on_two, on_two);
  CALL(two, on_one, on_two);
  CALL(two, on_one, by_object(line(kDLCUDA, 1, &five)));
  CALL(same, on_one, on_one);
  CALL(same, on_one, on_two);
  CALL(same, on_one, by_object(plain()));
  CALL(same, by_object(plain()), on_one);
  CALL(left_out, integer(1), integer(2));
  CALL(left_out, integer(1), integer(2), integer(3), raw("s"), byte_array("bytes"), raw("bool"), device(kDLROCM, 258));
  CALL(left_out, integer(1), integer(2), real(3), raw("s"), byte_array("bytes"), raw("bool"), raw("cuda"));
  CALL(symbol, integer(2), by_object(plain()));
  CALL(symbol, integer(3), by_object(plain()));
  CALL(raw_call, integer(3));
  CALL(raw_call, integer(3), dtype(kDLUInt, 8, 3));
  CALL(raw_call, integer(3), dtype(kDLUInt, 8, 3), device(kDLCUDA, 1));
  CALL(ret_dtype_7, integer(-1), integer(2), integer(-3), integer(4), dtype(kDLInt, 8, 258), integer(-6), integer(7));
  CALL(alloc, integer(3), dtype(kDLInt, 8, 258), device(kDLCUDA, 2));
  CALL(alloc, integer(3), raw("float16"), device(kDLCUDA, 7));
  CALL(alloc, integer(-3), raw("float16"), device(kDLCUDA, 7));
  CALL(alloc, integer(INT64_MAX), raw("float16"), device(kDLCUDA, 2));
  CALL(alloc_beside, on_one);
  CALL(alloc_beside, on_two);
  CALL(alloc_beside, by_object(line(kDLCUDA, 258, &one)));
  return 0;
}
