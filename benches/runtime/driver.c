// The cost of a runtime's C functions: `driver LIBRARY FOLDER COPIES BATCHES [OPERATION]`.
//
// Opens the runtime's library, and prints a line for each operation: its name, a tab, and the nanoseconds in the
// fastest of all batches. Opening the library and the first use of its type table happen once in a process. With
// OPERATION it runs that one alone, for a profile. FOLDER has COPIES libraries of `library.c`: `0.so` and so on. Each
// is loaded for the first time once. The runtime's library is opened globally, since the libraries that it loads look
// for its symbols.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <tvm/ffi/c_api.h>
#include <tvm/ffi/extra/c_env_api.h>

#define FUNCTIONS(X)                                                                                                  \
  X(ObjectIncRef) X(ObjectDecRef) X(ObjectCreateOpaque) X(TypeKeyToIndex) X(FunctionCreate) X(FunctionGetGlobal)      \
  X(AnyViewToOwnedAny) X(FunctionCall) X(ErrorMoveFromRaised) X(ErrorSetRaised) X(ErrorSetRaisedFromCStr)             \
  X(ErrorCreate) X(TensorFromDLPack) X(TensorToDLPack) X(TensorFromDLPackVersioned) X(TensorToDLPackVersioned)        \
  X(TensorCreateUnsafeView) X(StringFromByteArray) X(BytesFromByteArray) X(DataTypeFromString) X(DataTypeToString)    \
  X(FunctionSetGlobal) X(GetTypeAttrColumn) X(TypeGetOrAllocIndex) X(GetTypeInfo) X(HandleInitOnce) X(EnvSetStream)   \
  X(EnvGetStream) X(EnvSetDLPackManagedTensorAllocator) X(EnvGetDLPackManagedTensorAllocator) X(EnvTensorAlloc)       \
  X(EnvCheckSignals) X(EnvModLookupFromImports) X(TypeRegisterAttr) X(ErrorCreateWithCauseAndExtraContext)            \
  X(GetCustomAllocator)

#define POINTER(name) static __typeof__(TVMFFI##name)* name;
FUNCTIONS(POINTER)

static void fail(const char* what) {
  fprintf(stderr, "driver: %s failed\n", what);
  exit(1);
}

#define CHECK(call) \
  if ((call) != 0) fail(#call)

static TVMFFIByteArray bytes(const char* text) {
  TVMFFIByteArray array = {text, strlen(text)};
  return array;
}

static const TVMFFIAny kNone = {.type_index = kTVMFFINone};

static TVMFFIAny of_int(int64_t value) {
  TVMFFIAny any = {.type_index = kTVMFFIInt};
  any.v_int64 = value;
  return any;
}

static TVMFFIAny of_object(TVMFFIObjectHandle object) {
  TVMFFIAny any = {.type_index = ((TVMFFIObject*)object)->type_index};
  any.v_obj = object;
  return any;
}

static TVMFFIAny of_text(const char* text) {
  TVMFFIByteArray array = bytes(text);
  TVMFFIAny any = kNone;
  CHECK(StringFromByteArray(&array, &any));
  return any;
}

// A view of a C string. Callees copy it.
static TVMFFIAny of_c_text(const char* text) {
  TVMFFIAny any = {.type_index = kTVMFFIRawStr};
  any.v_c_str = text;
  return any;
}

static void release(TVMFFIAny any) {
  if (any.type_index >= kTVMFFIStaticObjectBegin) ObjectDecRef(any.v_obj);
}

static TVMFFIObjectHandle global(const char* name) {
  TVMFFIByteArray array = bytes(name);
  TVMFFIObjectHandle function = NULL;
  CHECK(FunctionGetGlobal(&array, &function));
  if (!function) fail(name);
  return function;
}

static TVMFFIAny call(TVMFFIObjectHandle function, TVMFFIAny* args, int num_args) {
  TVMFFIAny result = kNone;
  CHECK(FunctionCall(function, args, num_args, &result));
  return result;
}

// Objects that operations use.

static int empty(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)self, (void)args, (void)num_args, (void)result;
  return 0;
}

