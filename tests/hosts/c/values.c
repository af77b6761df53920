#include "values.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TVMFFIByteArray bytes_of(const char* text) {
  TVMFFIByteArray bytes = {text, strlen(text)};
  return bytes;
}

static TVMFFIAny any_of(int32_t type_index) {
  TVMFFIAny value;
  memset(&value, 0, sizeof value);
  value.type_index = type_index;
  return value;
}

TVMFFIAny none_any(void) { return any_of(kTVMFFINone); }

TVMFFIAny int_any(int64_t number) {
  TVMFFIAny value = any_of(kTVMFFIInt);
  value.v_int64 = number;
  return value;
}

TVMFFIAny float_any(double number) {
  TVMFFIAny value = any_of(kTVMFFIFloat);
  value.v_float64 = number;
  return value;
}

TVMFFIAny str_any(const char* text) {
  TVMFFIAny value = any_of(kTVMFFIRawStr);
  value.v_c_str = text;
  return value;
}

TVMFFIAny bytes_any(const TVMFFIByteArray* bytes) {
  TVMFFIAny value = any_of(kTVMFFIByteArrayPtr);
  value.v_ptr = (void*)bytes;
  return value;
}

TVMFFIAny tensor_any(DLTensor* tensor) {
  TVMFFIAny value = any_of(kTVMFFIDLTensorPtr);
  value.v_ptr = tensor;
  return value;
}

/* The address after an object's header. */
static void* cell(const TVMFFIAny* value) { return (char*)value->v_obj + sizeof(TVMFFIObject); }

int chars_of(const TVMFFIAny* value, TVMFFIByteArray* out) {
  switch (value->type_index) {
    case kTVMFFIRawStr:
      *out = bytes_of(value->v_c_str);
      return 1;
    case kTVMFFIByteArrayPtr:
      *out = *(const TVMFFIByteArray*)value->v_ptr;
      return 1;
    case kTVMFFISmallStr:
    case kTVMFFISmallBytes:
      out->data = value->v_bytes;
      out->size = value->small_str_len;
      return 1;
    case kTVMFFIStr:
    case kTVMFFIBytes:
      *out = *(const TVMFFIByteArray*)cell(value);
      return 1;
    default:
      return 0;
  }
}

void release(TVMFFIAny* value) {
  if (value->type_index >= kTVMFFIStaticObjectBegin) TVMFFIObjectDecRef(value->v_obj);
  *value = none_any();
}

int call_global(const char* name, TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  TVMFFIByteArray key = bytes_of(name);
  TVMFFIObjectHandle function = NULL;
  if (TVMFFIFunctionGetGlobal(&key, &function) != 0 || function == NULL) {
    fprintf(stderr, "there is no global function %s\n", name);
    exit(1);
  }
  int status = TVMFFIFunctionCall(function, args, num_args, result);
  TVMFFIObjectDecRef(function);
  return status;
}

/* Calls a container's function, which must succeed. */
static TVMFFIAny ask(const char* name, const TVMFFIAny* container, const TVMFFIAny* index) {
  TVMFFIAny args[2] = {*container, index == NULL ? none_any() : *index};
  TVMFFIAny result = none_any();
  if (call_global(name, args, index == NULL ? 1 : 2, &result) != 0) {
    show_error();
    exit(1);
  }
  return result;
}

static void show_element(const DLTensor* tensor, int64_t i) {
  char* data = (char*)tensor->data + tensor->byte_offset;
  if (tensor->dtype.code == kDLFloat && tensor->dtype.bits == 32) {
    printf("%g", (double)((float*)data)[i]);
  } else {
    printf("?");
  }
}

static void show_tensor(const DLTensor* tensor) {
  int64_t size = 1;
  printf("Tensor([");
  for (int32_t i = 0; i < tensor->ndim; ++i) {
    printf(i == 0 ? "%" PRId64 : ", %" PRId64, tensor->shape[i]);
    size *= tensor->shape[i];
  }
  printf("], ");
  TVMFFIAny dtype = none_any();
  dtype.type_index = kTVMFFIDataType;
  dtype.v_dtype = tensor->dtype;
  show(&dtype);
  printf(", [");
  for (int64_t i = 0; i < size; ++i) {
    if (i != 0) printf(", ");
    show_element(tensor, i);
  }
  printf("])");
}

