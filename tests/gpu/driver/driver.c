// A stand-in for a GPU driver: `libcuda.so.1`, or with -DHIP `libamdhip64.so`. It checks and records every call, makes
// calls fail on request, and runs kernels on the CPU. Names, ids and layouts are those of cuda.h and hip_runtime_api.h.
// tests/gpu/headers.rs compares them with cuda.h.
//
// An image is PTX with a line `// host: PATH`, which is the path of a shared object with the kernels as host code. The
// same text may follow a cubin. A plain cubin is parsed: each launch is checked against its data about the kernel, and
// the parameters are recorded. The kernel runs only if a test has registered host code for it.
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cubin.h"
#include "standin.h"
#include "system.h"

enum { SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, DEINITIALIZED = 4, INVALID_IMAGE = 200, INVALID_CONTEXT = 201, INVALID_HANDLE = 400, NOT_FOUND = 500, LAUNCH_FAILED = 719, NO_BINARY = 209, CAPTURED = 900, CAPTURE_IMPLICIT = 906, NOT_SUPPORTED = 801 };

#define DEVICES 2
#define MOST 256

struct library {
  int alive, device;
  void* host;
  // The image if it is a plain cubin.
  uint8_t* cubin;
};
struct kernel {
  int alive;
  struct library* library;
  char name[256];
  // NULL for a kernel of a plain cubin. A test may have registered host code for it.
  kernel_fn run;
  struct facts facts;
  // The value of attribute 8, and whether it is set.
  int shared[DEVICES], is_set[DEVICES], non_portable[DEVICES];
};
// A global variable of a library on a device. Its memory is the host's.
struct global {
  struct library* library;
  char name[64];
  int device;
  uint8_t* memory;
  uint32_t size;
};
struct context {
  int device, retained;
};
// Host code that a test has registered for a kernel of plain cubins.
struct program {
  char name[256];
  kernel_fn run;
};

static lock_t lock = LOCK_INITIALIZER;
static struct library libraries[MOST];
static struct kernel kernels[MOST];
static struct global globals[MOST];
static struct context contexts[DEVICES] = {{0, 0}, {1, 0}};
static int capability[DEVICES] = {80, 90};
static int version = 12080, initialised, capturing, deinitialised;
static char record[1 << 20];
static size_t recorded;
static int fail_at, fail_with, calls;
static char fail_name[64];
static struct program programs[16];
// The parameters of the last launch, in the device's layout.
static uint8_t parameters[1 << 15];
static uint32_t parameters_size;
// The stream of the last launch.
static void* last_stream;
static __thread struct context* stack[16];
static __thread int depth, hip_device;
static int unbalanced;
// The stream that a test captures, or NULL.
static void* captured_stream;
// The function that the driver lacks, whatever its version.
static char missing[64];

static void note(const char* format, ...) {
  va_list args;
  va_start(args, format);
  recorded += (size_t)vsnprintf(record + recorded, sizeof record - recorded, format, args);
  if (recorded >= sizeof record) recorded = sizeof record - 1;
  va_end(args);
}

// Counts and records a call, and returns its status. A test may make it fail by its number or name.
static int enter(const char* name) {
  calls++;
  note("%s", name);
  if (fail_at == calls || (fail_name[0] && strcmp(fail_name, name) == 0)) {
    note(" -> %d\n", fail_with);
    return fail_with;
  }
  return SUCCESS;
}

#define ENTER(name)                   \
  acquire(&lock);          \
  int status = enter(name);           \
  if (status != SUCCESS) goto leave;

#define LEAVE                         \
  leave:                              \
  release(&lock);        \
  return status;

#define REQUIRE(condition, code)      \
  if (!(condition)) {                 \
    status = (code);                  \
    note(" -> %d (%s)\n", status, #condition); \
    goto leave;                       \
  }

static void forget_graphs(void);

// Functions with which tests control the driver.
void standin_reset(void) {
  acquire(&lock);
  recorded = 0;
  record[0] = 0;
  fail_at = fail_with = calls = capturing = deinitialised = unbalanced = 0;
  captured_stream = NULL;
  missing[0] = 0;
  fail_name[0] = 0;
  version = 12080;
  capability[0] = 80;
  capability[1] = 90;
  parameters_size = 0;
  memset(programs, 0, sizeof programs);
  release(&lock);
}
// Registers host code for a kernel of plain cubins. It is called once for each block, with the index of the block's
// first thread, on the stack of the thread that launches.
int standin_program(const char* name, kernel_fn run) {
  for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
    if (programs[i].run && strcmp(programs[i].name, name) != 0) continue;
    snprintf(programs[i].name, sizeof programs[i].name, "%s", name);
    programs[i].run = run;
    return SUCCESS;
  }
  return OUT_OF_MEMORY;
}
const void* standin_parameters(uint32_t* size) {
  *size = parameters_size;
  return parameters;
}
const void* standin_stream(void) { return last_stream; }
const char* standin_log(void) { return record; }
int standin_calls(void) { return calls; }
void standin_fail(int number, int with) {
  fail_at = number > 0 ? calls + number : 0;
  fail_with = with;
}
void standin_fail_name(const char* name, int with) {
  snprintf(fail_name, sizeof fail_name, "%s", name);
  fail_with = with;
}
void standin_version(int number) { version = number; }
void standin_lacks(const char* name) { snprintf(missing, sizeof missing, "%s", name); }
void standin_capability(int device, int number) { capability[device] = number; }
// Captures the streams of launches, whichever they are. Launches run, and calls of first uses are refused.
void standin_capture(int on) { capturing = on; }
// A driver that is no longer deinitialised has lost all libraries and contexts.
void standin_deinitialise(int on) {
  deinitialised = on;
  if (on) return;
  for (int i = 0; i < MOST; i++) libraries[i].alive = kernels[i].alive = 0;
  for (int i = 0; i < DEVICES; i++) contexts[i].retained = 0;
  forget_graphs();
}
int standin_libraries(void) {
  int count = 0;
  for (int i = 0; i < MOST; i++) count += libraries[i].alive;
  return count;
}
int standin_retained(int device) { return contexts[device].retained; }
int standin_depth(void) { return depth; }
int standin_unbalanced(void) { return unbalanced; }
// Makes a device's primary context current on this thread, as PyTorch does. -1 removes it again.
void standin_make_current(int device) {
  depth = 0;
  if (device >= 0) stack[depth++] = &contexts[device];
}
int standin_current(void) { return depth ? stack[depth - 1]->device : -1; }
int standin_hip_device(void) { return hip_device; }

