/* The runtime's C API and a loaded library while allocations fail: preload the library of malloc.c.

     allocations LIBRARY

   The library is `checks` of fixtures/artifacts. Operations of "Out of memory" in docs/reference/runtime.md must raise
   an error, whatever allocation fails. The others may end the process, but only by a handler of Rust or the C library,
   and so may each operation on a new thread. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <tvm/ffi/c_api.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <unistd.h>

static long (*fail_after)(long count, int one);

static void fatal(const char* operation, long count, const char* why) {
  fail_after(-1, 0);
  fprintf(stderr, "%s, allocation %ld: %s\n", operation, count, why);
  _exit(1);
}

/* Returns 0, or -1 after a `MemoryError` or the operation's own error. Anything else is a failure. */
typedef int Operation(void);

static TVMFFIAny any_of(int32_t type_index) {
  TVMFFIAny value;
  memset(&value, 0, sizeof value);
  value.type_index = type_index;
  return value;
}

static TVMFFIAny int_any(int64_t number) {
  TVMFFIAny value = any_of(kTVMFFIInt);
  value.v_int64 = number;
  return value;
}

static TVMFFIAny text_any(const char* text) {
  TVMFFIAny value = any_of(kTVMFFIRawStr);
  value.v_c_str = text;
  return value;
}

static void release(TVMFFIAny* value) {
  if (value->type_index >= kTVMFFIStaticObjectBegin) TVMFFIObjectDecRef(value->v_obj);
}

static int failures;
/* The kind of the last error. */
static char kind[64];

/* Takes the raised error, and notes its kind. */
static int raised(void) {
  TVMFFIObjectHandle error = NULL;
  TVMFFIErrorMoveFromRaised(&error);
  if (error == NULL) {
    ++failures;
    strcpy(kind, "nothing");
    return -1;
  }
  const TVMFFIErrorCell* cell = (const TVMFFIErrorCell*)((char*)error + sizeof(TVMFFIObject));
  size_t size = cell->kind.size < sizeof kind - 1 ? cell->kind.size : sizeof kind - 1;
  memcpy(kind, cell->kind.data, size);
  kind[size] = 0;
  TVMFFIObjectDecRef(error);
  return -1;
}

static int call(TVMFFIObjectHandle function, TVMFFIAny* args, int32_t count, TVMFFIAny* result) {
  *result = any_of(kTVMFFINone);
  return TVMFFIFunctionCall(function, args, count, result) == 0 ? 0 : raised();
}

/* Expects the operation's own error, or a MemoryError. */
static int expect_error(int code, const char* own) {
  if (code == 0 || (strcmp(kind, own) != 0 && strcmp(kind, "MemoryError") != 0)) ++failures;
  return strcmp(kind, "MemoryError") == 0 ? -1 : 0;
}

static TVMFFIObjectHandle values, layout;
static int64_t shape[2] = {2, 4};
static float elements[8];

static DLTensor tensor_of(int32_t ndim) {
  DLTensor tensor;
  memset(&tensor, 0, sizeof tensor);
  tensor.data = elements;
  tensor.device.device_type = kDLCPU;
  tensor.dtype.code = kDLFloat;
  tensor.dtype.bits = 32;
  tensor.dtype.lanes = 1;
  tensor.ndim = ndim;
  tensor.shape = shape;
  return tensor;
}

/* values(flag: bool, n: int8, ...): too few arguments. */
static int wrong_count(void) {
  TVMFFIAny args[2] = {int_any(1), int_any(2)}, result;
  return expect_error(call(values, args, 2, &result), "TypeError");
}

/* A value that doesn't fit its type. */
static int wrong_value(void) {
  DLDevice cpu = {kDLCPU, 0};
  DLDataType dtype = {kDLFloat, 32, 1};
  TVMFFIAny args[4] = {int_any(1), int_any(1000), any_of(kTVMFFIDevice), any_of(kTVMFFIDataType)}, result;
  args[0].type_index = kTVMFFIBool;
  args[2].v_device = cpu;
  args[3].v_dtype = dtype;
  return expect_error(call(values, args, 4, &result), "ValueError");
}

/* Tensors of the wrong type and shape. */
static int wrong_tensor(void) {
  DLTensor tensor = tensor_of(2);
  TVMFFIAny args[3] = {any_of(kTVMFFIDLTensorPtr), any_of(kTVMFFIDLTensorPtr), int_any(2)}, result;
  args[0].v_ptr = args[1].v_ptr = &tensor;
  return expect_error(call(layout, args, 3, &result), "ValueError");
}

static int right_call(void) {
  DLDevice cpu = {kDLCPU, 0};
  DLDataType dtype = {kDLFloat, 32, 1};
  TVMFFIAny args[5] = {int_any(1), int_any(100), any_of(kTVMFFIDevice), any_of(kTVMFFIDataType), any_of(kTVMFFINone)};
  TVMFFIAny result;
  args[0].type_index = kTVMFFIBool;
  args[2].v_device = cpu;
  args[3].v_dtype = dtype;
  int code = call(values, args, 5, &result);
  release(&result);
  return code;
}

