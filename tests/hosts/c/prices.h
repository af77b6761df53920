/* The kind of module `hosts.prices` for a host in C. What a module is inside is no part of the C API; but a system library
   is a module, too, and anybody can register its functions. */
#pragma once

/* Registers `ffi.Module.load_from_bytes.hosts.prices`; 0 on success. */
int register_prices(void);