static int failing(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  (void)self, (void)args, (void)num_args, (void)result;
  ErrorSetRaisedFromCStr("ValueError", "the value is wrong");
  return -1;
}

static void no_delete(void* self) { (void)self; }

static int64_t shape[2] = {2, 3}, strides[2] = {3, 1};
static float elements[6];

static DLTensor tensor_fields(void) {
  DLTensor tensor = {.data = elements, .device = {kDLCPU, 0}, .ndim = 2, .dtype = {kDLFloat, 32, 1}};
  tensor.shape = shape;
  tensor.strides = strides;
  return tensor;
}

static void keep_managed(DLManagedTensor* self) { (void)self; }
static void keep_versioned(DLManagedTensorVersioned* self) { (void)self; }
static DLManagedTensor managed;
static DLManagedTensorVersioned versioned;

static int give_versioned(DLTensor* prototype, DLManagedTensorVersioned** out, void* context,
                          void (*set_error)(void*, const char*, const char*)) {
  (void)prototype, (void)context, (void)set_error;
  *out = &versioned;
  return 0;
}

static int init_handle(void** result) {
  static int target;
  *result = &target;
  return 0;
}

static TVMFFIObjectHandle function, failing_function, tensor, error, module, library_context, module_get, module_implements, load;
static TVMFFIObjectHandle array_new, array_get, array_size, list_new, list_append, map_new, map_get, map_count, map_size, dict_new,
    dict_get, dict_set, remove_global, shape_new, string_new, bytes_new, list_get;
static TVMFFIAny array, list, map, string_map, dict, texts[4], long_text, module_path;
static void* stream_place = &stream_place;

// A graph of 10,000 nodes twice, and as JSON: an array of objects, each with an integer that is a node of its own.
enum { kSteps = 5000 };
static TVMFFIObjectHandle to_json, from_json, structural_hash, structural_equal, structural_key;
static TVMFFIAny graph, graph_again, graph_text;

static TVMFFIAny make_graph(void) {
  TVMFFIObjectHandle make = global("ffi.MakeObjectFromPackedArgs"), array_new = global("ffi.Array");
  TVMFFIAny* steps = calloc(kSteps, sizeof *steps);
  TVMFFIAny args[5] = {of_c_text("ffi.reflection.AccessStep"), of_c_text("kind"), of_int(1), of_c_text("key"), kNone};
  for (int i = 0; i < kSteps; i++) {
    args[4] = of_int(i);
    steps[i] = call(make, args, 5);
  }
  TVMFFIAny made = call(array_new, steps, kSteps);
  for (int i = 0; i < kSteps; i++) release(steps[i]);
  free(steps);
  ObjectDecRef(make), ObjectDecRef(array_new);
  return made;
}

// Operations, `n` times each.

#define OP(name) static void name(long n)
#define TIMES for (long i = 0; i < n; i++)

