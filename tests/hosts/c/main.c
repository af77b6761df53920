/* A host in C, on upstream's headers and only the C API: for upstream's runtime and for ours.

     main LIBRARY           loads the library
     main --system PREFIX   uses the functions that are linked in
*/
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tvm/ffi/c_api.h>

#include "allocator.h"
#include "prices.h"
#include "values.h"

#ifdef _WIN32
#include <fcntl.h>
#include <io.h>
#include <windows.h>

#include <shellapi.h>

/* Reads the arguments as UTF-8, which the C API needs for paths. `main` gets them in the machine's code page. */
static void take_arguments(int argc, char** argv) {
  wchar_t** wide = CommandLineToArgvW(GetCommandLineW(), &argc);
  for (int i = 0; wide != NULL && i < argc; ++i) {
    int size = WideCharToMultiByte(CP_UTF8, 0, wide[i], -1, NULL, 0, NULL, NULL);
    argv[i] = malloc(size);
    if (argv[i] == NULL) abort();
    WideCharToMultiByte(CP_UTF8, 0, wide[i], -1, argv[i], size, NULL, NULL);
  }
  LocalFree(wide);
  /* line ends are the same on every system */
  _setmode(_fileno(stdout), _O_BINARY);
}
#endif

static TVMFFIAny module;

/* A function of the module, or None. */
static TVMFFIAny get(const char* name, int imports) {
  TVMFFIAny args[3] = {module, str_any(name), int_any(imports)}, result = none_any();
  args[2].type_index = kTVMFFIBool;
  if (call_global("ffi.ModuleGetFunction", args, 3, &result) != 0) {
    show_error();
    exit(1);
  }
  return result;
}

/* Prints the result of a function's call: its value, or its error. */
static TVMFFIAny call_function(const char* label, const TVMFFIAny* function, TVMFFIAny* args, int32_t num_args) {
  TVMFFIAny result = none_any();
  printf("%s: ", label);
  if (function->type_index != kTVMFFIFunction) {
    printf("no such function");
  } else if (TVMFFIFunctionCall(function->v_obj, args, num_args, &result) != 0) {
    show_error();
  } else {
    show(&result);
  }
  printf("\n");
  return result;
}

static void call(const char* label, TVMFFIAny* args, int32_t num_args) {
  char name[32] = "";
  strncat(name, label, strcspn(label, "("));
  TVMFFIAny function = get(name, 0);
  TVMFFIAny result = call_function(label, &function, args, num_args);
  release(&result);
  release(&function);
}

#define ARGS(...) ((TVMFFIAny[]){__VA_ARGS__}), (int32_t)(sizeof((TVMFFIAny[]){__VA_ARGS__}) / sizeof(TVMFFIAny))

static void line(const char* label, TVMFFIAny value) {
  printf("%s: ", label);
  show(&value);
  printf("\n");
}

/* Prints a text that describes a function. */
static void text(const char* label, const char* global, const char* name) {
  TVMFFIAny args[3] = {module, str_any(name), int_any(0)}, result = none_any();
  args[2].type_index = kTVMFFIBool;
  printf("%s: ", label);
  if (call_global(global, args, 3, &result) != 0) {
    show_error();
  } else {
    show(&result);
  }
  printf("\n");
  release(&result);
}

static DLTensor tensor(void* data, int32_t ndim, int64_t* shape, uint8_t code, uint8_t bits) {
  DLTensor tensor = {data, {kDLCPU, 0}, ndim, {code, bits, 1}, shape, NULL, 0};
  return tensor;
}

static void numbers(void) {
  int64_t three[] = {3}, two[] = {2}, two_by_three[] = {2, 3};
  float xs[] = {1, 2, 3.5}, ys[] = {0, 0, 0}, ms[] = {1, 2, 3, 4, 5, 6};
  double as[] = {1, 2, 3}, bs[] = {4, 5, 6.5};
  int32_t is[] = {1, 2, 3}, js[] = {1, 3, 2};
  uint16_t hs[] = {0x3f80, 0xc000, 0x4060};
  uint8_t es[] = {0x38, 0x3c, 0xc0};
  DLTensor x = tensor(xs, 1, three, kDLFloat, 32), y = tensor(ys, 1, three, kDLFloat, 32);
  DLTensor m = tensor(ms, 2, two_by_three, kDLFloat, 32), short_y = tensor(ys, 1, two, kDLFloat, 32);
  DLTensor a = tensor(as, 1, three, kDLFloat, 64), b = tensor(bs, 1, three, kDLFloat, 64);
  DLTensor i = tensor(is, 1, three, kDLInt, 32), j = tensor(js, 1, three, kDLInt, 32);
  DLTensor h = tensor(hs, 1, three, kDLBfloat, 16), e = tensor(es, 1, three, kDLFloat8_e4m3fn, 8);
  TVMFFIAny ax = tensor_any(&x), ay = tensor_any(&y), am = tensor_any(&m), ashort = tensor_any(&short_y);
  TVMFFIAny aa = tensor_any(&a), ab = tensor_any(&b), ai = tensor_any(&i), aj = tensor_any(&j);
  TVMFFIAny ah = tensor_any(&h), ae = tensor_any(&e);

  call("scale(x, y)", ARGS(ax, ay));
  line("y", ay);
  call("scale(x, y, -1)", ARGS(ax, ay, int_any(-1)));
  line("y", ay);
  call("scale(x, y, 0.5)", ARGS(ax, ay, float_any(0.5)));
  line("y", ay);
  call("scale(x)", ARGS(ax));
  call("scale(x, 5)", ARGS(ax, int_any(5)));
  call("scale(x, a)", ARGS(ax, aa));
  call("scale(x, y[:2])", ARGS(ax, ashort));
  call("scale(x, y, \"2\")", ARGS(ax, ay, str_any("2")));
  call("dot(a, b)", ARGS(aa, ab));
  call("dot(a, None)", ARGS(aa, none_any()));
  call("outer(x, y)", ARGS(ax, ay));
  call("outer(x, m)", ARGS(ax, am));
  call("widen(h, y)", ARGS(ah, ay));
  line("y", ay);
  call("widen(x, y)", ARGS(ax, ay));
  call("sum8(e)", ARGS(ae));
  call("sum8(h)", ARGS(ah));
  call("is_sorted(i)", ARGS(ai));
  call("is_sorted(j)", ARGS(aj));
  call("is_sorted(m)", ARGS(am));

  TVMFFIAny function = get("address", 0), at = none_any();
  int found = TVMFFIFunctionCall(function.v_obj, &ax, 1, &at) == 0 && at.type_index == kTVMFFIOpaquePtr;
  printf("address(x) is that of x: %s\n", found && at.v_ptr == xs ? "True" : "False");
  release(&function);
  call("address(5)", ARGS(int_any(5)));
  call("dtype_of(h)", ARGS(ah));
  call("dtype_of(e)", ARGS(ae));
  call("device_of(x)", ARGS(ax));
  call("shape_of(m)", ARGS(am));
}

