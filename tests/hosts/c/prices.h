/* The kind of module `hosts.prices` for a host in C. The C API can't define modules. But a system library is a module
   too, and any code can register its functions. */
#pragma once

/* Registers `ffi.Module.load_from_bytes.hosts.prices`; 0 on success. */
int register_prices(void);