OP(op_call) {
  TVMFFIAny args[2] = {of_object(tensor), of_object(tensor)};
  TIMES {
    TVMFFIAny result = kNone;
    FunctionCall(function, args, 2, &result);
  }
}
OP(op_inc_dec) { TIMES { ObjectIncRef(tensor), ObjectDecRef(tensor); } }
OP(op_function) {
  TIMES {
    TVMFFIObjectHandle made;
    FunctionCreate(&made, empty, no_delete, &made);
    ObjectDecRef(made);
  }
}
OP(op_plain_function) {
  TIMES {
    TVMFFIObjectHandle made;
    FunctionCreate(NULL, empty, NULL, &made);
    ObjectDecRef(made);
  }
}
OP(op_opaque) {
  TIMES {
    TVMFFIObjectHandle made;
    ObjectCreateOpaque(elements, kTVMFFIOpaquePyObject, no_delete, &made);
    ObjectDecRef(made);
  }
}
OP(op_get_global) {
  TVMFFIByteArray name = bytes("ffi.ArrayGetItem");
  TIMES {
    TVMFFIObjectHandle found;
    FunctionGetGlobal(&name, &found);
    ObjectDecRef(found);
  }
}
OP(op_get_missing) {
  TVMFFIByteArray name = bytes("bench.there_is_no_such_function");
  TIMES {
    TVMFFIObjectHandle found;
    FunctionGetGlobal(&name, &found);
  }
}
OP(op_set_global) {
  TVMFFIByteArray name = bytes("bench.replaced");
  TIMES { FunctionSetGlobal(&name, function, 1); }
}
OP(op_new_global) {
  TVMFFIByteArray name = bytes("bench.new");
  TVMFFIAny arg = of_text("bench.new");
  TIMES {
    TVMFFIAny result = kNone;
    FunctionSetGlobal(&name, function, 0);
    FunctionCall(remove_global, &arg, 1, &result);
  }
  release(arg);
}
OP(op_raise_take) {
  TIMES {
    TVMFFIObjectHandle raised;
    ErrorSetRaisedFromCStr("ValueError", "the value is wrong");
    ErrorMoveFromRaised(&raised);
    ObjectDecRef(raised);
  }
}
OP(op_fail_take) {
  TIMES {
    TVMFFIObjectHandle raised;
    TVMFFIAny result = kNone;
    FunctionCall(failing_function, NULL, 0, &result);
    ErrorMoveFromRaised(&raised);
    ObjectDecRef(raised);
  }
}
OP(op_create_error) {
  TVMFFIByteArray kind = bytes("ValueError"), message = bytes("the value is wrong"), trace = bytes("");
  TIMES {
    TVMFFIObjectHandle made;
    ErrorCreate(&kind, &message, &trace, &made);
    ObjectDecRef(made);
  }
}
OP(op_set_take) {
  TIMES {
    TVMFFIObjectHandle raised;
    ErrorSetRaised(error);
    ErrorMoveFromRaised(&raised);
    ObjectDecRef(raised);
  }
}
OP(op_take_none) {
  TIMES {
    TVMFFIObjectHandle raised;
    ErrorMoveFromRaised(&raised);
  }
}
static void string_of(long n, size_t size, __typeof__(TVMFFIStringFromByteArray)* make) {
  static const char text[257] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
  TVMFFIByteArray array = {text, size};
  TIMES {
    TVMFFIAny made;
    make(&array, &made);
    if (made.type_index >= kTVMFFIStaticObjectBegin) ObjectDecRef(made.v_obj);
  }
}
OP(op_string_7) { string_of(n, 7, StringFromByteArray); }
OP(op_string_32) { string_of(n, 32, StringFromByteArray); }
OP(op_string_256) { string_of(n, 256, StringFromByteArray); }
OP(op_bytes_32) { string_of(n, 32, BytesFromByteArray); }
static void own(long n, TVMFFIAny view) {
  TIMES {
    TVMFFIAny owned;
    AnyViewToOwnedAny(&view, &owned);
    if (owned.type_index >= kTVMFFIStaticObjectBegin) ObjectDecRef(owned.v_obj);
  }
}
OP(op_own_int) { own(n, of_int(1)); }
OP(op_own_object) { own(n, of_object(tensor)); }
OP(op_own_c_text) { own(n, of_c_text("0123456789abcdef0123456789abcdef")); }
OP(op_from_dlpack) {
  TIMES {
    TVMFFIObjectHandle made;
    TensorFromDLPack(&managed, 0, 0, &made);
    ObjectDecRef(made);
  }
}
OP(op_from_dlpack_checked) {
  TIMES {
    TVMFFIObjectHandle made;
    TensorFromDLPack(&managed, 4, 1, &made);
    ObjectDecRef(made);
  }
}
OP(op_from_versioned) {
  TIMES {
    TVMFFIObjectHandle made;
    TensorFromDLPackVersioned(&versioned, 0, 0, &made);
    ObjectDecRef(made);
  }
}
OP(op_to_dlpack) {
  TIMES {
    DLManagedTensor* made;
    TensorToDLPack(tensor, &made);
    made->deleter(made);
  }
}
OP(op_to_versioned) {
  TIMES {
    DLManagedTensorVersioned* made;
    TensorToDLPackVersioned(tensor, &made);
    made->deleter(made);
  }
}
OP(op_view) {
  DLTensor prototype = tensor_fields();
  TIMES {
    TVMFFIObjectHandle made;
    TensorCreateUnsafeView(tensor, &prototype, &made);
    ObjectDecRef(made);
  }
}
OP(op_env_alloc) {
  DLTensor prototype = tensor_fields();
  TIMES {
    TVMFFIObjectHandle made;
    EnvTensorAlloc(&prototype, &made);
    ObjectDecRef(made);
  }
}
OP(op_key_to_index) {
  TVMFFIByteArray key = bytes("ffi.Tensor");
  int32_t index;
  TIMES { TypeKeyToIndex(&key, &index); }
}
OP(op_type_index) {
  TVMFFIByteArray key = bytes("bench.Type");
  TIMES { TypeGetOrAllocIndex(&key, -1, 1, 0, 0, kTVMFFIObject); }
}
// A pure function: the compiler doesn't know the argument of each call.
static void infos(long n, int32_t index) {
  TIMES {
    __asm__ volatile("" : "+r"(index));
    const TVMFFITypeInfo* info = GetTypeInfo(index);
    __asm__ volatile("" : : "r"(info));
  }
}
OP(op_type_info) { infos(n, kTVMFFITensor); }
OP(op_dynamic_info) {
  TVMFFIByteArray key = bytes("bench.Type");
  infos(n, TypeGetOrAllocIndex(&key, -1, 1, 0, 0, kTVMFFIObject));
}
OP(op_column) {
  TVMFFIByteArray name = bytes("bench.attribute");
  TIMES { GetTypeAttrColumn(&name); }
}
OP(op_get_stream) { TIMES { EnvGetStream(kDLCUDA, 0); } }
OP(op_set_stream) { TIMES { EnvSetStream(kDLCUDA, 0, stream_place, NULL); } }
OP(op_swap_stream) {
  void* old;
  TIMES { EnvSetStream(kDLCUDA, 1, stream_place, &old); }
}
OP(op_get_allocator) { TIMES { EnvGetDLPackManagedTensorAllocator(); } }
OP(op_custom_allocator) { TIMES { GetCustomAllocator(); } }
OP(op_signals) { TIMES { EnvCheckSignals(); } }
OP(op_init_once) {
  static void* handle;
  TIMES { HandleInitOnce(&handle, init_handle); }
}
OP(op_dtype_from) {
  TVMFFIByteArray name = bytes("float32");
  DLDataType dtype;
  TIMES { DataTypeFromString(&name, &dtype); }
}
OP(op_dtype_from_lanes) {
  TVMFFIByteArray name = bytes("bfloat16x4");
  DLDataType dtype;
  TIMES { DataTypeFromString(&name, &dtype); }
}
static void dtype_text(long n, DLDataType dtype) {
  TIMES {
    TVMFFIAny made;
    DataTypeToString(&dtype, &made);
    if (made.type_index >= kTVMFFIStaticObjectBegin) ObjectDecRef(made.v_obj);
  }
}
OP(op_dtype_to) { dtype_text(n, (DLDataType){kDLFloat, 32, 1}); }
OP(op_dtype_to_lanes) { dtype_text(n, (DLDataType){kDLBfloat, 16, 4}); }