// Threads of a block are fibers. Each runs up to the next barrier, then the next one continues.
struct fiber {
  fiber_t fiber;
  struct thread thread;
  int done;
};
static __thread struct fiber* running;
static __thread kernel_fn running_kernel;
static __thread void** running_params;
static __thread struct library* running_library;
static __thread int running_device;
static struct global* find_global(struct library* library, const char* name, int device);
static const void* global_of_running(const char* name) {
  const struct global* global = find_global(running_library, name, running_device);
  return global ? global->memory : NULL;
}

static void yield_fiber(void) { leave_fiber(&running->fiber); }
static void run_fiber(void) {
  running_kernel(&running->thread, running_params);
  running->done = 1;
  leave_fiber(&running->fiber);
}

static void run_block(struct thread at, struct extent block) {
  const uint32_t count = block.x * block.y * block.z;
  struct fiber* fibers = calloc(count, sizeof *fibers);
  for (uint32_t i = 0; i < count; i++) {
    struct fiber* fiber = &fibers[i];
    fiber->thread = at;
    fiber->thread.index = (struct extent){i % block.x, i / block.x % block.y, i / block.x / block.y};
    fiber->thread.sync = yield_fiber;
    make_fiber(&fiber->fiber, run_fiber);
  }
  for (uint32_t left = count; left;) {
    for (uint32_t i = 0; i < count; i++) {
      if (fibers[i].done) continue;
      running = &fibers[i];
      enter_fiber(&running->fiber);
      left -= (uint32_t)running->done;
    }
  }
  for (uint32_t i = 0; i < count; i++) free_fiber(&fibers[i].fiber);
  free(fibers);
}

static kernel_fn find_program(const char* name) {
  for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
    if (programs[i].run && strcmp(programs[i].name, name) == 0) return programs[i].run;
  return NULL;
}

static void run_kernel(struct kernel* kernel, struct extent grid, struct extent block, uint32_t shared, void** params, int device) {
  void* copies[MOST_PARAMS];
  int count = 0;
  parameters_size = 0;
  memset(parameters, 0, sizeof parameters);
  // drivers copy parameters before they return
  for (const uint32_t *size = kernel->facts.sizes, *offset = kernel->facts.offsets; *size; size++, offset++, count++) {
    copies[count] = allocate_aligned(64, *size);
    memcpy(copies[count], params[count], *size);
    memcpy(parameters + *offset, params[count], *size);
    if (*offset + *size > parameters_size) parameters_size = *offset + *size;
  }
  const kernel_fn program = kernel->run ? NULL : find_program(kernel->name);
  if (!kernel->run && !program) goto done;
  running_kernel = kernel->run;
  running_params = copies;
  running_library = kernel->library;
  running_device = device;
  void* memory = calloc(1, shared ? shared : 1);
  for (uint32_t z = 0; z < grid.z; z++)
    for (uint32_t y = 0; y < grid.y; y++)
      for (uint32_t x = 0; x < grid.x; x++) {
        memset(memory, 0xcd, shared);
        const struct thread at = {grid, block, {x, y, z}, {0, 0, 0}, memory, shared, NULL, global_of_running};
        if (program) program(&at, copies);
        else run_block(at, block);
      }
  free(memory);
done:
  while (count) free_aligned(copies[--count]);
}