static int set_raised(void) {
  TVMFFIErrorSetRaisedFromCStr("ValueError", "a message of some length, longer than what fits into a small string");
  raised();
  return expect_error(-1, "ValueError");
}

static int set_raised_of_parts(void) {
  const char* parts[3] = {"a message ", "in several ", "parts, which the runtime joins"};
  TVMFFIErrorSetRaisedFromCStrParts("KeyError", parts, 3);
  raised();
  return expect_error(-1, "KeyError");
}

static int create_error(void) {
  TVMFFIByteArray text = {"a text of some length, for the message", 38}, own = {"OSError", 7}, none = {"", 0};
  TVMFFIObjectHandle error = NULL;
  if (TVMFFIErrorCreate(&own, &text, &none, &error) != 0) return -1;
  TVMFFIObjectDecRef(error);
  return 0;
}

static int allocate_tensor(void) {
  DLTensor prototype = tensor_of(2);
  TVMFFIObjectHandle tensor = NULL;
  if (TVMFFIEnvTensorAlloc(&prototype, &tensor) != 0) return raised();
  TVMFFIObjectDecRef(tensor);
  return 0;
}

static int through_dlpack(void) {
  DLTensor prototype = tensor_of(2);
  TVMFFIObjectHandle tensor = NULL, again = NULL;
  DLManagedTensorVersioned* managed = NULL;
  if (TVMFFIEnvTensorAlloc(&prototype, &tensor) != 0) return raised();
  int code = TVMFFITensorToDLPackVersioned(tensor, &managed) == 0 ? 0 : raised();
  if (code == 0 && TVMFFITensorFromDLPackVersioned(managed, 0, 0, &again) != 0) {
    code = raised();
    managed->deleter(managed);
  }
  if (again != NULL) TVMFFIObjectDecRef(again);
  TVMFFIObjectDecRef(tensor);
  return code;
}

static int make_string(void) {
  TVMFFIByteArray bytes = {"a text that is too long for a small string", 42};
  TVMFFIAny text = any_of(kTVMFFINone);
  if (TVMFFIStringFromByteArray(&bytes, &text) != 0) return raised();
  release(&text);
  return 0;
}

static int do_nothing(void* self, const TVMFFIAny* args, int32_t count, TVMFFIAny* result) {
  (void)self, (void)args, (void)count, (void)result;
  return 0;
}

static int register_function(void) {
  TVMFFIObjectHandle function = NULL;
  TVMFFIByteArray name = {"injected.allocations", 20};
  if (TVMFFIFunctionCreate(NULL, do_nothing, NULL, &function) != 0) return raised();
  int code = TVMFFIFunctionSetGlobal(&name, function, 1) == 0 ? 0 : raised();
  TVMFFIObjectDecRef(function);
  return code;
}

static TVMFFIObjectHandle global(const char* name) {
  TVMFFIByteArray bytes = {name, strlen(name)};
  TVMFFIObjectHandle function = NULL;
  if (TVMFFIFunctionGetGlobal(&bytes, &function) != 0) raised();
  return function;
}

/* Calls a global function with texts. */
static int make(const char* name, TVMFFIAny* args, int32_t count) {
  TVMFFIObjectHandle function = global(name);
  if (function == NULL) return -1;
  TVMFFIAny result;
  int code = call(function, args, count, &result);
  release(&result);
  TVMFFIObjectDecRef(function);
  return code;
}

static int make_array(void) {
  TVMFFIAny args[3] = {int_any(1), text_any("a text that is too long for a small string"), int_any(3)};
  return make("ffi.Array", args, 3);
}

static int make_map(void) {
  TVMFFIAny args[4] = {int_any(1), text_any("a text that is too long for a small string"), text_any("k"), int_any(3)};
  return make("ffi.Map", args, 4);
}

static int parse_json(void) {
  TVMFFIAny args[1] = {text_any("{\"a\": [1, 2.5, \"a text that is too long for a small string\"], \"b\": null}")};
  return make("ffi.json.Parse", args, 1);
}

static const char* library;

static int load_module(void) {
  TVMFFIAny args[1] = {text_any(library)};
  return make("ffi.ModuleLoadFromFile", args, 1);
}