#define CALLS(function, count, ...)       \
  TVMFFIAny args[] = {__VA_ARGS__};       \
  TIMES {                                 \
    TVMFFIAny result = kNone;             \
    FunctionCall(function, args, count, &result); \
    if (result.type_index >= kTVMFFIStaticObjectBegin) ObjectDecRef(result.v_obj); \
  }
OP(op_array_2) { CALLS(array_new, 2, of_int(1), of_object(tensor)) }
OP(op_array_get) { CALLS(array_get, 2, array, of_int(1)) }
OP(op_array_size) { CALLS(array_size, 1, array) }
OP(op_list_2) { CALLS(list_new, 2, of_int(1), of_object(tensor)) }
OP(op_list_get) { CALLS(list_get, 2, list, of_int(1)) }
OP(op_list_append) {
  TVMFFIAny grown = call(list_new, NULL, 0), args[2] = {grown, of_int(1)};
  TIMES {
    TVMFFIAny result = kNone;
    FunctionCall(list_append, args, 2, &result);
    if (i % 1024 == 1023) ObjectDecRef(args[0].v_obj), args[0] = call(list_new, NULL, 0);
  }
  ObjectDecRef(args[0].v_obj);
}
OP(op_map_4) {
  CALLS(map_new, 8, of_int(1), of_int(2), of_int(3), of_int(4), of_int(5), of_int(6), of_int(7), of_int(8))
}
OP(op_map_text_4) {
  CALLS(map_new, 8, texts[0], of_int(2), texts[1], of_int(4), texts[2], of_int(6), texts[3], of_int(8))
}
OP(op_map_get) { CALLS(map_get, 2, map, of_int(5)) }
OP(op_map_get_text) { CALLS(map_get, 2, string_map, texts[2]) }
OP(op_map_count) { CALLS(map_count, 2, map, of_int(6)) }
OP(op_map_size) { CALLS(map_size, 1, map) }
OP(op_dict_4) {
  CALLS(dict_new, 8, of_int(1), of_int(2), of_int(3), of_int(4), of_int(5), of_int(6), of_int(7), of_int(8))
}
OP(op_dict_get) { CALLS(dict_get, 2, dict, of_int(5)) }
OP(op_dict_set) { CALLS(dict_set, 3, dict, of_int(5), of_int(7)) }
OP(op_shape) { CALLS(shape_new, 3, of_int(2), of_int(3), of_int(4)) }
OP(op_string_call) { CALLS(string_new, 1, of_c_text("0123456789abcdef")) }
OP(op_bytes_call) { CALLS(bytes_new, 1, long_text) }
OP(op_load) { CALLS(load, 1, module_path) }
OP(op_load_again) {
  TVMFFIAny held = call(load, &module_path, 1);
  {
    CALLS(load, 1, module_path)
  }
  release(held);
}
OP(op_module_get) { CALLS(module_get, 3, of_object(module), of_c_text("answer"), of_int(0)) }
OP(op_module_get_text) {
  TVMFFIAny name = of_text("answer");
  CALLS(module_get, 3, of_object(module), name, of_int(1))
}
OP(op_module_missing) { CALLS(module_get, 3, of_object(module), of_c_text("no_such_function"), of_int(0)) }
OP(op_module_implements) { CALLS(module_implements, 3, of_object(module), of_c_text("answer"), of_int(0)) }
OP(op_lookup) {
  TVMFFIObjectHandle found;
  TIMES { EnvModLookupFromImports(library_context, "ffi.ArrayGetItem", &found); }
}

