/* What all units share. Exported functions are called by Python through ctypes, the rest is static. */
#ifndef ASSAY_COMMON_H
#define ASSAY_COMMON_H

#include <stddef.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))
#define INLINE static inline __attribute__((always_inline, unused))

#endif
