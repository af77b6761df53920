/* Kernels note their arguments as 64-bit words. */
#pragma once
#include "kernels.h"

#include <string.h>

extern uint64_t noted[];
extern size_t noted_count;

static inline void word(uint64_t value) { noted[noted_count++] = value; }

static inline void address(const void* pointer) { word((uint64_t)(uintptr_t)pointer); }

static inline void single(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  word(bits);
}

static inline void real(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  word(bits);
}

static inline void dtype(DLDataType value) {
  word(value.code | (uint64_t)value.bits << 8 | (uint64_t)value.lanes << 16);
}

static inline void device(DLDevice value) {
  word((uint64_t)value.device_type);
  word((uint64_t)value.device_id);
}

static inline void chars(const char* data, size_t size) {
  word(data != NULL);
  word(size);
  for (size_t i = 0; i < size; ++i) word((unsigned char)data[i]);
}

static inline void numbers(const int64_t* data, size_t size) {
  word(data != NULL);
  word(size);
  for (size_t i = 0; i < size; ++i) word((uint64_t)data[i]);
}

static inline void any(const TVMFFIAny* value) {
  word((uint64_t)value->type_index);
  word(value->zero_padding);
  word(value->v_uint64);
}

static inline void values(const TVMFFIAny* data, size_t size) {
  word(data != NULL);
  word(size);
  for (size_t i = 0; i < size; ++i) any(data + i);
}

static inline void tensor(const DLTensor* value) {
  word(value != NULL);
  if (value == NULL) return;
  address(value->data);
  word(value->byte_offset);
  device(value->device);
  dtype(value->dtype);
  word((uint64_t)value->ndim);
  for (int32_t i = 0; i < value->ndim; ++i) word((uint64_t)value->shape[i]);
  for (int32_t i = 0; i < value->ndim; ++i) word((uint64_t)value->strides[i]);
}

static inline void packed(const void* handle, const TVMFFIAny* args, int32_t num_args) {
  (void)handle;
  word((uint64_t)num_args);
  for (int32_t i = 0; i < num_args; ++i) any(args + i);
}
