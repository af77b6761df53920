#include "runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tvm/ffi/extra/c_env_api.h>

static char raised[4096];
static int is_raised;

static void* must(void* pointer) {
  if (pointer == NULL) abort();
  return pointer;
}

Object* new_object(int32_t type_index) {
  Object* object = must(calloc(1, sizeof(Object)));
  object->header.type_index = type_index;
  return object;
}

static int raise_error(const char* kind, const char* text) {
  snprintf(raised, sizeof raised, "%s: %s", kind, text);
  is_raised = 1;
  return -1;
}

const char* take_error(void) {
  if (!is_raised) return NULL;
  is_raised = 0;
  return raised;
}

void TVMFFIErrorSetRaisedFromCStrParts(const char* kind, const char** parts, int32_t count) {
  char text[4000] = "";
  for (int32_t i = 0; i < count; ++i) {
    strncat(text, parts[i], sizeof text - strlen(text) - 1);
  }
  raise_error(kind, text);
}

void TVMFFIErrorMoveFromRaised(TVMFFIObjectHandle* result) {
  *result = is_raised ? new_object(kTVMFFIError) : NULL;
  is_raised = 0;
}

// Only one text is stored: that of the error taken last.
void TVMFFIErrorSetRaised(TVMFFIObjectHandle error) {
  (void)error;
  is_raised = 1;
}

int TVMFFIObjectDecRef(TVMFFIObjectHandle object) {
  printf("  released type %d\n", ((Object*)object)->header.type_index);
  return 0;
}

// Types: 129 and 131 derive from Object, 130 derives from 129.

static const TVMFFITypeInfo* ancestors_of_base[1];
static const TVMFFITypeInfo* ancestors_of_derived[2];
static TVMFFITypeInfo infos[kOther + 1];

const TVMFFITypeInfo* TVMFFIGetTypeInfo(int32_t index) {
  static const char* const keys[] = {"my.Base", "my.Derived", "my.Other"};
  if (index < kTVMFFIStaticObjectBegin || index > kOther) {
    printf("  asked for type %d\n", index);
    return NULL;
  }
  TVMFFITypeInfo* info = &infos[index];
  info->type_index = index;
  info->type_depth = index == kTVMFFIObject ? 0 : index == kDerived ? 2 : 1;
  const char* key = index >= kBase ? keys[index - kBase] : "static";
  info->type_key = (TVMFFIByteArray){key, strlen(key)};
  if (index == kTVMFFIObject) return info;
  ancestors_of_base[0] = ancestors_of_derived[0] = TVMFFIGetTypeInfo(kTVMFFIObject);
  ancestors_of_derived[1] = &infos[kBase];
  info->type_ancestors = index == kDerived ? ancestors_of_derived : ancestors_of_base;
  return info;
}

static int is_text(const TVMFFIByteArray* array, const char* text) {
  return array->size == strlen(text) && memcmp(array->data, text, array->size) == 0;
}

int TVMFFITypeKeyToIndex(const TVMFFIByteArray* key, int32_t* out) {
  if (!is_text(key, "my.Base")) return raise_error("KeyError", "no such type");
  *out = kBase;
  return 0;
}

int TVMFFIDataTypeFromString(const TVMFFIByteArray* text, DLDataType* out) {
  static const struct {
    const char* name;
    DLDataType dtype;
  } known[] = {
      {"int8", {kDLInt, 8, 1}}, {"float16", {kDLFloat, 16, 1}}, {"float32x4", {kDLFloat, 32, 4}}, {"bool", {kDLBool, 8, 1}},
  };
  for (size_t i = 0; i < sizeof known / sizeof *known; ++i) {
    if (is_text(text, known[i].name)) {
      *out = known[i].dtype;
      return 0;
    }
  }
  return raise_error("ValueError", "no such dtype");
}

static int make_text(const TVMFFIByteArray* from, TVMFFIAny* out, int32_t small, int32_t object) {
  memset(out, 0, sizeof *out);
  if (from->size <= 7) {
    out->type_index = small;
    out->small_str_len = (uint32_t)from->size;
    memcpy(out->v_bytes, from->data, from->size);
    return 0;
  }
  char* copy = must(calloc(from->size + 1, 1));
  memcpy(copy, from->data, from->size);
  Object* made = new_object(object);
  made->text = (TVMFFIByteArray){copy, from->size};
  out->type_index = object;
  out->v_obj = &made->header;
  return 0;
}