static void show_array(const TVMFFIAny* value) {
  TVMFFIAny size = ask("ffi.ArraySize", value, NULL);
  printf("[");
  for (int64_t i = 0; i < size.v_int64; ++i) {
    TVMFFIAny index = int_any(i), item = ask("ffi.ArrayGetItem", value, &index);
    if (i != 0) printf(", ");
    show(&item);
    release(&item);
  }
  printf("]");
}

static void show_map(const TVMFFIAny* value) {
  TVMFFIAny size = ask("ffi.MapSize", value, NULL), iterator = ask("ffi.MapForwardIterFunctor", value, NULL);
  printf("{");
  for (int64_t i = 0; i < size.v_int64; ++i) {
    /* 0 returns the key, 1 returns the value, 2 advances */
    for (int command = 0; command < 3; ++command) {
      TVMFFIAny arg = int_any(command), item = none_any();
      if (TVMFFIFunctionCall(iterator.v_obj, &arg, 1, &item) != 0) {
        show_error();
        exit(1);
      }
      if (command == 0 && i != 0) printf(", ");
      if (command == 1) printf(": ");
      if (command < 2) show(&item);
      release(&item);
    }
  }
  printf("}");
  release(&iterator);
}

static void show_text(const char* before, const TVMFFIByteArray* text) {
  printf("%s\"%.*s\"", before, (int)text->size, text->data);
}

void show(const TVMFFIAny* value) {
  TVMFFIByteArray chars;
  switch (value->type_index) {
    case kTVMFFINone:
      printf("None");
      break;
    case kTVMFFIInt:
      printf("%" PRId64, value->v_int64);
      break;
    case kTVMFFIBool:
      printf(value->v_int64 ? "True" : "False");
      break;
    case kTVMFFIFloat:
      printf("%g", value->v_float64);
      break;
    case kTVMFFIOpaquePtr:
      printf("handle");
      break;
    case kTVMFFIDataType: {
      TVMFFIAny name = none_any();
      if (TVMFFIDataTypeToString(&value->v_dtype, &name) == 0 && chars_of(&name, &chars))
        printf("%.*s", (int)chars.size, chars.data);
      release(&name);
      break;
    }
    case kTVMFFIDevice:
      printf(value->v_device.device_type == kDLCPU ? "cpu:%d" : "device:%d", value->v_device.device_id);
      break;
    case kTVMFFIRawStr:
    case kTVMFFISmallStr:
    case kTVMFFIStr:
      chars_of(value, &chars);
      show_text("", &chars);
      break;
    case kTVMFFIByteArrayPtr:
    case kTVMFFISmallBytes:
    case kTVMFFIBytes:
      chars_of(value, &chars);
      show_text("b", &chars);
      break;
    case kTVMFFIShape: {
      const TVMFFIShapeCell* shape = cell(value);
      printf("Shape(");
      for (size_t i = 0; i < shape->size; ++i) printf(i == 0 ? "%" PRId64 : ", %" PRId64, shape->data[i]);
      printf(")");
      break;
    }
    case kTVMFFITensor:
      show_tensor(cell(value));
      break;
    case kTVMFFIDLTensorPtr:
      show_tensor(value->v_ptr);
      break;
    case kTVMFFIArray:
      show_array(value);
      break;
    case kTVMFFIMap:
      show_map(value);
      break;
    case kTVMFFIFunction:
      printf("Function");
      break;
    case kTVMFFIModule:
      printf("Module");
      break;
    default:
      printf("type index %d", value->type_index);
  }
}

void show_error(void) {
  TVMFFIObjectHandle error = NULL;
  TVMFFIErrorMoveFromRaised(&error);
  if (error == NULL) {
    printf("an error without an object");
    return;
  }
  const TVMFFIErrorCell* parts = (const void*)((char*)error + sizeof(TVMFFIObject));
  printf("%.*s: %.*s", (int)parts->kind.size, parts->kind.data, (int)parts->message.size, parts->message.data);
  TVMFFIObjectDecRef(error);
}