static void texts(void) {
  TVMFFIByteArray abc = bytes_of("abc");
  call("count(\"banana\")", ARGS(str_any("banana")));
  call("count(\"banana\", \"na\")", ARGS(str_any("banana"), str_any("na")));
  call("count(5)", ARGS(int_any(5)));
  call("count(\"a\", \"b\", \"c\")", ARGS(str_any("a"), str_any("b"), str_any("c")));
  call("greet(\"you\")", ARGS(str_any("you")));
  call("greet(\"\")", ARGS(str_any("")));
  call("greet(None)", ARGS(none_any()));
  call("reversed(b\"abc\")", ARGS(bytes_any(&abc)));
  call("reversed(\"abc\")", ARGS(str_any("abc")));
  call("split(\"a,bc,,d\", \",\")", ARGS(str_any("a,bc,,d"), str_any(",")));
  call("split(\"abc\", \"\")", ARGS(str_any("abc"), str_any("")));
  call("find(\"banana\", \"n\")", ARGS(str_any("banana"), str_any("n")));
  call("find(\"banana\", \"x\")", ARGS(str_any("banana"), str_any("x")));

  TVMFFIAny words = none_any(), mixed = none_any();
  if (call_global("ffi.Array", ARGS(str_any("a"), str_any("longer than seven")), &words) != 0 ||
      call_global("ffi.Array", ARGS(str_any("a"), int_any(5)), &mixed) != 0) {
    show_error();
    exit(1);
  }
  call("lengths([\"a\", \"longer than seven\"])", ARGS(words));
  call("lengths([\"a\", 5])", ARGS(mixed));
  release(&words);
  release(&mixed);
}

static void objects(void) {
  TVMFFIAny make = get("counter", 0);
  TVMFFIAny counter = call_function("counter()", &make, NULL, 0);
  for (int i = 0; i < 2; ++i) call_function("counter()()", &counter, NULL, 0);
  call_function("counter()(1)", &counter, ARGS(int_any(1)));
  release(&counter);
  release(&make);
  call("library()", NULL, 0);
  call("price(\"pear\")", ARGS(str_any("pear")));
  call("price(\"apple\", 7)", ARGS(str_any("apple"), int_any(7)));
  call("price(\"plum\")", ARGS(str_any("plum")));
  call("price(\"pear\", 300)", ARGS(str_any("pear"), int_any(300)));
  TVMFFIAny price_of = get("price_of", 1);
  TVMFFIAny price = call_function("price_of(\"apple\") of what is imported", &price_of, ARGS(str_any("apple")));
  release(&price);
  release(&price_of);
  text("doc of scale", "ffi.ModuleGetFunctionDoc", "scale");
  text("doc of dot", "ffi.ModuleGetFunctionDoc", "dot");
  text("metadata of price", "ffi.ModuleGetFunctionMetadata", "price");
  text("metadata of nothing", "ffi.ModuleGetFunctionMetadata", "nothing");
}

int main(int argc, char** argv) {
#ifdef _WIN32
  take_arguments(argc, argv);
#endif
  if (argc < 2) {
    fprintf(stderr, "usage: %s LIBRARY | --system PREFIX\n", argv[0]);
    return 2;
  }
  int system = argc == 3 && strcmp(argv[1], "--system") == 0;
  TVMFFIAny name = str_any(argv[system ? 2 : 1]);
  if (use_malloc() != 0 || register_prices() != 0 ||
      call_global(system ? "ffi.SystemLib" : "ffi.ModuleLoadFromFile", &name, 1, &module) != 0) {
    show_error();
    printf("\n");
    return 1;
  }
  numbers();
  texts();
  objects();
  call("nothing()", NULL, 0);
  call("price_of(\"apple\")", ARGS(str_any("apple")));
  release(&module);
  return 0;
}
