// The system functions that the stand-in driver needs: a lock, libraries, fibers, aligned memory, a search in bytes.
#ifndef SYSTEM_H
#define SYSTEM_H

#include <stdlib.h>
#include <string.h>

#define FIBER_STACK (32 << 10)

#ifdef _WIN32

#include <malloc.h>
#include <windows.h>

typedef SRWLOCK lock_t;
#define LOCK_INITIALIZER SRWLOCK_INIT
static void acquire(lock_t* lock) { AcquireSRWLockExclusive(lock); }
static void release(lock_t* lock) { ReleaseSRWLockExclusive(lock); }

static void* open_library(const char* path) { return (void*)LoadLibraryA(path); }
static void* find_symbol(void* library, const char* name) { return (void*)(uintptr_t)GetProcAddress((HMODULE)library, name); }

static void* allocate_aligned(size_t align, size_t size) { return _aligned_malloc(size, align); }
static void free_aligned(void* memory) { _aligned_free(memory); }

typedef struct {
  void* fiber;
  void (*run)(void);
} fiber_t;
static __thread void* scheduler;

static void CALLBACK start_fiber(void* fiber) { ((fiber_t*)fiber)->run(); }
static void make_fiber(fiber_t* fiber, void (*run)(void)) {
  // The thread is a fiber already if the other driver has made it one. A second conversion fails.
  if (!scheduler) scheduler = IsThreadAFiber() ? GetCurrentFiber() : ConvertThreadToFiber(NULL);
  fiber->run = run;
  fiber->fiber = CreateFiber(FIBER_STACK, start_fiber, fiber);
}
static void enter_fiber(fiber_t* fiber) { SwitchToFiber(fiber->fiber); }
static void leave_fiber(fiber_t* fiber) {
  (void)fiber;
  SwitchToFiber(scheduler);
}
static void free_fiber(fiber_t* fiber) { DeleteFiber(fiber->fiber); }

#else

#include <dlfcn.h>
#include <pthread.h>
#include <ucontext.h>

typedef pthread_mutex_t lock_t;
#define LOCK_INITIALIZER PTHREAD_MUTEX_INITIALIZER
static void acquire(lock_t* lock) { pthread_mutex_lock(lock); }
static void release(lock_t* lock) { pthread_mutex_unlock(lock); }

static void* open_library(const char* path) { return dlopen(path, RTLD_NOW | RTLD_LOCAL); }
static void* find_symbol(void* library, const char* name) { return dlsym(library, name); }

static void* allocate_aligned(size_t align, size_t size) { return aligned_alloc(align, (size + align - 1) / align * align); }
static void free_aligned(void* memory) { free(memory); }

typedef struct {
  ucontext_t context;
  void* stack;
} fiber_t;
static __thread ucontext_t scheduler;

static void make_fiber(fiber_t* fiber, void (*run)(void)) {
  fiber->stack = malloc(FIBER_STACK);
  getcontext(&fiber->context);
  fiber->context.uc_stack.ss_sp = fiber->stack;
  fiber->context.uc_stack.ss_size = FIBER_STACK;
  fiber->context.uc_link = NULL;
  makecontext(&fiber->context, run, 0);
}
static void enter_fiber(fiber_t* fiber) { swapcontext(&scheduler, &fiber->context); }
static void leave_fiber(fiber_t* fiber) { swapcontext(&fiber->context, &scheduler); }
static void free_fiber(fiber_t* fiber) { free(fiber->stack); }

#endif

// The address of the first occurrence of a text in bytes.
static const char* find_text(const char* bytes, uint64_t size, const char* text) {
  const size_t length = strlen(text);
  for (; size >= length; bytes++, size--)
    if (memcmp(bytes, text, length) == 0) return bytes;
  return NULL;
}

#endif
