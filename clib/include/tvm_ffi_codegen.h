/*! tvm-ffi-codegen for C and C++: checked functions of the TVM FFI from a compiler's kernels.
 *
 * The library exports TVM FFI functions: `__tvm_ffi_tfc_<name>`, of type `TVMFFISafeCallType`. Their documentation is
 * in `clib/src`, and `tvm-ffi-codegen inspect` prints it for each library. The functions below fill in their
 * arguments. Each returns 0, or -1 with an error raised. Get the error, with its parts as JSON, with `tfc_take_error`.
 *
 * You own the objects that a function returns: release them with `TVMFFIObjectDecRef`. Read `TfcBytes` with `tfc_view`.
 *
 * Link `libtvm_ffi_codegen.a` or `.so`. By default they contain a TVM FFI runtime. Built with the feature `external`,
 * they use the `libtvm_ffi` of the process.
 */
#ifndef TVM_FFI_CODEGEN_H_
#define TVM_FFI_CODEGEN_H_

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <tvm/ffi/c_api.h>

#ifdef __cplusplus
extern "C" {
#endif

/*! A signature, a kernel, a program, a cache, or a function. */
typedef TVMFFIObjectHandle TfcObject;
/*! A string or bytes that a function returned. Read it with `tfc_view`, and release it with `tfc_release`. */
typedef TVMFFIAny TfcBytes;

#define TFC_FUNCTION(name) \
  int32_t __tvm_ffi_tfc_##name(void* handle, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result)

TFC_FUNCTION(build);
TFC_FUNCTION(llvm_version);
TFC_FUNCTION(signature);
TFC_FUNCTION(signature_json);
TFC_FUNCTION(cuda_compile);
TFC_FUNCTION(hip_compile);
TFC_FUNCTION(kernel_check_only);
TFC_FUNCTION(kernel_symbol);
TFC_FUNCTION(kernel_object);
TFC_FUNCTION(kernel_llvm_ir);
TFC_FUNCTION(kernel_bitcode);
TFC_FUNCTION(kernel_address);
TFC_FUNCTION(kernel_launch);
TFC_FUNCTION(kernel_launch_on_cpu);
TFC_FUNCTION(kernel_prepare);
TFC_FUNCTION(kernel_host);
TFC_FUNCTION(kernel_with_symbols);
TFC_FUNCTION(kernel_prototype);
TFC_FUNCTION(kernel_header);
TFC_FUNCTION(compile);
TFC_FUNCTION(program);
TFC_FUNCTION(program_text);
TFC_FUNCTION(program_json);
TFC_FUNCTION(program_compile);
TFC_FUNCTION(dispatch_table);
TFC_FUNCTION(object);
TFC_FUNCTION(llvm_ir);
TFC_FUNCTION(link);
TFC_FUNCTION(archive);
TFC_FUNCTION(cache);
TFC_FUNCTION(cache_find);
TFC_FUNCTION(cached_library);
TFC_FUNCTION(inspect);
TFC_FUNCTION(inspect_bytes);
TFC_FUNCTION(explain);
TFC_FUNCTION(install_cpu_allocator);
TFC_FUNCTION(register_globals);
TFC_FUNCTION(set_launch_hook);
TFC_FUNCTION(explain_missing_allocator);
TFC_FUNCTION(rearranged);

#undef TFC_FUNCTION

/*! No value. */
static inline TVMFFIAny tfc_none(void) {
  TVMFFIAny any;
  memset(&any, 0, sizeof any);
  any.type_index = kTVMFFINone;
  return any;
}

/*! A NUL-terminated string, or None for NULL. The caller keeps ownership. */
static inline TVMFFIAny tfc_text(const char* text) {
  TVMFFIAny any = tfc_none();
  if (text != NULL) {
    any.type_index = kTVMFFIRawStr;
    any.v_c_str = text;
  }
  return any;
}

/*! An integer. */
static inline TVMFFIAny tfc_int(int64_t value) {
  TVMFFIAny any = tfc_none();
  any.type_index = kTVMFFIInt;
  any.v_int64 = value;
  return any;
}

/*! An object, or None for NULL. The caller keeps ownership. */
static inline TVMFFIAny tfc_object_any(TfcObject object) {
  TVMFFIAny any = tfc_none();
  if (object != NULL) {
    /* an object's header contains its type index */
    any.type_index = ((const TVMFFIObject*)object)->type_index;
    any.v_obj = (TVMFFIObject*)object;
  }
  return any;
}

/*! The characters of a string, or bytes; valid as long as the value. */
static inline TVMFFIByteArray tfc_view(const TfcBytes* bytes) {
  TVMFFIByteArray view = {NULL, 0};
  if (bytes->type_index == kTVMFFISmallStr || bytes->type_index == kTVMFFISmallBytes) {
    view.data = bytes->v_bytes;
    view.size = bytes->small_str_len;
  } else if (bytes->type_index == kTVMFFIStr || bytes->type_index == kTVMFFIBytes) {
    memcpy(&view, (const char*)bytes->v_obj + sizeof(TVMFFIObject), sizeof view);
  }
  return view;
}

/*! Releases a value. */
static inline void tfc_release(TVMFFIAny* any) {
  if (any->type_index >= kTVMFFIStaticObjectBegin) TVMFFIObjectDecRef((TVMFFIObjectHandle)any->v_obj);
  *any = tfc_none();
}

/*! Calls a global function of the runtime by its name. */
static inline int32_t tfc_call_global(const char* name, TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  TVMFFIByteArray bytes = {name, strlen(name)};
  TVMFFIObjectHandle function = NULL;
  int32_t code = TVMFFIFunctionGetGlobal(&bytes, &function);
  if (code == 0) {
    code = TVMFFIFunctionCall(function, args, num_args, result);
    TVMFFIObjectDecRef(function);
  }
  return code;
}

/*! An array of values. The caller releases it. */
static inline int32_t tfc_array(TVMFFIAny* items, int32_t num_items, TVMFFIAny* array) {
  *array = tfc_none();
  return tfc_call_global("ffi.Array", items, num_items, array);
}

/*! An array of copies of byte strings, 64 at most. The caller releases it. */
static inline int32_t tfc_bytes_array(const TVMFFIByteArray* parts, int32_t num_parts, TVMFFIAny* array) {
  enum { kMost = 64 };
  TVMFFIAny items[kMost];
  int32_t made = 0, code = num_parts <= kMost ? 0 : -1;
  if (code != 0) TVMFFIErrorSetRaisedFromCStr("ValueError", "expected at most 64 objects: put them into an archive");
  for (; code == 0 && made < num_parts; ++made) {
    items[made] = tfc_none();
    code = TVMFFIBytesFromByteArray(&parts[made], &items[made]);
  }
  *array = tfc_none();
  if (code == 0) code = tfc_array(items, num_parts, array);
  for (int32_t i = 0; i < made; ++i) tfc_release(&items[i]);
  return code;
}

/*! Takes the raised error: its message, and its parts as a JSON object (`kind`, `message`, `errors`, `symbols`,
 * `target`), or None for an error of another origin. The caller releases both. */
static inline void tfc_take_error(TfcBytes* message, TfcBytes* json) {
  TVMFFIObjectHandle error = NULL;
  TVMFFIErrorCell cell;
  *message = *json = tfc_none();
  TVMFFIErrorMoveFromRaised(&error);
  if (error == NULL) return;
  memcpy(&cell, (const char*)error + sizeof(TVMFFIObject), sizeof cell);
  (void)TVMFFIStringFromByteArray(&cell.message, message);
  if (cell.extra_context != NULL) {
    TVMFFIObjectIncRef(cell.extra_context);
    *json = tfc_object_any(cell.extra_context);
  }
  TVMFFIObjectDecRef(error);
}

/*! Parses a signature. `places` is NULL, or the lines of your source that the function's errors show: a JSON list of
 * objects with `part` (`signature`, `result`, a parameter's name, or `where[0]`), `file`, `line` and `function`. */
static inline int32_t tfc_signature(const char* text, const char* places, TfcObject* signature) {
  TVMFFIAny args[2] = {tfc_text(text), tfc_text(places == NULL ? "" : places)}, result = tfc_none();
  int32_t code = __tvm_ffi_tfc_signature(NULL, args, 2, &result);
  *signature = code == 0 ? (TfcObject)result.v_obj : NULL;
  return code;
}

/*! The kernel that is the C function with this symbol. `convention` is `flat`, `dltensor`, `memref` or `packed`.
 * `returns` is `nothing`, `status` or `value`. `parameters` are the C parameters, such as `x, int32(n)`. For each of
 * the three, NULL means what the signature implies. */
static inline int32_t tfc_kernel_symbol(const char* symbol, const char* convention, const char* returns,
                                        const char* parameters, TfcObject* kernel) {
  TVMFFIAny args[4] = {tfc_text(symbol), tfc_text(convention), tfc_text(returns), tfc_text(parameters)};
  TVMFFIAny result = tfc_none();
  int32_t code = __tvm_ffi_tfc_kernel_symbol(NULL, args, 4, &result);
  *kernel = code == 0 ? (TfcObject)result.v_obj : NULL;
  return code;
}

/*! The kernel at an address of this process. `owner` is an object that owns the code, or NULL. */
static inline int32_t tfc_kernel_address(const void* address, TfcObject owner, const char* convention,
                                         const char* returns, const char* parameters, TfcObject* kernel) {
  TVMFFIAny args[5] = {tfc_int((int64_t)(intptr_t)address), tfc_object_any(owner), tfc_text(convention),
                       tfc_text(returns), tfc_text(parameters)};
  TVMFFIAny result = tfc_none();
  int32_t code = __tvm_ffi_tfc_kernel_address(NULL, args, 5, &result);
  *kernel = code == 0 ? (TfcObject)result.v_obj : NULL;
  return code;
}

/*! An image that launches of host text may use: a cubin, fatbin, PTX, or AMD code objects. */
typedef struct {
  const char* name;
  TVMFFIByteArray bytes;
} TfcImage;

/*! The arrays of the names and of the bytes of images, 64 at most. The caller releases both. */
static inline int32_t tfc_image_arrays(const TfcImage* images, int32_t num_images, TVMFFIAny arrays[2]) {
  enum { kMost = 64 };
  TVMFFIAny names[kMost];
  TVMFFIByteArray bytes[kMost];
  arrays[0] = arrays[1] = tfc_none();
  if (num_images > kMost) {
    TVMFFIErrorSetRaisedFromCStr("ValueError", "expected at most 64 images");
    return -1;
  }
  for (int32_t i = 0; i < num_images; ++i) {
    names[i] = tfc_text(images[i].name);
    bytes[i] = images[i].bytes;
  }
  int32_t code = tfc_array(names, num_images, &arrays[0]);
  return code == 0 ? tfc_bytes_array(bytes, num_images, &arrays[1]) : code;
}

/*! Compiles CUDA C++ with NVRTC, whose file is `nvrtc`; NULL for the machine's. `options` is JSON: `archs`
 * (`["sm_90a"]`), `kernels`, `options`, `headers`, `file`. `compiled` is an array of the images, an array of bytes, and
 * of JSON: `entries` and `log`. */
static inline int32_t tfc_cuda_compile(const char* nvrtc, const char* source, const char* options,
                                       TVMFFIAny* compiled) {
  TVMFFIAny args[3] = {tfc_text(nvrtc), tfc_text(source), tfc_text(options)};
  *compiled = tfc_none();
  return __tvm_ffi_tfc_cuda_compile(NULL, args, 3, compiled);
}

/*! Compiles HIP C++ with hiprtc, whose file is `hiprtc`; NULL for the machine's. `archs` are `["gfx942"]`. All else is
 * as in `tfc_cuda_compile`. */
static inline int32_t tfc_hip_compile(const char* hiprtc, const char* source, const char* options,
                                      TVMFFIAny* compiled) {
  TVMFFIAny args[3] = {tfc_text(hiprtc), tfc_text(source), tfc_text(options)};
  *compiled = tfc_none();
  return __tvm_ffi_tfc_hip_compile(NULL, args, 3, compiled);
}

/*! The kernel that is a body as host text: a block in braces. `objects` are objects and archives with the functions
 * that it calls by their symbols. The error lists all mistakes of the text's grammar with their places; names, types
 * and ownership are checked when the kernel is compiled. */
static inline int32_t tfc_kernel_host(const char* text, const TfcImage* images, int32_t num_images,
                                      const TVMFFIByteArray* objects, int32_t num_objects, TfcObject* kernel) {
  TVMFFIAny args[4] = {tfc_text(text), tfc_none(), tfc_none(), tfc_none()}, result = tfc_none();
  int32_t code = tfc_image_arrays(images, num_images, &args[1]);
  if (code == 0) code = tfc_bytes_array(objects, num_objects, &args[3]);
  if (code == 0) code = __tvm_ffi_tfc_kernel_host(NULL, args, 4, &result);
  for (int32_t i = 1; i < 4; ++i) tfc_release(&args[i]);
  *kernel = code == 0 ? (TfcObject)result.v_obj : NULL;
  return code;
}

/*! The prototype of a kernel as JSON: `text`, `params` and `returns`. */
static inline int32_t tfc_kernel_prototype(TfcObject signature, TfcObject kernel, TfcBytes* json) {
  TVMFFIAny args[2] = {tfc_object_any(signature), tfc_object_any(kernel)};
  *json = tfc_none();
  return __tvm_ffi_tfc_kernel_prototype(NULL, args, 2, json);
}

/*! Compiles a function in this process. The kernel's symbol is looked up in the objects and archives, then in the
 * process. `backend` and `opt_level` are names, or NULL. */
static inline int32_t tfc_compile(TfcObject signature, TfcObject kernel, const TVMFFIByteArray* objects,
                                  int32_t num_objects, const char* backend, const char* opt_level,
                                  TVMFFIObjectHandle* function) {
  TVMFFIAny args[5] = {tfc_object_any(signature), tfc_object_any(kernel), tfc_none(), tfc_text(backend),
                       tfc_text(opt_level)};
  TVMFFIAny result = tfc_none();
  int32_t code = tfc_bytes_array(objects, num_objects, &args[2]);
  if (code == 0) code = __tvm_ffi_tfc_compile(NULL, args, 5, &result);
  tfc_release(&args[2]);
  *function = code == 0 ? (TVMFFIObjectHandle)result.v_obj : NULL;
  return code;
}

/*! A function of a library. */
typedef struct {
  TfcObject signature;
  TfcObject kernel;
  /*! The documentation, or NULL. */
  const char* doc;
} TfcFunction;

/*! Parses a file of host text: a program with several functions. */
static inline int32_t tfc_program(const char* text, const TfcImage* images, int32_t num_images, TfcObject* program) {
  TVMFFIAny args[3] = {tfc_text(text), tfc_none(), tfc_none()}, result = tfc_none();
  int32_t code = tfc_image_arrays(images, num_images, &args[1]);
  if (code == 0) code = __tvm_ffi_tfc_program(NULL, args, 3, &result);
  for (int32_t i = 1; i < 3; ++i) tfc_release(&args[i]);
  *program = code == 0 ? (TfcObject)result.v_obj : NULL;
  return code;
}

/*! The text of a program in its canonical form, with its comments. */
static inline int32_t tfc_program_text(TfcObject program, TfcBytes* text) {
  TVMFFIAny args[1] = {tfc_object_any(program)};
  *text = tfc_none();
  return __tvm_ffi_tfc_program_text(NULL, args, 1, text);
}

/*! The parts of a program as JSON: `functions` and `c_functions` (`text`, `doc`, `locations`), and `globals`. */
static inline int32_t tfc_program_json(TfcObject program, TfcBytes* json) {
  TVMFFIAny args[1] = {tfc_object_any(program)};
  *json = tfc_none();
  return __tvm_ffi_tfc_program_json(NULL, args, 1, json);
}

/*! Compiles the functions of a program together in this process: an array of them, in order. The caller releases it.
 * The symbols of kernels and callees are looked up in the program, then in the objects and archives, then in the
 * process. */
static inline int32_t tfc_program_compile(TfcObject program, const TVMFFIByteArray* objects, int32_t num_objects,
                                          const char* backend, const char* opt_level, TVMFFIAny* functions) {
  TVMFFIAny args[4] = {tfc_object_any(program), tfc_none(), tfc_text(backend), tfc_text(opt_level)};
  *functions = tfc_none();
  int32_t code = tfc_bytes_array(objects, num_objects, &args[1]);
  if (code == 0) code = __tvm_ffi_tfc_program_compile(NULL, args, 4, functions);
  tfc_release(&args[1]);
  return code;
}

/*! Makes an object of functions. `options` is NULL, or a JSON object. It may have `target` (a triple), `backend`,
 * `opt_level`, `cpu` and a list `features` (the minimum CPU, in the backend's names), `system_lib` (the prefix of a
 * system library), `carries_modules` (true if the program also has modules of the system library), and `globals`: a
 * list of pairs `["f", "model.f"]` of a function and the global name that it is registered under. */
static inline int32_t tfc_object(const TfcFunction* functions, int32_t num_functions, const char* options,
                                 TfcBytes* object) {
  enum { kMost = 256 };
  TVMFFIAny arrays[kMost], args[2];
  int32_t made = 0, code = num_functions <= kMost ? 0 : -1;
  if (code != 0) TVMFFIErrorSetRaisedFromCStr("ValueError", "expected at most 256 functions: make several objects");
  for (; code == 0 && made < num_functions; ++made) {
    TVMFFIAny parts[3] = {tfc_object_any(functions[made].signature), tfc_object_any(functions[made].kernel),
                          tfc_text(functions[made].doc)};
    code = tfc_array(parts, 3, &arrays[made]);
  }
  args[0] = tfc_none();
  args[1] = tfc_text(options == NULL ? "" : options);
  *object = tfc_none();
  if (code == 0) code = tfc_array(arrays, num_functions, &args[0]);
  if (code == 0) code = __tvm_ffi_tfc_object(NULL, args, 2, object);
  tfc_release(&args[0]);
  for (int32_t i = 0; i < made; ++i) tfc_release(&arrays[i]);
  return code;
}

/*! Makes an object of the functions of a program. `options` are those of `tfc_object`. */
static inline int32_t tfc_program_object(TfcObject program, const char* options, TfcBytes* object) {
  TVMFFIAny item = tfc_object_any(program), entry = tfc_none(), args[2] = {tfc_none(), tfc_none()};
  *object = tfc_none();
  args[1] = tfc_text(options == NULL ? "" : options);
  int32_t code = tfc_array(&item, 1, &entry);
  if (code == 0) code = tfc_array(&entry, 1, &args[0]);
  if (code == 0) code = __tvm_ffi_tfc_object(NULL, args, 2, object);
  tfc_release(&args[0]);
  tfc_release(&entry);
  return code;
}

/*! The item of an array at an index. The caller releases it. */
static inline int32_t tfc_item(TVMFFIAny array, int64_t index, TVMFFIAny* item) {
  TVMFFIAny args[2] = {array, tfc_int(index)};
  *item = tfc_none();
  return tfc_call_global("ffi.ArrayGetItem", args, 2, item);
}

/*! A table of functions by keys: a map of its functions by name, for `tfc_map_function`. The caller releases it.
 *
 * `call` takes the values of the key and then any arguments. It calls the function that the table keeps under the key
 * with the arguments after the key. If there is none, `on_miss` gets all arguments of the call, and returns it.
 * `key_names` names the values. The table keeps at most `max_entries` functions, or all if it is 0.
 * `insert(key, function)`, `remove(key)`, `clear()`, `stats()`, `entries()` and `prewarm(keys)` take keys as arrays
 * (`tfc_array`). A table is never freed while its `on_miss` owns one of these functions. */
static inline int32_t tfc_dispatch_table(TVMFFIObjectHandle on_miss, const char* const* key_names, int32_t num_keys,
                                         int64_t max_entries, const char* name, TVMFFIAny* functions) {
  enum { kMost = 64 };
  TVMFFIAny names[kMost];
  TVMFFIAny args[4] = {tfc_object_any(on_miss), tfc_none(), tfc_none(), tfc_text(name)};
  int32_t code = num_keys <= kMost ? 0 : -1;
  *functions = tfc_none();
  if (code != 0) TVMFFIErrorSetRaisedFromCStr("ValueError", "expected at most 64 key values");
  for (int32_t i = 0; code == 0 && i < num_keys; ++i) names[i] = tfc_text(key_names[i]);
  if (max_entries != 0) args[2] = tfc_int(max_entries);
  if (code == 0) code = tfc_array(names, num_keys, &args[1]);
  if (code == 0) code = __tvm_ffi_tfc_dispatch_table(NULL, args, 4, functions);
  tfc_release(&args[1]);
  return code;
}

/*! The function of a map by its name. The caller releases it. */
static inline int32_t tfc_map_function(TVMFFIAny map, const char* name, TVMFFIObjectHandle* function) {
  TVMFFIAny args[2] = {map, tfc_text(name)}, result = tfc_none();
  int32_t code = tfc_call_global("ffi.MapGetItem", args, 2, &result);
  *function = code == 0 ? (TVMFFIObjectHandle)result.v_obj : NULL;
  return code;
}

/*! Links objects and archives into a shared library at a path. `options` is NULL, or a JSON object. It may have
 * `target` (a triple), `linker` (`wild` or `cc`), `runtime` (the file of a `libtvm_ffi` to link against), and lists:
 * `files` (objects and archives by their paths), `libraries` and `library_folders` (as `-l` and `-L`),
 * `allow_undefined` (symbols), and `args` (further arguments of the linker). */
static inline int32_t tfc_link(const TVMFFIByteArray* objects, int32_t num_objects, const char* path,
                               const char* options) {
  TVMFFIAny args[3] = {tfc_none(), tfc_text(path), tfc_text(options == NULL ? "" : options)}, result = tfc_none();
  int32_t code = tfc_bytes_array(objects, num_objects, &args[0]);
  if (code == 0) code = __tvm_ffi_tfc_link(NULL, args, 3, &result);
  tfc_release(&args[0]);
  return code;
}

#ifdef __cplusplus
}
#endif

#endif /* TVM_FFI_CODEGEN_H_ */
