/* A compiler in C, or C++: makes functions from a kernel's object in this process, and a library.

     main OBJECT LIBRARY PROGRAM
*/
#include <stdio.h>
#include <stdlib.h>
#include <tvm_ffi_codegen.h>

static void expect(int holds, const char* what) {
  if (!holds) {
    TfcBytes message, json;
    tfc_take_error(&message, &json);
    TVMFFIByteArray text = tfc_view(&message);
    fprintf(stderr, "%s: %.*s\n", what, (int)text.size, text.data);
    exit(1);
  }
}

/* Prints the raised error up to a comma or semicolon, and whether its parts contain a word. */
static void print_error(const char* word) {
  TfcBytes message, json;
  tfc_take_error(&message, &json);
  TVMFFIByteArray text = tfc_view(&message), parts = tfc_view(&json);
  size_t len = 0;
  while (len < text.size && strchr(",;\n", text.data[len]) == NULL) ++len;
  int has = 0;
  for (size_t i = 0; i + strlen(word) <= parts.size; ++i) has |= memcmp(parts.data + i, word, strlen(word)) == 0;
  printf("%.*s (%s %s)\n", (int)len, text.data, has ? "with" : "without", word);
  tfc_release(&message);
  tfc_release(&json);
}

static char* read_file(const char* path, size_t* size) {
  FILE* file = fopen(path, "rb");
  char* bytes = (char*)malloc(1 << 20);
  if (file == NULL || bytes == NULL) abort();
  *size = fread(bytes, 1, 1 << 20, file);
  fclose(file);
  return bytes;
}

static DLTensor vector(float* data, int64_t* shape, int64_t* stride) {
  DLTensor tensor;
  memset(&tensor, 0, sizeof tensor);
  tensor.data = data;
  tensor.device.device_type = kDLCPU;
  tensor.ndim = 1;
  tensor.dtype.code = kDLFloat;
  tensor.dtype.bits = 32;
  tensor.dtype.lanes = 1;
  tensor.shape = shape;
  tensor.strides = stride;
  return tensor;
}

static TVMFFIAny tensor_any(DLTensor* tensor) {
  TVMFFIAny any = tfc_none();
  any.type_index = kTVMFFIDLTensorPtr;
  any.v_ptr = tensor;
  return any;
}

/* Calls saxpy on two vectors with n and m elements. */
static int32_t call(TVMFFIObjectHandle function, float* y, int64_t n, int64_t m) {
  float x[4] = {0, 1, 2, 3};
  int64_t stride = 1;
  DLTensor tx = vector(x, &n, &stride), ty = vector(y, &m, &stride);
  TVMFFIAny args[3] = {tfc_none(), tensor_any(&tx), tensor_any(&ty)}, result = tfc_none();
  args[0].type_index = kTVMFFIFloat;
  args[0].v_float64 = 2.0;
  return TVMFFIFunctionCall(function, args, 3, &result);
}

/* A body as text, whose callee lies in the object. */
static void host_kernel(const TVMFFIByteArray* object) {
  const char* text = "{ let y = call symbol c_twice(n) -> int64; return y + 1; }";
  TfcObject signature, kernel;
  TVMFFIObjectHandle function;
  expect(tfc_signature("f(n: int64) -> int64", NULL, &signature) == 0, "signature");
  expect(tfc_kernel_host(text, NULL, 0, object, 1, &kernel) == 0, "host text");
  expect(tfc_compile(signature, kernel, NULL, 0, NULL, NULL, &function) == 0, "compile of host text");
  TVMFFIAny arg = tfc_int(20), result = tfc_none();
  expect(TVMFFIFunctionCall(function, &arg, 1, &result) == 0, "call of host text");
  printf("%d\n", (int)result.v_int64);
  TVMFFIObjectDecRef(function);
  TVMFFIObjectDecRef(kernel);
  expect(tfc_kernel_host("{\n  let y = n +;\n  return y ** 2;\n}", NULL, 0, NULL, 0, &kernel) != 0, "wrong grammar");
  print_error("\"line\":3");
  expect(tfc_kernel_host("{\n  return m;\n}", NULL, 0, NULL, 0, &kernel) == 0, "grammar");
  expect(tfc_compile(signature, kernel, NULL, 0, NULL, NULL, &function) != 0, "a wrong name");
  print_error("\"column\":10");
  TVMFFIObjectDecRef(kernel);
  TfcImage image = {"gemm", {"no image", 8}};
  expect(tfc_kernel_host("{}", &image, 1, NULL, 0, &kernel) != 0, "a wrong image");
  print_error("gemm");
  TVMFFIObjectDecRef(signature);
}

#define SAXPY "(a: float32, x: Tensor([n], float32), y: Tensor([n], float32))"

