/* bcryptprimitives.dll for Wine 8, which has none: the random bytes that Rust's standard library asks it for. */
#include <windows.h>

#include <ntsecapi.h>

/* BOOL ProcessPrng(PBYTE, SIZE_T): fills the memory with random bytes, and doesn't fail. */
__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T size) {
  while (size > 0) {
    ULONG part = size > 0x10000 ? 0x10000 : (ULONG)size;
    if (!RtlGenRandom(data, part)) return FALSE;
    data += part;
    size -= part;
  }
  return TRUE;
}