static struct kernel* find_kernel(struct library* library, const char* name) {
  char other[256];
  // a library has one kernel with each name, and all users share its attributes
  for (int i = 0; i < MOST; i++)
    if (kernels[i].alive && kernels[i].library == library && strcmp(kernels[i].name, name) == 0) return &kernels[i];
  for (int i = 0; i < MOST; i++) {
    struct kernel* kernel = &kernels[i];
    if (kernel->alive) continue;
    memset(kernel, 0, sizeof *kernel);
    snprintf(kernel->name, sizeof kernel->name, "%s", name);
    if (library->cubin) {
      if (!cubin_facts(library->cubin, name, &kernel->facts)) return NULL;
    } else {
      kernel->run = (kernel_fn)(uintptr_t)find_symbol(library->host, name);
      snprintf(other, sizeof other, "%s_params", name);
      const uint32_t* params = find_symbol(library->host, other);
      if (!kernel->run || !params) return NULL;
      for (int param = 0; params[param]; param++) {
        kernel->facts.sizes[param] = params[param];
        kernel->facts.offsets[param + 1] = kernel->facts.offsets[param] + params[param];
      }
      snprintf(other, sizeof other, "%s_static_shared", name);
      const uint32_t* shared = find_symbol(library->host, other);
      kernel->facts.static_shared = shared ? *shared : 0;
    }
    kernel->library = library;
    kernel->alive = 1;
    return kernel;
  }
  return NULL;
}

static struct library* load(const char* image, int device) {
  const char mark[] = "// host: ";
  struct library* library = NULL;
  for (int i = 0; i < MOST && !library; i++)
    if (!libraries[i].alive) library = &libraries[i];
  if (!library) return NULL;
  // an image is PTX, a cubin followed by PTX, a fatbin of PTX, or a bundle with the text as the host's entry
  const char* at = NULL;
  if (memcmp(image, "\177ELF", 4) == 0) {
    uint64_t sections;
    uint16_t size, count;
    memcpy(&sections, image + 40, 8);
    memcpy(&size, image + 58, 2);
    memcpy(&count, image + 60, 2);
    at = find_text(image, sections + (uint64_t)size * count, mark);
    uint8_t* cubin = at ? NULL : cubin_copy(image);
    if (cubin) {
      *library = (struct library){1, device, NULL, cubin};
      return library;
    }
  } else if (memcmp(image, "\x50\xed\x55\xba", 4) == 0) {
    uint64_t size;
    memcpy(&size, image + 8, 8);
    at = find_text(image + 16, size, mark);
  } else if (strncmp(image, "__CLANG_OFFLOAD_BUNDLE__", 24) == 0) {
    // the first entry is the host's; its offset and size follow the number of entries
    uint64_t place[2];
    memcpy(place, image + 32, sizeof place);
    at = find_text(image + place[0], place[1], mark);
  } else {
    at = strstr(image, mark);
  }
  if (!at) return NULL;
  char path[512];
  at += sizeof mark - 1;
  size_t length = strcspn(at, "\n");
  if (length >= sizeof path) return NULL;
  memcpy(path, at, length);
  path[length] = 0;
  void* host = open_library(path);
  if (!host) return NULL;
  *library = (struct library){1, device, host, NULL};
  return library;
}

// A global variable, if the library has one with this name.
static struct global* find_global(struct library* library, const char* name, int device) {
  struct global* free_one = NULL;
  for (int i = 0; i < MOST; i++) {
    struct global* global = &globals[i];
    if (!global->library) free_one = global;
    else if (global->library == library && global->device == device && strcmp(global->name, name) == 0) return global;
  }
  char other[256];
  snprintf(other, sizeof other, "%s_global", name);
  const uint32_t* size = library->host ? find_symbol(library->host, other) : NULL;
  if (!size || !free_one) return NULL;
  *free_one = (struct global){library, "", device, calloc(1, *size), *size};
  snprintf(free_one->name, sizeof free_one->name, "%s", name);
  return free_one;
}
static struct global* global_at(const uint8_t* address) {
  for (int i = 0; i < MOST; i++)
    if (globals[i].library && address >= globals[i].memory && address < globals[i].memory + globals[i].size) return &globals[i];
  return NULL;
}

static void unload(struct library* library) {
  for (int i = 0; i < MOST; i++) {
    if (globals[i].library != library) continue;
    free(globals[i].memory);
    globals[i].library = NULL;
  }
  for (int i = 0; i < MOST; i++) kernels[i].alive &= kernels[i].library != library;
  library->alive = 0;
  free(library->cubin);
  library->cubin = NULL;
}

static int is_library(const struct library* library) {
  return library >= libraries && library < libraries + MOST && library->alive;
}
static int is_kernel(const struct kernel* kernel) {
  return kernel >= kernels && kernel < kernels + MOST && kernel->alive && kernel->library->alive;
}

#ifndef HIP
static int attribute_of(int attribute, int device, int* value) {
  switch (attribute) {
    case 1: *value = 1024; return 1;
    case 2: *value = 1024; return 1;
    case 3: *value = 1024; return 1;
    case 4: *value = 64; return 1;
    case 75: *value = capability[device] / 10; return 1;
    case 76: *value = capability[device] % 10; return 1;
    case 97: *value = (capability[device] == 80 ? 163 : 227) << 10; return 1;
    default: return 0;
  }
}

