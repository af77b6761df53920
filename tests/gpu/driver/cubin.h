// Reads the parts of cubins that the stand-in driver needs: data about kernels in the header, symbols and `.nv.info`.
#ifndef CUBIN_H
#define CUBIN_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_PARAMS 64

// The data about a kernel in an image.
struct facts {
  // The sizes of the parameters, terminated by 0, and their offsets in the parameters of a launch.
  uint32_t sizes[MOST_PARAMS + 1], offsets[MOST_PARAMS + 1];
  uint32_t static_shared;
  // Whether it is a tile kernel. Its launches specify blocks of one thread.
  int is_tile;
  // The block and cluster for which the kernel was compiled; 0 for any.
  uint32_t required_block[3], required_cluster[3];
};

static inline uint64_t cubin_number(const uint8_t* bytes, uint64_t at, size_t size) {
  uint64_t number = 0;
  memcpy(&number, bytes + at, size);
  return number;
}

// The header of a section.
static inline const uint8_t* cubin_section(const uint8_t* elf, uint64_t number) {
  return elf + cubin_number(elf, 40, 8) + number * cubin_number(elf, 58, 2);
}
static inline uint64_t cubin_sections(const uint8_t* elf) { return cubin_number(elf, 60, 2); }
static inline const uint8_t* cubin_contents(const uint8_t* elf, const uint8_t* section) { return elf + cubin_number(section, 24, 8); }
static inline const char* cubin_name(const uint8_t* elf, const uint8_t* section) {
  const uint8_t* names = cubin_section(elf, cubin_number(elf, 62, 2));
  return (const char*)cubin_contents(elf, names) + cubin_number(section, 0, 4);
}
static inline const uint8_t* cubin_find(const uint8_t* elf, const char* prefix, const char* name) {
  for (uint64_t i = 0; i < cubin_sections(elf); i++) {
    const char* at = cubin_name(elf, cubin_section(elf, i));
    if (strncmp(at, prefix, strlen(prefix)) == 0 && strcmp(at + strlen(prefix), name) == 0) return cubin_section(elf, i);
  }
  return NULL;
}

// A copy of a cubin, because the caller may free the image after loading. NULL for other ELF files.
static inline uint8_t* cubin_copy(const char* image) {
  const uint8_t* elf = (const uint8_t*)image;
  if (cubin_number(elf, 18, 2) != 190) return NULL;
  uint64_t size = cubin_number(elf, 40, 8) + cubin_sections(elf) * cubin_number(elf, 58, 2);
  for (uint64_t i = 0; i < cubin_sections(elf); i++) {
    const uint8_t* section = cubin_section(elf, i);
    // SHT_NOBITS sections have no bytes in the file
    const uint64_t end = cubin_number(section, 24, 8) + (cubin_number(section, 4, 4) == 8 ? 0 : cubin_number(section, 32, 8));
    if (end > size) size = end;
  }
  uint8_t* copy = (uint8_t*)malloc(size);
  memcpy(copy, elf, size);
  return copy;
}

// Whether the code of a cubin runs on a device with a compute capability, such as 90.
static inline int cubin_runs_on(const uint8_t* elf, uint32_t capability) {
  const uint32_t flags = (uint32_t)cubin_number(elf, 48, 4);
  const int is_old = elf[8] < 8;
  const uint32_t target = (is_old ? flags : flags >> 8) & 0xff;
  const int is_exact = (flags & (is_old ? 0x800u : 0x8u)) != 0;
  return is_exact ? target == capability : target / 10 == capability / 10 && target <= capability;
}

static inline int cubin_has_entry(const uint8_t* elf, const char* name) {
  for (uint64_t i = 0; i < cubin_sections(elf); i++) {
    const uint8_t* section = cubin_section(elf, i);
    // SHT_SYMTAB
    if (cubin_number(section, 4, 4) != 2) continue;
    const uint8_t* symbols = cubin_contents(elf, section);
    const char* names = (const char*)cubin_contents(elf, cubin_section(elf, cubin_number(section, 40, 4)));
    for (const uint8_t* symbol = symbols; symbol < symbols + cubin_number(section, 32, 8); symbol += 24) {
      // STT_FUNC with the flag STO_CUDA_ENTRY
      if ((symbol[4] & 0xf) == 2 && symbol[5] & 0x10 && strcmp(names + cubin_number(symbol, 0, 4), name) == 0) return 1;
    }
  }
  return 0;
}

// Reads a cubin's data about a kernel; 0 if the cubin lacks the kernel, or the stand-in can't interpret the data.
static inline int cubin_facts(const uint8_t* elf, const char* name, struct facts* facts) {
  const uint8_t* info = cubin_find(elf, ".nv.info.", name);
  if (!info || !cubin_has_entry(elf, name)) return 0;
  memset(facts, 0, sizeof *facts);
  const uint8_t *at = cubin_contents(elf, info), *end = at + cubin_number(info, 32, 8);
  while (at < end) {
    // a format, an attribute, and 16 bits: the value, or in format 4 the number of bytes that follow
    const uint32_t size = at[0] == 4 ? (uint32_t)cubin_number(at, 2, 2) : 0;
    const uint8_t* value = at + 4;
    if (at[1] == 0x17 && size == 12) {  // EIATTR_KPARAM_INFO
      const uint32_t ordinal = (uint32_t)cubin_number(value, 4, 2);
      if (ordinal >= MOST_PARAMS) return 0;
      facts->offsets[ordinal] = (uint32_t)cubin_number(value, 6, 2);
      facts->sizes[ordinal] = (uint32_t)cubin_number(value, 8, 4) >> 18;
    } else if ((at[1] == 0x10 || at[1] == 0x3d) && size == 12) {  // EIATTR_REQNTID, EIATTR_CTA_PER_CLUSTER
      memcpy(at[1] == 0x10 ? facts->required_block : facts->required_cluster, value, 12);
    } else if (at[1] == 0x66 && size == 4) {  // EIATTR_LANGUAGE; 7 is TILEIR
      facts->is_tile = cubin_number(value, 0, 4) == 7;
    }
    at = value + (size + 3) / 4 * 4;
  }
  if (facts->is_tile) memcpy(facts->required_block, (uint32_t[3]){1, 1, 1}, 12);
  // if the system reserves shared memory, each kernel's size includes it
  const uint8_t* shared = cubin_find(elf, ".nv.shared.", name);
  const uint32_t bytes = shared ? (uint32_t)cubin_number(shared, 32, 8) : 0;
  const uint32_t reserved = cubin_find(elf, ".nv.shared.reserved.0", "") ? 1024 : 0;
  facts->static_shared = bytes > reserved ? bytes - reserved : 0;
  return 1;
}

#endif
