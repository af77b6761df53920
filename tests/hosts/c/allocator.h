/* Memory for tensors that functions return. Upstream's runtime has none of its own, so the host provides it. */
#pragma once

#ifdef __cplusplus
extern "C"
#endif
/* Lets `TVMFFIEnvTensorAlloc` use malloc, in all threads; 0 on success. */
int use_malloc(void);