OP(op_to_json) {
  TVMFFIAny args[2] = {graph, kNone};
  for (long i = 0; i < n; i++) release(call(to_json, args, 2));
}

OP(op_from_json) {
  for (long i = 0; i < n; i++) release(call(from_json, &graph_text, 1));
}

OP(op_structural_hash) {
  TVMFFIAny args[3] = {graph, of_int(0), of_int(0)};
  for (long i = 0; i < n; i++) call(structural_hash, args, 3);
}

OP(op_structural_equal) {
  TVMFFIAny args[4] = {graph, graph_again, of_int(0), of_int(0)};
  for (long i = 0; i < n; i++) call(structural_equal, args, 4);
}

OP(op_structural_key) {
  TVMFFIAny text = of_c_text("a key of more than seven bytes");
  for (long i = 0; i < n; i++) release(call(structural_key, &text, 1));
}

static const struct {
  const char* name;
  void (*run)(long);
} kOperations[] = {
    {"call a function with two tensors", op_call},
    {"reference up and down", op_inc_dec},
    {"function with a deleter, create and drop", op_function},
    {"function without one, create and drop", op_plain_function},
    {"opaque object, create and drop", op_opaque},
    {"get a global function", op_get_global},
    {"get one that is missing", op_get_missing},
    {"replace a global function", op_set_global},
    {"register a global function and remove it", op_new_global},
    {"raise an error and take it", op_raise_take},
    {"call a failing function, take the error", op_fail_take},
    {"error, create and drop", op_create_error},
    {"put an error into the slot and take it", op_set_take},
    {"take from the empty slot", op_take_none},
    {"string of 7 bytes", op_string_7},
    {"string of 32 bytes, create and drop", op_string_32},
    {"string of 256 bytes, create and drop", op_string_256},
    {"bytes, 32, create and drop", op_bytes_32},
    {"view to owned: int", op_own_int},
    {"view to owned: object", op_own_object},
    {"view to owned: C string of 32 bytes", op_own_c_text},
    {"from DLPack and drop", op_from_dlpack},
    {"from DLPack and drop, aligned and contiguous", op_from_dlpack_checked},
    {"from DLPack with a version and drop", op_from_versioned},
    {"to DLPack and delete", op_to_dlpack},
    {"to DLPack with a version and delete", op_to_versioned},
    {"view of a tensor, create and drop", op_view},
    {"tensor from the environment's allocator, and drop", op_env_alloc},
    {"type key to index", op_key_to_index},
    {"type index of a registered type", op_type_index},
    {"type info, static", op_type_info},
    {"type info, dynamic", op_dynamic_info},
    {"attribute column", op_column},
    {"stream, get", op_get_stream},
    {"stream, set", op_set_stream},
    {"stream, set and get the old one", op_swap_stream},
    {"tensor allocator, get", op_get_allocator},
    {"object allocator, get", op_custom_allocator},
    {"check signals", op_signals},
    {"handle that is there already", op_init_once},
    {"dtype from float32", op_dtype_from},
    {"dtype from bfloat16x4", op_dtype_from_lanes},
    {"dtype to float32", op_dtype_to},
    {"dtype to bfloat16x4", op_dtype_to_lanes},
    {"ffi.Array of 2", op_array_2},
    {"ffi.ArrayGetItem", op_array_get},
    {"ffi.ArraySize", op_array_size},
    {"ffi.List of 2", op_list_2},
    {"ffi.ListGetItem", op_list_get},
    {"ffi.ListAppend", op_list_append},
    {"ffi.Map of 4 ints", op_map_4},
    {"ffi.Map of 4 strings", op_map_text_4},
    {"ffi.MapGetItem, int", op_map_get},
    {"ffi.MapGetItem, string", op_map_get_text},
    {"ffi.MapCount, missing", op_map_count},
    {"ffi.MapSize", op_map_size},
    {"ffi.Dict of 4 ints", op_dict_4},
    {"ffi.DictGetItem, int", op_dict_get},
    {"ffi.DictSetItem, int", op_dict_set},
    {"ffi.Shape of 3", op_shape},
    {"ffi.String of a C string", op_string_call},
    {"ffi.Bytes", op_bytes_call},
    {"load a module and drop it", op_load},
    {"load a module that is loaded", op_load_again},
    {"module, get a function", op_module_get},
    {"module, get a function, imports too", op_module_get_text},
    {"module, get a function that is missing", op_module_missing},
    {"module, implements a function", op_module_implements},
    {"look a function up from imports", op_lookup},
    {"JSON of a graph of 10,000 nodes", op_to_json},
    {"graph of 10,000 nodes from JSON", op_from_json},
    {"structural hash of 10,000 nodes", op_structural_hash},
    {"structural equality of 10,000 nodes", op_structural_equal},
    {"ffi.StructuralKey of a string, create and drop", op_structural_key},
};

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1e9 + time.tv_nsec;
}