#endif
static int fits(struct extent grid, struct extent block) {
  return grid.x && grid.y && grid.z && block.x && block.y && block.z && grid.x <= 0x7fffffff && grid.y <= 65535 && grid.z <= 65535 &&
         block.x <= 1024 && block.y <= 1024 && block.z <= 64 && (uint64_t)block.x * block.y * block.z <= 1024;
}

int standin_error_name(int status, const char** out) {
  switch (status) {
    case INVALID_VALUE: *out = "CUDA_ERROR_INVALID_VALUE"; return SUCCESS;
    case OUT_OF_MEMORY: *out = "CUDA_ERROR_OUT_OF_MEMORY"; return SUCCESS;
    case INVALID_IMAGE: *out = "CUDA_ERROR_INVALID_IMAGE"; return SUCCESS;
    case INVALID_CONTEXT: *out = "CUDA_ERROR_INVALID_CONTEXT"; return SUCCESS;
    case NOT_FOUND: *out = "CUDA_ERROR_NOT_FOUND"; return SUCCESS;
    case NO_BINARY: *out = "CUDA_ERROR_NO_BINARY_FOR_GPU"; return SUCCESS;
    case LAUNCH_FAILED: *out = "CUDA_ERROR_LAUNCH_FAILED"; return SUCCESS;
    default: *out = NULL; return INVALID_VALUE;
  }
}
int standin_error_text(int status, const char** out) {
  switch (status) {
    case INVALID_VALUE: *out = "invalid argument"; return SUCCESS;
    case OUT_OF_MEMORY: *out = "out of memory"; return SUCCESS;
    case INVALID_IMAGE: *out = "device kernel image is invalid"; return SUCCESS;
    case INVALID_CONTEXT: *out = "invalid device context"; return SUCCESS;
    case NOT_FOUND: *out = "named symbol not found"; return SUCCESS;
    case NO_BINARY: *out = "no kernel image is available for execution on the device"; return SUCCESS;
    case LAUNCH_FAILED: *out = "unspecified launch failure"; return SUCCESS;
    default: *out = NULL; return INVALID_VALUE;
  }
}

// Writes a value of `bytes` bytes to a global variable of a device.
static int set_global(const char* name, uint8_t* address, uint32_t value, uint32_t bytes, uint64_t count, void* stream, int device) {
  ENTER(name)
  const struct global* global = global_at(address);
  REQUIRE(device >= 0 && global && global->device == device && count == 1, INVALID_VALUE)
  REQUIRE(address + bytes <= global->memory + global->size && (uintptr_t)address % bytes == 0, INVALID_VALUE)
  REQUIRE(bytes == 4 || value < 256, INVALID_VALUE)
  memcpy(address, &value, bytes);
  note("(%s + %d = %u, stream %llu, device %d)\n", global->name, (int)(address - global->memory), value,
       (unsigned long long)(uintptr_t)stream, device);
  LEAVE
}
static int get_global(const char* function, void** address, uint64_t* size, struct library* library, const char* name, int device) {
  ENTER(function)
  REQUIRE(is_library(library), INVALID_HANDLE)
  REQUIRE(device >= 0, INVALID_CONTEXT)
  REQUIRE(!capturing, CAPTURED)
  const struct global* global = find_global(library, name, device);
  REQUIRE(global, NOT_FOUND)
  *address = global->memory;
  *size = global->size;
  note("(%s, device %d)\n", name, device);
  LEAVE
}

#ifndef HIP

struct attribute {
  uint32_t id;
  char padding[4];
  uint32_t value[16];
};
// Whether the extents are those that a kernel requires. Kernels without requirements accept any.
static int is_required(const uint32_t* required, const uint32_t* extents) {
  return !required[0] || memcmp(required, extents, 3 * sizeof *extents) == 0;
}

struct config {
  struct extent grid, block;
  uint32_t shared;
  void* stream;
  struct attribute* attributes;
  uint32_t count;
};
static int is_in_graph(const struct library* library);
static int is_captured(const void* stream);
static void add_captured(struct kernel* kernel, const struct config* config, void** params, struct context* context);

