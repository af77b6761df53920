/* What Microsoft's C library defines and LLVM's objects ask for: a mark that floats are used. mingw's objects don't ask, so that mingw has none. */
int _fltused = 0x9875;