/* A file of host text: its functions in this process, and as a library. */
static void program(const TVMFFIByteArray* object, const char* library) {
  const char* text =
      "register twice as \"c_api.twice\";\n"
      "saxpy" SAXPY " @ saxpy_kernel;\n"
      "## y += 2 * a * x.\n"
      "twice" SAXPY " { call symbol saxpy(a, x, y); call symbol saxpy(a, x, y); }\n";
  TfcObject program;
  TVMFFIAny functions, function;
  float y[4] = {1, 1, 1, 1};
  expect(tfc_program(text, NULL, 0, &program) == 0, "program");
  TfcBytes canonical, json;
  expect(tfc_program_text(program, &canonical) == 0, "text");
  TVMFFIByteArray shown = tfc_view(&canonical);
  printf("%.*s", (int)shown.size, shown.data);
  tfc_release(&canonical);
  expect(tfc_program_json(program, &json) == 0, "parts");
  shown = tfc_view(&json);
  printf("%.*s\n", (int)shown.size, shown.data);
  tfc_release(&json);
  expect(tfc_program_compile(program, object, 1, NULL, NULL, &functions) == 0, "compile of the program");
  expect(tfc_item(functions, 1, &function) == 0, "function");
  expect(call((TVMFFIObjectHandle)function.v_obj, y, 4, 4) == 0, "call of the program");
  printf("%g %g %g %g\n", y[0], y[1], y[2], y[3]);
  tfc_release(&function);
  tfc_release(&functions);

  TfcBytes wrappers;
  expect(tfc_program_object(program, NULL, &wrappers) == 0, "object of the program");
  TVMFFIByteArray both[2] = {tfc_view(&wrappers), *object};
  expect(tfc_link(both, 2, library, "{\"linker\":\"cc\"}") == 0, "link of the program");
  tfc_release(&wrappers);
  TVMFFIAny arg = tfc_text(library), module = tfc_none();
  TVMFFIByteArray name = {"c_api.twice", 11};
  TVMFFIObjectHandle global = NULL;
  expect(tfc_call_global("ffi.ModuleLoadFromFile", &arg, 1, &module) == 0, "load of the program");
  expect(TVMFFIFunctionGetGlobal(&name, &global) == 0 && global != NULL, "the global function");
  expect(call(global, y, 4, 4) == 0, "call of the global function");
  printf("%g %g %g %g\n", y[0], y[1], y[2], y[3]);
  TVMFFIObjectDecRef(global);
  tfc_release(&module);
  TVMFFIObjectDecRef(program);
  expect(tfc_program("f(x: fp16);\ng(n: int64) { n = ; }", NULL, 0, &program) != 0, "a wrong program");
  print_error("\"line\":2");
}

/* The variant for a value of BLOCK, which a dispatch calls when it has none. Gets the keys, then the arguments. */
static int made = 0;
static int on_miss(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  char text[64];
  TfcObject signature, kernel;
  TVMFFIObjectHandle function = NULL;
  (void)self;
  if (num_args != 4 || args[0].type_index != kTVMFFIInt || args[1].type_index != kTVMFFIBool) return -1;
  snprintf(text, sizeof text, "{ return n * %d + %d; }", (int)args[0].v_int64, ++made * 1000);
  if (tfc_signature("made(n: int64, BLOCK: int64) -> int64", NULL, &signature) != 0) return -1;
  int32_t code = tfc_kernel_host(text, NULL, 0, NULL, 0, &kernel);
  if (code == 0) {
    code = tfc_compile(signature, kernel, NULL, 0, NULL, NULL, &function);
    TVMFFIObjectDecRef(kernel);
  }
  TVMFFIObjectDecRef(signature);
  if (code == 0) *result = tfc_object_any(function);
  return code;
}