static const struct {
  const char* name;
  Operation* run;
  /* On a thread that has raised before, it raises an error without memory, and doesn't end the process. */
  int survives;
} operations[] = {
    {"a call with too few arguments", wrong_count, 1},
    {"a call with a wrong value", wrong_value, 1},
    {"a call with a wrong tensor", wrong_tensor, 1},
    {"a right call", right_call, 1},
    {"TVMFFIErrorSetRaisedFromCStr", set_raised, 1},
    {"TVMFFIErrorSetRaisedFromCStrParts", set_raised_of_parts, 1},
    {"TVMFFIErrorCreate", create_error, 1},
    {"TVMFFIEnvTensorAlloc", allocate_tensor, 1},
    {"to DLPack and back", through_dlpack, 1},
    {"TVMFFIStringFromByteArray", make_string, 0},
    {"TVMFFIFunctionCreate, ...SetGlobal", register_function, 0},
    {"ffi.Array", make_array, 0},
    {"ffi.Map", make_map, 0},
    {"ffi.json.Parse", parse_json, 0},
    {"ffi.ModuleLoadFromFile", load_module, 0},
};

/* Runs the operation with so many allocations. Returns whether one failed; the code says whether it did. */
static int attempt(size_t index, long count, int one, int* code) {
  failures = 0;
  fail_after(count, one);
  *code = operations[index].run();
  long failed = fail_after(-1, 0);
  if (failures != 0) fatal(operations[index].name, count, kind);
  return failed != 0;
}

/* The arguments and results of one, for a thread. */
struct attempt {
  size_t index;
  long count;
  int one, code, failed;
};

static void* run_attempt(void* self) {
  struct attempt* own = self;
  own->failed = attempt(own->index, own->count, own->one, &own->code);
  return NULL;
}

/* In this process, and on this thread. */
static void surviving(size_t index, int one) {
  long count = 0, errors = 0;
  for (int code; attempt(index, count, one, &code); ++count) {
    errors += code != 0;
    if (attempt(index, -1, 0, &code) || code != 0) fatal(operations[index].name, count, "it fails afterwards");
  }
  printf("%-36s %s %5ld allocations %5ld errors %5ld successes\n", operations[index].name,
         one ? "one fails    " : "the rest fail", count, errors, count - errors);
}

/* Each on a new thread of a child process, whose standard error goes to a file. */
static void ending(size_t index, int one) {
  long count = 0, aborts = 0, errors = 0;
  for (;; ++count) {
    FILE* said = tmpfile();
    if (said == NULL) fatal(operations[index].name, count, "no temporary file");
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
      dup2(fileno(said), 2);
      struct attempt first = {index, count, one, 0, 0};
      pthread_t thread;
      int again;
      if (pthread_create(&thread, NULL, run_attempt, &first) != 0 || pthread_join(thread, NULL) != 0) _exit(5);
      if (!first.failed) _exit(3);
      if (attempt(index, -1, 0, &again) || again != 0) _exit(4);
      _exit(first.code != 0 ? 2 : 0);
    }
    int status = 0;
    char text[4096] = "";
    if (child < 0 || waitpid(child, &status, 0) != child) fatal(operations[index].name, count, "no child process");
    rewind(said);
    text[fread(text, 1, sizeof text - 1, said)] = 0;
    fclose(said);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 3) break;
    if (WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 2)) {
      errors += WEXITSTATUS(status) == 2;
      continue;
    }
    int is_orderly = strstr(text, "memory allocation of ") != NULL || strstr(text, "Fatal glibc error") != NULL;
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT || !is_orderly) {
      fprintf(stderr, "status %d: %s\n", status, text);
      fatal(operations[index].name, count, "it ends neither with an error nor by a handler");
    }
    ++aborts;
  }
  printf("%-36s %s %5ld allocations %5ld errors %5ld successes %5ld aborts, on a new thread\n",
         operations[index].name, one ? "one fails    " : "the rest fail", count, errors, count - errors - aborts,
         aborts);
}

static TVMFFIObjectHandle function_of(TVMFFIAny* module, const char* name) {
  TVMFFIAny args[3] = {*module, text_any(name), any_of(kTVMFFIBool)}, result;
  if (call(global("ffi.ModuleGetFunction"), args, 3, &result) != 0 || result.type_index != kTVMFFIFunction) {
    fatal(name, -1, "the library lacks it");
  }
  return result.v_obj;
}

int main(int argc, char** argv) {
  void* found = dlsym(RTLD_DEFAULT, "fail_allocations_after");
  if (argc != 2 || found == NULL) {
    fprintf(stderr, "give a library, and preload the one of malloc.c\n");
    return 1;
  }
  memcpy(&fail_after, &found, sizeof found);
  library = argv[1];
  TVMFFIAny path = text_any(library), module;
  if (call(global("ffi.ModuleLoadFromFile"), &path, 1, &module) != 0) fatal(library, -1, kind);
  values = function_of(&module, "values");
  layout = function_of(&module, "layout");
  for (size_t index = 0; index < sizeof operations / sizeof *operations; ++index) {
    int code;
    /* what is created on first use exists afterwards */
    attempt(index, -1, 0, &code);
    if (code != 0) fatal(operations[index].name, -1, "it fails with enough memory");
    for (int one = 0; one < 2; ++one) {
      if (operations[index].survives) surviving(index, one);
      ending(index, one);
    }
  }
  return 0;
}
