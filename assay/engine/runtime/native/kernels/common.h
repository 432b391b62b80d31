/* What all units share. Exported functions are called by Python through ctypes, the rest is static. */
#ifndef ASSAY_COMMON_H
#define ASSAY_COMMON_H

#include <stddef.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))
#define INLINE static inline __attribute__((always_inline, unused))

/* How values are quantized. By exponents of any rows: what lies beyond them is clamped, what is not finite is 0. Within
   their own nothing is asked, by one factor or by two: of a row that is not finite anything comes, and its exponent
   makes the result a NaN. */
enum { ANY, WITHIN, WITHIN_TWO };

#endif