/* One function with a variant that is compiled with it, and others that a table makes when they are needed. */
static void dispatch(void) {
  const char* text =
      "make(grow: Function, code: Function) -> Function {\n"
      "  let pick = closure [grow: Function = grow, code: Function = code] pick(n: int64, BLOCK: int64) -> Any {\n"
      "    match BLOCK { 1 => forward symbol one(); else => forward grow(BLOCK, n % 16 == 0); }\n"
      "  };\n"
      "  return move(pick);\n"
      "}\n"
      "one(n: int64, BLOCK: int64) -> int64 { return n; }\n";
  const char* keys[2] = {"BLOCK", "n % 16 == 0"};
  TfcObject program;
  TVMFFIAny functions, make, table, pick = tfc_none(), stats = tfc_none(), misses = tfc_none();
  TVMFFIObjectHandle callback, call, counts;
  expect(tfc_program(text, NULL, 0, &program) == 0, "program of a dispatch");
  expect(tfc_program_compile(program, NULL, 0, NULL, NULL, &functions) == 0, "compile of a dispatch");
  expect(tfc_item(functions, 0, &make) == 0, "maker");
  expect(TVMFFIFunctionCreate(NULL, on_miss, NULL, &callback) == 0, "callback");
  expect(tfc_dispatch_table(callback, keys, 2, 256, "pick", &table) == 0, "table");
  expect(tfc_map_function(table, "call", &call) == 0, "call of the table");
  /* a closure doesn't keep its own code, so it captures its maker */
  TVMFFIAny args[2] = {tfc_object_any(call), make};
  expect(TVMFFIFunctionCall((TVMFFIObjectHandle)make.v_obj, args, 2, &pick) == 0, "a dispatch");
  for (int block = 1; block <= 3; ++block) {
    for (int n = 15; n <= 17; ++n) {
      TVMFFIAny arguments[2] = {tfc_int(n), tfc_int(block)}, result = tfc_none();
      expect(TVMFFIFunctionCall((TVMFFIObjectHandle)pick.v_obj, arguments, 2, &result) == 0, "call of a dispatch");
      printf("%d%s", (int)result.v_int64, n == 17 ? "\n" : " ");
    }
  }
  expect(tfc_map_function(table, "stats", &counts) == 0, "statistics");
  expect(TVMFFIFunctionCall(counts, NULL, 0, &stats) == 0, "statistics");
  TVMFFIAny named[2] = {stats, tfc_text("misses")};
  expect(tfc_call_global("ffi.MapGetItem", named, 2, &misses) == 0, "misses");
  printf("%d misses\n", (int)misses.v_int64);
  TVMFFIObjectDecRef(counts);
  TVMFFIObjectDecRef(call);
  TVMFFIObjectDecRef(callback);
  tfc_release(&stats);
  tfc_release(&pick);
  tfc_release(&table);
  tfc_release(&make);
  tfc_release(&functions);
  TVMFFIObjectDecRef(program);
}

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  TVMFFIByteArray object = {NULL, 0};
  object.data = read_file(argv[1], &object.size);
  TfcObject signature, kernel, wrong;
  expect(tfc_signature("saxpy(a: float32, x: Tensor([n], float32), y: Tensor([n], float32))", NULL, &signature) == 0,
         "signature");
  expect(tfc_kernel_symbol("saxpy_kernel", NULL, NULL, NULL, &kernel) == 0, "kernel");

  TfcBytes json;
  expect(tfc_kernel_prototype(signature, kernel, &json) == 0, "prototype");
  TVMFFIByteArray text = tfc_view(&json);
  printf("%.*s\n", (int)text.size, text.data);
  tfc_release(&json);

  TVMFFIObjectHandle function;
  expect(tfc_compile(signature, kernel, &object, 1, NULL, NULL, &function) == 0, "compile");
  float y[4] = {1, 1, 1, 1};
  expect(call(function, y, 4, 4) == 0, "call");
  printf("%g %g %g %g\n", y[0], y[1], y[2], y[3]);
  expect(call(function, y, 4, 3) != 0, "a wrong call");
  print_error("parts");
  TVMFFIObjectDecRef(function);

  expect(tfc_signature("saxpy(a: fp16)", NULL, &wrong) != 0, "a wrong signature");
  print_error("\"line\":1");
  expect(tfc_compile(signature, kernel, NULL, 0, NULL, NULL, &function) != 0, "no object");
  print_error("\"symbols\":[{\"name\":\"saxpy_kernel\"");

  TfcFunction listed = {signature, kernel, "y += a * x"};
  TfcBytes wrappers;
  expect(tfc_object(&listed, 1, "{\"opt_level\":\"full\"}", &wrappers) == 0, "object");
  TVMFFIByteArray both[2] = {tfc_view(&wrappers), object};
  expect(tfc_link(both, 2, argv[2], "{\"linker\":\"cc\"}") == 0, "link");
  tfc_release(&wrappers);
  expect(tfc_link(both + 1, 1, argv[2], "{\"linker\":\"ld\"}") != 0, "a wrong linker");
  print_error("\"kind\":\"CodegenError\"");

  TVMFFIAny args[3] = {tfc_text(argv[2]), tfc_none(), tfc_none()}, module = tfc_none(), loaded = tfc_none();
  expect(tfc_call_global("ffi.ModuleLoadFromFile", args, 1, &module) == 0, "load");
  args[0] = module;
  args[1] = tfc_text("saxpy");
  args[2].type_index = kTVMFFIBool;
  expect(tfc_call_global("ffi.ModuleGetFunction", args, 3, &loaded) == 0, "get");
  expect(call((TVMFFIObjectHandle)loaded.v_obj, y, 4, 4) == 0, "call of the library");
  printf("%g %g %g %g\n", y[0], y[1], y[2], y[3]);
  tfc_release(&loaded);
  tfc_release(&module);
  TVMFFIObjectDecRef(kernel);
  TVMFFIObjectDecRef(signature);
  host_kernel(&object);
  program(&object, argv[3]);
  dispatch();
  free((void*)object.data);
  return 0;
}