int cuInit(unsigned flags) {
  ENTER("cuInit")
  REQUIRE(flags == 0, INVALID_VALUE)
  initialised = 1;
  note("\n");
  LEAVE
}
int cuDeviceGet(int* device, int ordinal) {
  ENTER("cuDeviceGet")
  REQUIRE(initialised, 3)
  REQUIRE(ordinal >= 0 && ordinal < DEVICES, 101)
  *device = ordinal + 10;
  note("(%d)\n", ordinal);
  LEAVE
}
int cuDeviceGetAttribute(int* value, int attribute, int device) {
  ENTER("cuDeviceGetAttribute")
  REQUIRE(device >= 10 && device < 10 + DEVICES, 101)
  REQUIRE(attribute_of(attribute, device - 10, value), INVALID_VALUE)
  note("(%d)\n", attribute);
  LEAVE
}
int cuDevicePrimaryCtxRetain(void** context, int device) {
  ENTER("cuDevicePrimaryCtxRetain")
  REQUIRE(device >= 10 && device < 10 + DEVICES, 101)
  REQUIRE(!capturing, CAPTURED)
  contexts[device - 10].retained++;
  *context = &contexts[device - 10];
  note("(%d)\n", device - 10);
  LEAVE
}
int cuDevicePrimaryCtxRelease(int device) {
  ENTER("cuDevicePrimaryCtxRelease")
  REQUIRE(!deinitialised, DEINITIALIZED)
  REQUIRE(device >= 10 && device < 10 + DEVICES, 101)
  REQUIRE(contexts[device - 10].retained > 0, INVALID_CONTEXT)
  contexts[device - 10].retained--;
  note("(%d)\n", device - 10);
  LEAVE
}
int cuCtxGetCurrent(void** context) {
  ENTER("cuCtxGetCurrent")
  *context = depth ? stack[depth - 1] : NULL;
  note("\n");
  LEAVE
}
int cuCtxPushCurrent(struct context* context) {
  ENTER("cuCtxPushCurrent")
  REQUIRE(context >= contexts && context < contexts + DEVICES && context->retained, INVALID_CONTEXT)
  stack[depth++] = context;
  note("(%d)\n", context->device);
  LEAVE
}
int cuCtxPopCurrent(void** context) {
  // the context is popped even if the call is made to fail, so tests can continue
  if (depth) *context = stack[--depth];
  else unbalanced++;
  ENTER("cuCtxPopCurrent")
  note("\n");
  LEAVE
}
int cuLibraryLoadData(struct library** library, const char* image, void* a, void* b, unsigned c, void* d, void* e, unsigned f) {
  ENTER("cuLibraryLoadData")
  REQUIRE(!a && !b && !c && !d && !e && !f, INVALID_VALUE)
  REQUIRE(!capturing, CAPTURED)
  *library = load(image, -1);
  REQUIRE(*library, INVALID_IMAGE)
  note("\n");
  LEAVE
}
int cuLibraryUnload(struct library* library) {
  ENTER("cuLibraryUnload")
  REQUIRE(!deinitialised, DEINITIALIZED)
  REQUIRE(is_library(library), INVALID_HANDLE)
  REQUIRE(!is_in_graph(library), INVALID_VALUE)
  unload(library);
  note("\n");
  LEAVE
}
int cuLibraryGetKernel(struct kernel** kernel, struct library* library, const char* name) {
  ENTER("cuLibraryGetKernel")
  REQUIRE(is_library(library), INVALID_HANDLE)
  REQUIRE(!capturing, CAPTURED)
  *kernel = find_kernel(library, name);
  REQUIRE(*kernel, NOT_FOUND)
  note("(%s)\n", name);
  LEAVE
}
int cuKernelGetParamInfo(struct kernel* kernel, uint64_t index, uint64_t* offset, uint64_t* size) {
  ENTER("cuKernelGetParamInfo")
  REQUIRE(is_kernel(kernel), INVALID_HANDLE)
  // driver 580 wants a current context
  REQUIRE(depth, INVALID_CONTEXT)
  REQUIRE(!capturing, CAPTURED)
  REQUIRE(index < MOST_PARAMS && kernel->facts.sizes[index], INVALID_VALUE)
  *offset = kernel->facts.offsets[index];
  *size = kernel->facts.sizes[index];
  note("(%d, %d)\n", (int)index, (int)*size);
  LEAVE
}
int cuKernelSetAttribute(int attribute, int value, struct kernel* kernel, int device) {
  ENTER("cuKernelSetAttribute")
  REQUIRE(is_kernel(kernel), INVALID_HANDLE)
  REQUIRE(device >= 10 && device < 10 + DEVICES, 101)
  REQUIRE(attribute == 8 || attribute == 14, INVALID_VALUE)
  REQUIRE(!capturing, CAPTURED)
  if (attribute == 8) {
    int most;
    attribute_of(97, device - 10, &most);
    REQUIRE(value >= 0 && value + (int)kernel->facts.static_shared <= most, INVALID_VALUE)
    kernel->shared[device - 10] = value;
    kernel->is_set[device - 10] = 1;
  } else {
    kernel->non_portable[device - 10] = value;
  }
  note("(%d, %d, %d)\n", attribute, value, device - 10);
  LEAVE
}
// The max size of a kernel's dynamic shared memory: attribute 8 if it is set, otherwise 48 KiB minus the static size
// (cuda.h).
static int most_dynamic(const struct kernel* kernel, int device) {
  const int own = (int)kernel->facts.static_shared, without_asking = 48 << 10;
  if (kernel->is_set[device]) return kernel->shared[device];
  return own < without_asking ? without_asking - own : 0;
}
int cuKernelGetAttribute(int* value, int attribute, struct kernel* kernel, int device) {
  ENTER("cuKernelGetAttribute")
  REQUIRE(is_kernel(kernel), INVALID_HANDLE)
  REQUIRE(device >= 10 && device < 10 + DEVICES, 101)
  REQUIRE(attribute == 1 || attribute == 8, INVALID_VALUE)
  REQUIRE(!capturing, CAPTURED)
  *value = attribute == 1 ? (int)kernel->facts.static_shared : most_dynamic(kernel, device - 10);
  note("(%d, %d)\n", attribute, device - 10);
  LEAVE
}
int cuLaunchKernelEx(const struct config* config, struct kernel* kernel, void** params, void** extra) {
  ENTER("cuLaunchKernelEx")
  REQUIRE(is_kernel(kernel), INVALID_HANDLE)
  REQUIRE(!extra, INVALID_VALUE)
  REQUIRE(fits(config->grid, config->block), INVALID_VALUE)
  // the tests' streams contain the device's number in their lowest bit
  const int special = (uintptr_t)config->stream <= 2;
  uint64_t event;
  REQUIRE(!special || depth, INVALID_CONTEXT)
  const int device = special ? stack[depth - 1]->device : (int)((uintptr_t)config->stream & 1);
  REQUIRE(contexts[device].retained, INVALID_CONTEXT)
  REQUIRE(!captured_stream || (uintptr_t)config->stream > 1, CAPTURE_IMPLICIT)
  REQUIRE(!kernel->library->cubin || cubin_runs_on(kernel->library->cubin, (uint32_t)capability[device]), NO_BINARY)
  REQUIRE(is_required(kernel->facts.required_block, &config->block.x), INVALID_VALUE)
  REQUIRE(config->shared <= (uint32_t)most_dynamic(kernel, device), INVALID_VALUE)
  // the driver sets a tile kernel's block and shared memory
  REQUIRE(!kernel->facts.is_tile || config->shared == 0, INVALID_VALUE)
  note("(grid %u %u %u, block %u %u %u, shared %u, device %d", config->grid.x, config->grid.y, config->grid.z, config->block.x, config->block.y,
       config->block.z, config->shared, device);
  for (uint32_t i = 0; i < config->count; i++) {
    const struct attribute* attribute = &config->attributes[i];
    const uint32_t* value = attribute->value;
    note(", attribute %u", attribute->id);
    switch (attribute->id) {
      case 0:
        break;
      case 2:
      case 6:
        REQUIRE(value[0] == 1, INVALID_VALUE)
        break;
      case 5:
        note(" = %u", value[0]);
        REQUIRE(value[0] <= 2, INVALID_VALUE)
        break;
      case 8:
        note(" = %d", (int)value[0]);
        break;
      case 10:
        note(" = %u", value[0]);
        REQUIRE(value[0] <= 1, INVALID_VALUE)
        break;
      case 12:
        // an event, then its flags
        memcpy(&event, value, sizeof event);
        note(" = %llu", (unsigned long long)event);
        REQUIRE(version >= 12030 && event && !value[2], INVALID_VALUE)
        break;
      case 14:
        note(" = %u", value[0]);
        REQUIRE(version >= 12050 && value[0] <= 100, INVALID_VALUE)
        break;
      case 4:
      case 11:
        note(" = %u %u %u", value[0], value[1], value[2]);
        REQUIRE(value[0] && value[1] && value[2], INVALID_VALUE)
        REQUIRE(capability[device] >= 90, NOT_SUPPORTED)
        REQUIRE(attribute->id != 11 || version >= 12080, INVALID_VALUE)
        REQUIRE(attribute->id != 4 || is_required(kernel->facts.required_cluster, value), INVALID_VALUE)
        REQUIRE(config->grid.x % value[0] == 0 && config->grid.y % value[1] == 0 && config->grid.z % value[2] == 0, INVALID_VALUE)
        REQUIRE(value[0] * value[1] * value[2] <= (kernel->non_portable[device] ? 16 : 8), INVALID_VALUE)
        break;
      default:
        REQUIRE(0, INVALID_VALUE)
    }
  }
  note(")\n");
  last_stream = config->stream;
  if (is_captured(config->stream)) {
    add_captured(kernel, config, params, &contexts[device]);
    goto leave;
  }
  run_kernel(kernel, config->grid, config->block, config->shared, params, device);
  LEAVE
}
int cuTensorMapEncodeTiled(struct tensor_map* map, int type, uint32_t rank, uint8_t* address, const uint64_t* dims, const uint64_t* strides,
                           const uint32_t* box, const uint32_t* steps, int interleave, int swizzle, int l2, int fill) {
  static const int bytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
  ENTER("cuTensorMapEncodeTiled")
  // observed with a real driver; cuda.h doesn't document it
  REQUIRE(depth > 0, INVALID_CONTEXT)
  REQUIRE((uintptr_t)map % 64 == 0, INVALID_VALUE)
  REQUIRE(type >= 0 && type < 13 && rank >= 1 && rank <= 5, INVALID_VALUE)
  REQUIRE((uintptr_t)address % (interleave == 2 ? 32 : 16) == 0, INVALID_VALUE)
  REQUIRE(interleave >= 0 && interleave <= 2 && swizzle >= 0 && swizzle <= 3 && l2 >= 0 && l2 <= 3 && fill >= 0 && fill <= 1, INVALID_VALUE)
  memset(map, 0, 128);
  map->magic = 0x70616d;
  map->address = address;
  map->rank = (uint8_t)rank;
  map->bytes = (uint8_t)bytes[type];
  for (uint32_t i = 0; i < rank; i++) {
    REQUIRE(dims[i] >= 1 && dims[i] <= 1ull << 32, INVALID_VALUE)
    REQUIRE(box[i] >= 1 && box[i] <= 256 && steps[i] >= 1 && steps[i] <= 8, INVALID_VALUE)
    map->dims[i] = dims[i];
    map->box[i] = (uint16_t)box[i];
    map->steps[i] = (uint8_t)steps[i];
    if (i + 1 < rank) {
      REQUIRE(strides[i] % 16 == 0 && strides[i] < 1ull << 40, INVALID_VALUE)
      map->strides[i] = strides[i];
    }
  }
  const uint32_t inner = box[0] * map->bytes;
  REQUIRE(interleave || inner % 16 == 0, INVALID_VALUE)
  REQUIRE(!swizzle || interleave || inner <= 16u << swizzle, INVALID_VALUE)
  note("(type %d, rank %u, dims", type, rank);
  for (uint32_t i = 0; i < rank; i++) note(" %llu", (unsigned long long)dims[i]);
  note(", strides");
  for (uint32_t i = 0; i + 1 < rank; i++) note(" %llu", (unsigned long long)strides[i]);
  note(", box");
  for (uint32_t i = 0; i < rank; i++) note(" %u", box[i]);
  note(", steps");
  for (uint32_t i = 0; i < rank; i++) note(" %u", steps[i]);
  note(", interleave %d, swizzle %d, l2 %d, fill %d, address %llu)\n", interleave, swizzle, l2, fill,
       (unsigned long long)(uintptr_t)address);
  LEAVE
}
static int current_device(void) { return depth ? stack[depth - 1]->device : -1; }
int cuLibraryGetGlobal(void** address, uint64_t* size, struct library* library, const char* name) {
  return get_global("cuLibraryGetGlobal", address, size, library, name, current_device());
}
int cuMemsetD32Async(uint8_t* address, unsigned value, uint64_t count, void* stream) {
  return set_global("cuMemsetD32Async", address, value, 4, count, stream, current_device());
}
int cuMemsetD8Async(uint8_t* address, unsigned value, uint64_t count, void* stream) {
  return set_global("cuMemsetD8Async", address, value, 1, count, stream, current_device());
}
int cuDriverGetVersion(int* found) {
  ENTER("cuDriverGetVersion")
  *found = version;
  note("(%d)\n", version);
  LEAVE
}
#include "graphs.h"

