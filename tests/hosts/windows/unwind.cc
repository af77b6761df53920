/* Unwinding through wrappers on Windows: a walk from a kernel up to main, and C++ exceptions from a kernel to main.
   Each wrapper is entered through its fast path, and through its slow path. The slow path has a large frame, and saves
   registers for integers and for floats. The wrappers of unwind_signatures.txt are linked into this program. */
#include <tvm/ffi/c_api.h>

#include <fcntl.h>
#include <io.h>
#include <windows.h>

#include <cmath>
#include <cstdio>
#include <cstring>

extern "C" {
int __tvm_ffi_walk(void*, const TVMFFIAny*, int32_t, TVMFFIAny*);
int __tvm_ffi_raise(void*, const TVMFFIAny*, int32_t, TVMFFIAny*);
void walk(double* x, double a, double b, double c, double d, double e, double f, double g, double h, int64_t n);
void raise_exception(double* x, double a, double b, double c, double d, double e, double f, double g, double h, int64_t n);
}

using Function = int(void*, const TVMFFIAny*, int32_t, TVMFFIAny*);
static const int FLOATS = 8, ARGS = 1 + FLOATS;

int main();

/* The start of the function with code at an address, as Windows' unwinder finds it; 0 for a leaf or if unknown. */
static DWORD64 start_of(DWORD64 address) {
  DWORD64 base = 0;
  RUNTIME_FUNCTION* entry = RtlLookupFunctionEntry(address, &base, nullptr);
  return entry == nullptr ? 0 : base + entry->BeginAddress;
}

/* The start of a function, as the unwinder finds it. Its address may be that of a jump. */
template <typename F>
static DWORD64 at(F* function) {
  return start_of(reinterpret_cast<DWORD64>(function));
}

/* Prints the names of the frames up to main. */
void walk(double*, double, double, double, double, double, double, double, double, int64_t) {
  CONTEXT context;
  RtlCaptureContext(&context);
  for (int frame = 0; frame < 32; ++frame) {
    DWORD64 base = 0;
    RUNTIME_FUNCTION* entry = RtlLookupFunctionEntry(context.Rip, &base, nullptr);
    if (entry == nullptr) {
      std::printf(" a frame without a table\n");
      return;
    }
    DWORD64 start = base + entry->BeginAddress;
    if (start == at(&walk)) {
      std::printf(" kernel");
    } else if (start == at(&__tvm_ffi_walk)) {
      std::printf(" wrapper");
    } else if (start == at(&main)) {
      std::printf(" main\n");
      return;
    } else {
      std::printf(" other");
    }
    void* data = nullptr;
    DWORD64 establisher = 0;
    RtlVirtualUnwind(UNW_FLAG_NHANDLER, base, context.Rip, entry, &context, &data, &establisher, nullptr);
  }
  std::printf(" too many frames\n");
}

struct Raised {
  int64_t n;
};

void raise_exception(double* x, double a, double b, double c, double d, double e, double f, double g, double h,
                     int64_t n) {
  x[0] = a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h;
  throw Raised{n};
}

static TVMFFIAny tensor(DLTensor* value) {
  TVMFFIAny any;
  std::memset(&any, 0, sizeof any);
  any.type_index = kTVMFFIDLTensorPtr;
  any.v_ptr = value;
  return any;
}

/* A number that is right only if the unwinder restores every register that the calls in between have saved. */
__attribute__((noinline)) static double registers(double seed, int64_t whole, Function* function, const TVMFFIAny* args) {
  double a = std::sin(seed), b = std::cos(seed), c = std::sqrt(seed), d = std::exp(-seed), e = a * b, g = c * d;
  int64_t i = whole * 3, j = whole * 5, k = whole * 7, l = whole * 11, m = whole * 13;
  TVMFFIAny result;
  std::memset(&result, 0, sizeof result);
  try {
    int status = function(nullptr, args, ARGS, &result);
    if (status != 0) std::printf("an error of the runtime\n");
  } catch (const Raised& raised) {
    i += raised.n;
  }
  return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * g + static_cast<double>(i + 2 * j + 3 * k + 4 * l + 5 * m);
}

static int raise_at_once(void*, const TVMFFIAny*, int32_t, TVMFFIAny*) { throw Raised{4}; }

int main() {
  /* lines end as everywhere */
  _setmode(_fileno(stdout), _O_BINARY);
  double data[4] = {1, 2, 3, 4};
  int64_t shape[1] = {4}, strides[1] = {1};
  DLTensor x;
  std::memset(&x, 0, sizeof x);
  x.data = data;
  x.device.device_type = kDLCPU;
  x.ndim = 1;
  x.dtype = DLDataType{kDLFloat, 64, 1};
  x.shape = shape;
  x.strides = strides;
  TVMFFIAny args[ARGS];
  std::memset(args, 0, sizeof args);
  args[0] = tensor(&x);
  double sum = 0;
  for (int i = 1; i <= FLOATS; ++i) {
    args[i].type_index = kTVMFFIFloat;
    args[i].v_float64 = 10 * i;
    sum += 10 * i * i;
  }
  /* unknown to the compiler, so values computed from it stay in registers */
  volatile double seed = 1.25;
  volatile int64_t whole = 17;
  for (int slow = 0; slow < 2; ++slow) {
    if (slow) {
      /* only the slow path accepts an int for a float */
      args[1].type_index = kTVMFFIInt;
      args[1].v_int64 = 10;
    }
    const char* path = slow ? "slow" : "fast";
    std::printf("%s:", path);
    TVMFFIAny result;
    std::memset(&result, 0, sizeof result);
    if (__tvm_ffi_walk(nullptr, args, ARGS, &result) != 0) std::printf(" an error of the runtime\n");
    data[0] = 0;
    bool same = registers(seed, whole, raise_at_once, args) == registers(seed, whole, __tvm_ffi_raise, args);
    std::printf("%s: the exception is %s, the kernel %s\n", path, same ? "caught" : "caught with other registers",
                data[0] == sum ? "has run" : "has not run");
  }
  return 0;
}
