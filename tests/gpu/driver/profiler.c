// A profiler for NVTX and rocTX: it prints ranges. NVTX's headers state how it is found and what it gives.
#include <stdio.h>

#ifdef NVTX
#define NVTX_NO_IMPL
#include <nvtx3/nvToolsExt.h>

static int push(const char *name) { return printf("nvtx push %s\n", name); }
static int pop(void) { return printf("nvtx pop\n"); }

NVTX_EXPORT_UNMANGLED_FUNCTION_NAME
int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get) {
  const NvtxExportTableVersionInfo *version = get(NVTX_ETID_VERSIONINFO);
  const NvtxExportTableCallbacks *callbacks = get(NVTX_ETID_CALLBACKS);
  NvtxFunctionTable table = 0;
  unsigned size = 0;
  if (!version || version->struct_size < sizeof(*version) || version->version != NVTX_VERSION) return 0;
  version->SetInjectionNvtxVersion(NVTX_VERSION);
  if (!callbacks || callbacks->struct_size < sizeof(*callbacks)) return 0;
  if (callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CUDA, &table, &size)) return 0;
  if (!callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &table, &size)) return 0;
  if (size <= NVTX_CBID_CORE_RangePop || get(NVTX_ETID_INVALID)) return 0;
  for (unsigned i = 1; i < size; i++)
    if (!table[i] || *table[i]) return 0;
  *table[NVTX_CBID_CORE_RangePushA] = (NvtxFunctionPointer)push;
  *table[NVTX_CBID_CORE_RangePop] = (NvtxFunctionPointer)pop;
  return 1;
}
#else
int roctxRangePushA(const char *name) { return printf("roctx push %s\n", name); }
int roctxRangePop(void) { return printf("roctx pop\n"); }
#endif