int cuGetErrorName(int status, const char** out) { return standin_error_name(status, out); }
int cuGetErrorString(int status, const char** out) { return standin_error_text(status, out); }

static const struct {
  const char* name;
  int since;
  void* address;
} functions[] = {
    {"cuInit", 2000, cuInit},
    {"cuDeviceGet", 2000, cuDeviceGet},
    {"cuDeviceGetAttribute", 2000, cuDeviceGetAttribute},
    {"cuDevicePrimaryCtxRetain", 7000, cuDevicePrimaryCtxRetain},
    {"cuDevicePrimaryCtxRelease", 11000, cuDevicePrimaryCtxRelease},
    {"cuCtxGetCurrent", 4000, cuCtxGetCurrent},
    {"cuCtxPushCurrent", 4000, cuCtxPushCurrent},
    {"cuCtxPopCurrent", 4000, cuCtxPopCurrent},
    {"cuLibraryLoadData", 12000, cuLibraryLoadData},
    {"cuLibraryGetKernel", 12000, cuLibraryGetKernel},
    {"cuKernelSetAttribute", 12000, cuKernelSetAttribute},
    {"cuLaunchKernelEx", 11060, cuLaunchKernelEx},
    {"cuLibraryUnload", 12000, cuLibraryUnload},
    {"cuGetErrorName", 6000, cuGetErrorName},
    {"cuGetErrorString", 6000, cuGetErrorString},
    {"cuTensorMapEncodeTiled", 12000, cuTensorMapEncodeTiled},
    {"cuKernelGetParamInfo", 12040, cuKernelGetParamInfo},
    {"cuKernelGetAttribute", 12000, cuKernelGetAttribute},
    {"cuDriverGetVersion", 2020, cuDriverGetVersion},
    {"cuLibraryGetGlobal", 12000, cuLibraryGetGlobal},
    {"cuMemsetD32Async", 3020, cuMemsetD32Async},
    {"cuMemsetD8Async", 3020, cuMemsetD8Async},
    {"cuStreamIsCapturing", 10000, cuStreamIsCapturing},
    {"cuGraphCreate", 10000, cuGraphCreate},
    {"cuGraphAddKernelNode", 12000, cuGraphAddKernelNode},
    {"cuGraphKernelNodeSetAttribute", 11000, cuGraphKernelNodeSetAttribute},
    {"cuGraphAddDependencies", 10000, cuGraphAddDependencies},
    {"cuGraphInstantiateWithFlags", 11040, cuGraphInstantiateWithFlags},
    {"cuGraphExecKernelNodeSetParams", 12000, cuGraphExecKernelNodeSetParams},
    {"cuGraphNodeSetEnabled", 11060, cuGraphNodeSetEnabled},
    {"cuGraphLaunch", 10000, cuGraphLaunch},
    {"cuGraphExecDestroy", 10000, cuGraphExecDestroy},
    {"cuGraphDestroy", 10000, cuGraphDestroy},
};