static double time_of(void (*run)(long), long n) {
  double start = now();
  run(n);
  return now() - start;
}

// Nanoseconds of one operation, in the fastest batch. The program ends if the operation leaves an error.
static double quickest(const char* name, void (*run)(long), int batches) {
  long n = 1;
  TVMFFIObjectHandle raised = NULL;
  run(1);
  ErrorMoveFromRaised(&raised);
  if (raised) fail(name);
  double time = time_of(run, n);
  while (time < 5e4 && n < 1L << 20) time = time_of(run, n *= 2);
  double best = time / n;
  for (int i = 0; i < batches; i++) {
    time = time_of(run, n) / n;
    if (time < best) best = time;
  }
  return best;
}

// The first loads of libraries that weren't opened before. They stay loaded, as a program's do. A program that closes
// one before it opens the next would reuse the first one's memory.
static double first_load(const char* folder, int copies) {
  double best = 1e18;
  TVMFFIAny* all = calloc(copies, sizeof *all);
  for (int i = 0; i < copies; i++) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%d.so", folder, i);
    TVMFFIAny arg = of_text(path);
    double start = now();
    all[i] = call(load, &arg, 1);
    double time = now() - start;
    if (time < best) best = time;
    release(arg);
  }
  for (int i = 0; i < copies; i++) release(all[i]);
  free(all);
  return best;
}