int TVMFFIStringFromByteArray(const TVMFFIByteArray* from, TVMFFIAny* out) {
  return make_text(from, out, kTVMFFISmallStr, kTVMFFIStr);
}

int TVMFFIBytesFromByteArray(const TVMFFIByteArray* from, TVMFFIAny* out) {
  return make_text(from, out, kTVMFFISmallBytes, kTVMFFIBytes);
}

// Wrappers read maps with these functions of the runtime.

enum { kMapSize = 1, kMapIterator, kIterator };

int TVMFFIFunctionGetGlobal(const TVMFFIByteArray* name, TVMFFIObjectHandle* out) {
  int which = is_text(name, "ffi.MapSize") ? kMapSize : is_text(name, "ffi.MapForwardIterFunctor") ? kMapIterator : 0;
  *out = NULL;
  if (which == 0) return 0;
  Object* function = new_object(kTVMFFIFunction);
  function->which = which;
  *out = function;
  return 0;
}

int TVMFFIFunctionCall(TVMFFIObjectHandle callee, TVMFFIAny* args, int32_t count, TVMFFIAny* result) {
  Object* function = callee;
  if (count != 1) return raise_error("InternalError", "count");
  if (function->header.type_index == kTVMFFIFunction) {
    Object* map = (Object*)args->v_obj;
    if (function->which == kMapSize) {
      *result = (TVMFFIAny){.type_index = kTVMFFIInt, .v_int64 = map->map.count};
    } else {
      Object* iterator = new_object(kIterator);
      iterator->map = map->map;
      *result = (TVMFFIAny){.type_index = kTVMFFIFunction, .v_obj = &iterator->header};
    }
    return 0;
  }
  if (args->v_int64 == 2) {
    ++function->map.at;
    *result = (TVMFFIAny){.type_index = kTVMFFIBool, .v_int64 = 1};
  } else {
    *result = function->map.pairs[2 * function->map.at + args->v_int64];
  }
  return 0;
}

TVMFFIStreamHandle TVMFFIEnvGetStream(int32_t device_type, int32_t device_id) {
  printf("  stream of %d:%d\n", device_type, device_id);
  return (TVMFFIStreamHandle)(intptr_t)(0x1000 * device_type + device_id);
}

int TVMFFIEnvTensorAlloc(DLTensor* like, TVMFFIObjectHandle* out) {
  printf("  allocate");
  for (int32_t d = 0; d < like->ndim; ++d) printf(" %lld", (long long)like->shape[d]);
  printf(" of ");
  show_dtype(like->dtype);
  printf(" on %d:%d, %s strides\n", like->device.device_type, like->device.device_id, like->strides ? "with" : "without");
  if (like->device.device_id == 7) return raise_error("MemoryError", "none there");
  Object* object = new_object(kTVMFFITensor);
  object->tensor = *like;
  object->tensor.data = must(calloc(1, 64));
  *out = object;
  return 0;
}

void show_dtype(DLDataType dtype) { printf("(%d, %d, %d)", dtype.code, dtype.bits, dtype.lanes); }

/// Prints the whole value, byte by byte if all machines agree, without addresses.
void show(const TVMFFIAny* value) {
  printf("type %d", value->type_index);
  switch (value->type_index) {
    case kTVMFFISmallStr:
    case kTVMFFISmallBytes:
      printf(", %u bytes %.8s\n", value->small_str_len, value->v_bytes);
      return;
    case kTVMFFIFloat:
      printf(", %.17g", value->v_float64);
      break;
    case kTVMFFIDataType:
      printf(", ");
      show_dtype(value->v_dtype);
      for (int i = 4; i < 8; ++i) printf(" %d", value->v_bytes[i]);
      break;
    case kTVMFFIDevice:
      printf(", %d:%d", value->v_device.device_type, value->v_device.device_id);
      break;
    case kTVMFFIStr:
    case kTVMFFIBytes: {
      const Object* text = (const Object*)value->v_obj;
      if (text != NULL) printf(", %d bytes %.*s", (int)text->text.size, (int)text->text.size, text->text.data);
      break;
    }
    default:
      if (value->type_index < kTVMFFIStaticObjectBegin && value->type_index != kTVMFFIRawStr &&
          value->type_index != kTVMFFIByteArrayPtr && value->type_index != kTVMFFIDLTensorPtr &&
          value->type_index != kTVMFFIObjectRValueRef) {
        printf(", %lld", (long long)value->v_int64);
      }
  }
  printf(", padding %u\n", value->zero_padding);
}