// NVRTC 12.9 looks for a driver with this name in its process, and asks it for tables of functions. There are none.
int cuGetExportTable(const void** table, const void* id) {
  (void)id;
  *table = NULL;
  return NOT_SUPPORTED;
}

int cuGetProcAddress_v2(const char* name, void** function, int wanted, uint64_t flags, void* found) {
  ENTER("cuGetProcAddress_v2")
  REQUIRE(flags == 0 && !found, INVALID_VALUE)
  *function = NULL;
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
    if (strcmp(functions[i].name, name) == 0 && functions[i].since <= wanted && functions[i].since <= version && strcmp(missing, name) != 0) *function = functions[i].address;
  }
  REQUIRE(*function, NOT_FOUND)
  note("(%s, %d)\n", name, wanted);
  LEAVE
}

#else

static void forget_graphs(void) {}

int hipInit(unsigned flags) {
  ENTER("hipInit")
  REQUIRE(flags == 0, INVALID_VALUE)
  initialised = 1;
  note("\n");
  LEAVE
}
int hipDeviceGet(int* device, int ordinal) {
  ENTER("hipDeviceGet")
  REQUIRE(initialised && ordinal >= 0 && ordinal < DEVICES, 101)
  *device = ordinal;
  note("(%d)\n", ordinal);
  LEAVE
}
int hipDeviceGetAttribute(int* value, int attribute, int device) {
  ENTER("hipDeviceGetAttribute")
  REQUIRE(device >= 0 && device < DEVICES, 101)
  switch (attribute) {
    case 23: *value = 9; break;
    case 61: *value = 4; break;
    case 56:
    case 26:
    case 27:
    case 28: *value = 1024; break;
    case 74: *value = 64 << 10; break;
    default: REQUIRE(0, INVALID_VALUE)
  }
  note("(%d)\n", attribute);
  LEAVE
}
int hipGetDevice(int* device) {
  ENTER("hipGetDevice")
  *device = hip_device;
  note("\n");
  LEAVE
}
int hipSetDevice(int device) {
  ENTER("hipSetDevice")
  REQUIRE(device >= 0 && device < DEVICES, 101)
  hip_device = device;
  note("(%d)\n", device);
  LEAVE
}
int hipModuleLoadData(struct library** module, const char* image) {
  ENTER("hipModuleLoadData")
  *module = load(image, hip_device);
  REQUIRE(*module, INVALID_IMAGE)
  note("(device %d)\n", hip_device);
  LEAVE
}
int hipModuleUnload(struct library* module) {
  ENTER("hipModuleUnload")
  REQUIRE(is_library(module), INVALID_HANDLE)
  unload(module);
  note("\n");
  LEAVE
}
int hipModuleGetFunction(struct kernel** kernel, struct library* module, const char* name) {
  ENTER("hipModuleGetFunction")
  REQUIRE(is_library(module), INVALID_HANDLE)
  *kernel = find_kernel(module, name);
  REQUIRE(*kernel, NOT_FOUND)
  note("(%s)\n", name);
  LEAVE
}
static int launch(const char* name, struct kernel* kernel, struct extent grid, struct extent block, uint32_t shared, void** params) {
  ENTER(name)
  REQUIRE(is_kernel(kernel) && kernel->library->device == hip_device, INVALID_HANDLE)
  REQUIRE(fits(grid, block) && shared <= 64 << 10, INVALID_VALUE)
  note("(grid %u %u %u, block %u %u %u, shared %u, device %d)\n", grid.x, grid.y, grid.z, block.x, block.y, block.z, shared, hip_device);
  run_kernel(kernel, grid, block, shared, params, hip_device);
  LEAVE
}
int hipModuleLaunchKernel(struct kernel* kernel, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                          void* stream, void** params, void** extra) {
  last_stream = stream;
  if (extra) return INVALID_VALUE;
  return launch("hipModuleLaunchKernel", kernel, (struct extent){gx, gy, gz}, (struct extent){bx, by, bz}, shared, params);
}
int hipModuleLaunchCooperativeKernel(struct kernel* kernel, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                                     unsigned shared, void* stream, void** params) {
  last_stream = stream;
  return launch("hipModuleLaunchCooperativeKernel", kernel, (struct extent){gx, gy, gz}, (struct extent){bx, by, bz}, shared, params);
}
int hipModuleGetGlobal(void** address, uint64_t* size, struct library* module, const char* name) {
  return get_global("hipModuleGetGlobal", address, size, module, name, hip_device);
}
int hipMemsetD32Async(uint8_t* address, int value, uint64_t count, void* stream) {
  return set_global("hipMemsetD32Async", address, (uint32_t)value, 4, count, stream, hip_device);
}
int hipMemsetD8Async(uint8_t* address, unsigned char value, uint64_t count, void* stream) {
  return set_global("hipMemsetD8Async", address, value, 1, count, stream, hip_device);
}
int hipDrvGetErrorName(int status, const char** out) { return standin_error_name(status, out); }
int hipDrvGetErrorString(int status, const char** out) { return standin_error_text(status, out); }

#endif