static void prepare(const char* folder) {
  managed = (DLManagedTensor){.dl_tensor = tensor_fields(), .deleter = keep_managed};
  versioned = (DLManagedTensorVersioned){.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION},
                                         .deleter = keep_versioned, .dl_tensor = tensor_fields()};
  CHECK(FunctionCreate(NULL, empty, NULL, &function));
  CHECK(FunctionCreate(NULL, failing, NULL, &failing_function));
  CHECK(TensorFromDLPack(&managed, 0, 0, &tensor));
  CHECK(EnvSetDLPackManagedTensorAllocator((DLPackManagedTensorAllocator)give_versioned, 0, NULL));
  TVMFFIByteArray kind = bytes("ValueError"), message = bytes("the value is wrong"), trace = bytes("");
  CHECK(ErrorCreate(&kind, &message, &trace, &error));
  TVMFFIByteArray attribute = bytes("bench.attribute"), type = bytes("bench.Type");
  TVMFFIAny one = of_int(1);
  CHECK(TypeRegisterAttr(TypeGetOrAllocIndex(&type, -1, 1, 0, 0, kTVMFFIObject), &attribute, &one));
  CHECK(EnvSetStream(kDLCUDA, 0, stream_place, NULL));
  CHECK(EnvSetStream(kDLCUDA, 1, stream_place, NULL));

