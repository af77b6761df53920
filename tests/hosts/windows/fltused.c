/* A marker that floats are used, which LLVM's objects refer to and Microsoft's C library defines. mingw's objects don't
 * refer to it, so mingw doesn't define it. */
int _fltused = 0x9875;
