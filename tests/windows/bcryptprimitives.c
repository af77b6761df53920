/* bcryptprimitives.dll, which Wine 8 lacks. Rust's standard library calls it for random bytes. */
#include <windows.h>

#include <ntsecapi.h>

/* BOOL ProcessPrng(PBYTE, SIZE_T): fills the memory with random bytes, and never fails. */
__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T size) {
  while (size > 0) {
    ULONG part = size > 0x10000 ? 0x10000 : (ULONG)size;
    if (!RtlGenRandom(data, part)) return FALSE;
    data += part;
    size -= part;
  }
  return TRUE;
}