#define GLOBAL(place, name) place = global(name)
  GLOBAL(array_new, "ffi.Array"), GLOBAL(array_get, "ffi.ArrayGetItem"), GLOBAL(array_size, "ffi.ArraySize");
  GLOBAL(list_new, "ffi.List"), GLOBAL(list_get, "ffi.ListGetItem"), GLOBAL(list_append, "ffi.ListAppend");
  GLOBAL(map_new, "ffi.Map"), GLOBAL(map_get, "ffi.MapGetItem"), GLOBAL(map_count, "ffi.MapCount");
  GLOBAL(map_size, "ffi.MapSize"), GLOBAL(dict_new, "ffi.Dict"), GLOBAL(dict_get, "ffi.DictGetItem");
  GLOBAL(remove_global, "ffi.FunctionRemoveGlobal"), GLOBAL(dict_set, "ffi.DictSetItem"), GLOBAL(shape_new, "ffi.Shape"), GLOBAL(string_new, "ffi.String");
  GLOBAL(bytes_new, "ffi.Bytes"), GLOBAL(module_get, "ffi.ModuleGetFunction");
  GLOBAL(module_implements, "ffi.ModuleImplementsFunction"), GLOBAL(load, "ffi.ModuleLoadFromFile");
  GLOBAL(to_json, "ffi.ToJSONGraphString"), GLOBAL(from_json, "ffi.FromJSONGraphString");
  GLOBAL(structural_hash, "ffi.StructuralHash"), GLOBAL(structural_equal, "ffi.StructuralEqual");
  GLOBAL(structural_key, "ffi.StructuralKey");
  graph = make_graph(), graph_again = make_graph();
  TVMFFIAny graph_args[2] = {graph, kNone};
  graph_text = call(to_json, graph_args, 2);

  TVMFFIAny pairs[8];
  for (int i = 0; i < 8; i++) pairs[i] = of_int(i + 1);
  array = call(array_new, pairs, 4), list = call(list_new, pairs, 4);
  map = call(map_new, pairs, 8), dict = call(dict_new, pairs, 8);
  const char* names[4] = {"alpha", "beta of eleven", "gamma", "delta"};
  for (int i = 0; i < 4; i++) texts[i] = pairs[2 * i] = of_text(names[i]);
  string_map = call(map_new, pairs, 8);
  long_text = of_text("0123456789abcdef");
  TVMFFIByteArray long_bytes = bytes("0123456789abcdef");
  release(long_text);
  CHECK(BytesFromByteArray(&long_bytes, &long_text));

  char path[4096];
  snprintf(path, sizeof path, "%s/library.so", folder);
  module_path = of_text(path);
  snprintf(path, sizeof path, "%s/used.so", folder);
  TVMFFIAny arg = of_text(path);
  module = call(load, &arg, 1).v_obj;
  release(arg);
  void** variable = dlsym(dlopen(path, RTLD_NOW | RTLD_LOCAL), "__tvm_ffi__library_ctx");
  if (!variable || !(library_context = *variable)) fail("the library's context");
}

int main(int argc, char** argv) {
  if (argc != 5 && argc != 6) return fprintf(stderr, "driver LIBRARY FOLDER COPIES BATCHES [OPERATION]\n"), 2;
  double start = now();
  start = now();  // The first call of `now` finds the clock.
  void* library = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
  double opened = now() - start;
  if (!library) return fprintf(stderr, "driver: %s\n", dlerror()), 1;
#define FIND(name) \
  if (!(name = (__typeof__(name))dlsym(library, "TVMFFI" #name))) fail("TVMFFI" #name);
  FUNCTIONS(FIND)
  TVMFFIByteArray key = bytes("ffi.Tensor");
  int32_t index;
  start = now();
  CHECK(TypeKeyToIndex(&key, &index));
  double first_use = now() - start;
  printf("open the library in a new process\t%.3f\n", opened);
  printf("first use of the type table\t%.3f\n", first_use);
  prepare(argv[2]);
  printf("load a module for the first time\t%.3f\n", first_load(argv[2], atoi(argv[3])));
  for (size_t i = 0; i < sizeof kOperations / sizeof *kOperations; i++) {
    if (argc == 6 && strcmp(argv[5], kOperations[i].name)) continue;
    printf("%s\t%.3f\n", kOperations[i].name, quickest(kOperations[i].name, kOperations[i].run, atoi(argv[4])));
  }
  return 0;
}
