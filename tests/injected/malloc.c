/* Allocations that fail on request, for every library of the process: preload this one (LD_PRELOAD). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* block, size_t size);
void* __libc_memalign(size_t alignment, size_t size);

/* The allocations that succeed from now on; negative: all. */
static atomic_long left = -1;
/* Only one allocation fails, and the next ones succeed. */
static atomic_int only_one;
static atomic_long failed;

/* Lets allocations fail after so many that succeed, all or only one. Returns how many failed since the last call. */
long fail_allocations_after(long count, int one) {
  atomic_store(&only_one, one);
  atomic_store(&left, count);
  return atomic_exchange(&failed, 0);
}

/* libgcc uses what it allocates for an unwind table (`__register_frame`) without a check: a failure is a SIGSEGV that
   its callers can't prevent. So its allocations succeed. */
static int is_of_libgcc(void* caller) {
  Dl_info found;
  return dladdr(caller, &found) != 0 && found.dli_fname != NULL && strstr(found.dli_fname, "libgcc_s") != NULL;
}

static int fails(void* caller) {
  if (atomic_load(&left) == 0 && is_of_libgcc(caller)) return 0;
  long count = atomic_load(&left);
  do {
    if (count < 0) return 0;
  } while (!atomic_compare_exchange_weak(&left, &count, count > 0 ? count - 1 : atomic_load(&only_one) ? -1 : 0));
  if (count > 0) return 0;
  atomic_fetch_add(&failed, 1);
  errno = ENOMEM;
  return 1;
}

#define FAILS fails(__builtin_return_address(0))

void* malloc(size_t size) { return FAILS ? NULL : __libc_malloc(size); }

void* calloc(size_t count, size_t size) { return FAILS ? NULL : __libc_calloc(count, size); }

void* realloc(void* block, size_t size) { return FAILS ? NULL : __libc_realloc(block, size); }

void* memalign(size_t alignment, size_t size) { return FAILS ? NULL : __libc_memalign(alignment, size); }

void* aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }

int posix_memalign(void** out, size_t alignment, size_t size) {
  void* block = memalign(alignment, size);
  if (block == NULL) return ENOMEM;
  *out = block;
  return 0;
}
