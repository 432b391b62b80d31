/* Functions of `assay/protocol/arithmetic/functions.py`, by the operations of `scalar.h`.
 * Written by `python -m assay.engine.runtime.fused.functions`; a test compares. */
#ifndef ASSAY_FUNCTIONS_H
#define ASSAY_FUNCTIONS_H

#include "abreast.h"

/* clang-format off */
FUNCTION_2(f32_gelu)
{
    ARGUMENT(r0, a)
    ARGUMENT(r1, b)
    EACH(r2, f32_abs_of(r0[u]))
    const vi r3 = splat_i((int32_t)0x41680000u);
    EACH(r4, f32_min_of(r2[u], r3))
    const vi r5 = splat_i((int32_t)0x3f000000u);
    EACH(r6, f32_mul_of(r0[u], r0[u]))
    const vi r7 = splat_i((int32_t)0x38e1df58u);
    EACH(r8, f32_mul_of(r6[u], r7))
    const vi r9 = splat_i((int32_t)0xba9b86d0u);
    EACH(r10, f32_add_of(r8[u], r9))
    EACH(r11, f32_mul_of(r6[u], r10[u]))
    const vi r12 = splat_i((int32_t)0x3c236b6au);
    EACH(r13, f32_add_of(r11[u], r12))
    EACH(r14, f32_mul_of(r6[u], r13[u]))
    const vi r15 = splat_i((int32_t)0xbd882c37u);
    EACH(r16, f32_add_of(r14[u], r15))
    EACH(r17, f32_mul_of(r6[u], r16[u]))
    const vi r18 = splat_i((int32_t)0x3ecc422au);
    EACH(r19, f32_add_of(r17[u], r18))
    EACH(r20, f32_mul_of(r0[u], r19[u]))
    EACH(r21, f32_add_of(r5, r20[u]))
    EACH(r22, f32_mul_of(r0[u], r21[u]))
    const vi r23 = splat_i((int32_t)0x3f800000u);
    EACH(r24, f32_sub_of(r4[u], r23))
    const vi r25 = splat_i((int32_t)0x3bc19c3fu);
    EACH(r26, f32_mul_of(r24[u], r25))
    const vi r27 = splat_i((int32_t)0x3d367a5du);
    EACH(r28, f32_add_of(r26[u], r27))
    EACH(r29, f32_mul_of(r24[u], r28[u]))
    const vi r30 = splat_i((int32_t)0x3e0ca926u);
    EACH(r31, f32_add_of(r29[u], r30))
    const vi r32 = splat_i((int32_t)0x377a32c7u);
    EACH(r33, f32_mul_of(r24[u], r32))
    const vi r34 = splat_i((int32_t)0x3c6d6fb4u);
    EACH(r35, f32_add_of(r33[u], r34))
    EACH(r36, f32_mul_of(r24[u], r35[u]))
    const vi r37 = splat_i((int32_t)0x3e13fcefu);
    EACH(r38, f32_add_of(r36[u], r37))
    EACH(r39, f32_mul_of(r24[u], r38[u]))
    const vi r40 = splat_i((int32_t)0x3f1b2b60u);
    EACH(r41, f32_add_of(r39[u], r40))
    EACH(r42, f32_mul_of(r24[u], r41[u]))
    const vi r43 = splat_i((int32_t)0x3f9d4291u);
    EACH(r44, f32_add_of(r42[u], r43))
    EACH(r45, f32_mul_of(r24[u], r44[u]))
    EACH(r46, f32_add_of(r23, r45[u]))
    EACH(r47, f32_div_of(r31[u], r46[u]))
    const vi r48 = splat_i((int32_t)0x00000000u);
    EACH(r49, f32_max_of(r0[u], r48))
    EACH(r50, f32_sub_of(r18, r47[u]))
    EACH(r51, f32_mul_of(r1[u], r50[u]))
    EACH(r52, f32_sub_of(r49[u], r51[u]))
    const vi r53 = splat_i((int32_t)0x3f333333u);
    EACH(r54, f32_lt_of(r4[u], r53))
    EACH(r55, select_word_of(r54[u], r22[u], r52[u]))
    RESULT(r55)
}

FUNCTION_2(f32_gelu_grad)
{
    ARGUMENT(r0, a)
    ARGUMENT(r1, b)
    EACH(r2, f32_abs_of(r0[u]))
    const vi r3 = splat_i((int32_t)0x41680000u);
    EACH(r4, f32_min_of(r2[u], r3))
    const vi r5 = splat_i((int32_t)0x3c5703f0u);
    EACH(r6, f32_mul_of(r4[u], r5))
    const vi r7 = splat_i((int32_t)0x3dd12195u);
    EACH(r8, f32_add_of(r6[u], r7))
    EACH(r9, f32_mul_of(r4[u], r8[u]))
    const vi r10 = splat_i((int32_t)0x3ea8fc4du);
    EACH(r11, f32_add_of(r9[u], r10))
    EACH(r12, f32_mul_of(r4[u], r11[u]))
    const vi r13 = splat_i((int32_t)0x3f000000u);
    EACH(r14, f32_add_of(r12[u], r13))
    const vi r15 = splat_i((int32_t)0x3d06d7ecu);
    EACH(r16, f32_mul_of(r4[u], r15))
    const vi r17 = splat_i((int32_t)0x3e82ba59u);
    EACH(r18, f32_add_of(r16[u], r17))
    EACH(r19, f32_mul_of(r4[u], r18[u]))
    const vi r20 = splat_i((int32_t)0x3f5e182bu);
    EACH(r21, f32_add_of(r19[u], r20))
    EACH(r22, f32_mul_of(r4[u], r21[u]))
    const vi r23 = splat_i((int32_t)0x3fba9f28u);
    EACH(r24, f32_add_of(r22[u], r23))
    EACH(r25, f32_mul_of(r4[u], r24[u]))
    const vi r26 = splat_i((int32_t)0x3f800000u);
    EACH(r27, f32_add_of(r25[u], r26))
    EACH(r28, f32_div_of(r14[u], r27[u]))
    const vi r29 = splat_i((int32_t)0x3ecc422au);
    EACH(r30, f32_mul_of(r4[u], r29))
    EACH(r31, f32_sub_of(r28[u], r30[u]))
    EACH(r32, f32_mul_of(r1[u], r31[u]))
    const vi r33 = splat_i((int32_t)0x00000000u);
    EACH(r34, f32_lt_of(r0[u], r33))
    EACH(r35, f32_sub_of(r26, r32[u]))
    EACH(r36, select_word_of(r34[u], r32[u], r35[u]))
    RESULT(r36)
}

FUNCTION_1(f32_erf)
{
    ARGUMENT(r0, a)
    const vi r1 = splat_i((int32_t)0x3f800000u);
    EACH(r2, f32_mul_of(r0[u], r0[u]))
    const vi r3 = splat_i((int32_t)0x389421eau);
    EACH(r4, f32_mul_of(r2[u], r3))
    const vi r5 = splat_i((int32_t)0xba4b9362u);
    EACH(r6, f32_add_of(r4[u], r5))
    EACH(r7, f32_mul_of(r2[u], r6[u]))
    const vi r8 = splat_i((int32_t)0x3ba91764u);
    EACH(r9, f32_add_of(r7[u], r8))
    EACH(r10, f32_mul_of(r2[u], r9[u]))
    const vi r11 = splat_i((int32_t)0xbcdbddeeu);
    EACH(r12, f32_add_of(r10[u], r11))
    EACH(r13, f32_mul_of(r2[u], r12[u]))
    const vi r14 = splat_i((int32_t)0x3de714c2u);
    EACH(r15, f32_add_of(r13[u], r14))
    EACH(r16, f32_mul_of(r2[u], r15[u]))
    const vi r17 = splat_i((int32_t)0xbec09397u);
    EACH(r18, f32_add_of(r16[u], r17))
    EACH(r19, f32_mul_of(r2[u], r18[u]))
    const vi r20 = splat_i((int32_t)0x3e0375d4u);
    EACH(r21, f32_add_of(r19[u], r20))
    EACH(r22, f32_mul_of(r0[u], r21[u]))
    EACH(r23, f32_add_of(r0[u], r22[u]))
    EACH(r24, f32_abs_of(r0[u]))
    const vi r25 = splat_i((int32_t)0x407d0000u);
    EACH(r26, f32_min_of(r24[u], r25))
    EACH(r27, f32_sub_of(r26[u], r1))
    const vi r28 = splat_i((int32_t)0x3c35f9a5u);
    EACH(r29, f32_mul_of(r27[u], r28))
    const vi r30 = splat_i((int32_t)0xbd166b4cu);
    EACH(r31, f32_add_of(r29[u], r30))
    EACH(r32, f32_mul_of(r27[u], r31[u]))
    const vi r33 = splat_i((int32_t)0x3dbfa1bbu);
    EACH(r34, f32_add_of(r32[u], r33))
    EACH(r35, f32_mul_of(r27[u], r34[u]))
    const vi r36 = splat_i((int32_t)0xbd17d3a0u);
    EACH(r37, f32_add_of(r35[u], r36))
    EACH(r38, f32_mul_of(r27[u], r37[u]))
    const vi r39 = splat_i((int32_t)0x3e379c77u);
    EACH(r40, f32_add_of(r38[u], r39))
    EACH(r41, f32_mul_of(r27[u], r40[u]))
    const vi r42 = splat_i((int32_t)0x3e96a7b3u);
    EACH(r43, f32_add_of(r41[u], r42))
    EACH(r44, f32_mul_of(r27[u], r43[u]))
    const vi r45 = splat_i((int32_t)0x3f2f2c4cu);
    EACH(r46, f32_add_of(r44[u], r45))
    EACH(r47, f32_mul_of(r27[u], r46[u]))
    const vi r48 = splat_i((int32_t)0x3f860924u);
    EACH(r49, f32_add_of(r47[u], r48))
    EACH(r50, f32_mul_of(r27[u], r49[u]))
    const vi r51 = splat_i((int32_t)0x3fcb405cu);
    EACH(r52, f32_add_of(r50[u], r51))
    EACH(r53, f32_mul_of(r52[u], r52[u]))
    EACH(r54, f32_mul_of(r53[u], r53[u]))
    EACH(r55, f32_div_of(r1, r54[u]))
    EACH(r56, f32_sub_of(r1, r55[u]))
    const vi r57 = splat_i((int32_t)0x00000000u);
    EACH(r58, f32_lt_of(r0[u], r57))
    EACH(r59, f32_neg_of(r56[u]))
    EACH(r60, select_word_of(r58[u], r59[u], r56[u]))
    const vi r61 = splat_i((int32_t)0x3f900000u);
    EACH(r62, f32_lt_of(r26[u], r61))
    EACH(r63, select_word_of(r62[u], r23[u], r60[u]))
    RESULT(r63)
}

FUNCTION_1(f32_tanh)
{
    ARGUMENT(r0, a)
    const vi r1 = splat_i((int32_t)0x3f800000u);
    EACH(r2, f32_mul_of(r0[u], r0[u]))
    const vi r3 = splat_i((int32_t)0xbacb2aceu);
    EACH(r4, f32_mul_of(r2[u], r3))
    const vi r5 = splat_i((int32_t)0xbeaaaaa6u);
    EACH(r6, f32_add_of(r4[u], r5))
    const vi r7 = splat_i((int32_t)0x3ecf2d39u);
    EACH(r8, f32_mul_of(r2[u], r7))
    EACH(r9, f32_add_of(r1, r8[u]))
    EACH(r10, f32_div_of(r6[u], r9[u]))
    EACH(r11, f32_mul_of(r0[u], r2[u]))
    EACH(r12, f32_mul_of(r10[u], r11[u]))
    EACH(r13, f32_add_of(r0[u], r12[u]))
    EACH(r14, f32_abs_of(r0[u]))
    const vi r15 = splat_i((int32_t)0x41200000u);
    EACH(r16, f32_min_of(r14[u], r15))
    EACH(r17, f32_add_of(r16[u], r16[u]))
    const vi r18 = splat_i((int32_t)0x3fb8aa3bu);
    EACH(r19, f32_mul_of(r17[u], r18))
    EACH(r20, f32_rint_of(r19[u]))
    const vi r21 = splat_i((int32_t)0x3f317200u);
    EACH(r22, f32_mul_of(r20[u], r21))
    EACH(r23, f32_sub_of(r17[u], r22[u]))
    const vi r24 = splat_i((int32_t)0xb5bfbe8eu);
    EACH(r25, f32_mul_of(r20[u], r24))
    EACH(r26, f32_add_of(r23[u], r25[u]))
    EACH(r27, f32_mul_of(r26[u], r26[u]))
    const vi r28 = splat_i((int32_t)0x3ab5cd15u);
    EACH(r29, f32_mul_of(r26[u], r28))
    const vi r30 = splat_i((int32_t)0x3c09129fu);
    EACH(r31, f32_add_of(r29[u], r30))
    EACH(r32, f32_mul_of(r26[u], r31[u]))
    const vi r33 = splat_i((int32_t)0x3d2aab7au);
    EACH(r34, f32_add_of(r32[u], r33))
    EACH(r35, f32_mul_of(r26[u], r34[u]))
    const vi r36 = splat_i((int32_t)0x3e2aaa5au);
    EACH(r37, f32_add_of(r35[u], r36))
    EACH(r38, f32_mul_of(r26[u], r37[u]))
    const vi r39 = splat_i((int32_t)0x3effffffu);
    EACH(r40, f32_add_of(r38[u], r39))
    EACH(r41, f32_mul_of(r27[u], r40[u]))
    EACH(r42, f32_add_of(r25[u], r41[u]))
    EACH(r43, f32_add_of(r23[u], r42[u]))
    EACH(r44, f32_to_i32_of(r20[u]))
    EACH(r45, f32_scale2_of(r1, r44[u]))
    EACH(r46, f32_add_of(r1, r45[u]))
    EACH(r47, f32_scale2_of(r43[u], r44[u]))
    EACH(r48, f32_add_of(r46[u], r47[u]))
    const vi r49 = splat_i((int32_t)0x40000000u);
    EACH(r50, f32_div_of(r49, r48[u]))
    EACH(r51, f32_sub_of(r1, r50[u]))
    const vi r52 = splat_i((int32_t)0x00000000u);
    EACH(r53, f32_lt_of(r0[u], r52))
    EACH(r54, f32_neg_of(r51[u]))
    EACH(r55, select_word_of(r53[u], r54[u], r51[u]))
    const vi r56 = splat_i((int32_t)0x3f100000u);
    EACH(r57, f32_lt_of(r16[u], r56))
    EACH(r58, select_word_of(r57[u], r13[u], r55[u]))
    RESULT(r58)
}

FUNCTION_1(f32_sigmoid)
{
    ARGUMENT(r0, a)
    EACH(r1, f32_neg_of(r0[u]))
    const vi r2 = splat_i((int32_t)0xc2d00000u);
    EACH(r3, f32_max_of(r1[u], r2))
    const vi r4 = splat_i((int32_t)0x42d00000u);
    EACH(r5, f32_min_of(r3[u], r4))
    const vi r6 = splat_i((int32_t)0x3fb8aa3bu);
    EACH(r7, f32_mul_of(r5[u], r6))
    EACH(r8, f32_rint_of(r7[u]))
    const vi r9 = splat_i((int32_t)0x3f317200u);
    EACH(r10, f32_mul_of(r8[u], r9))
    EACH(r11, f32_sub_of(r5[u], r10[u]))
    const vi r12 = splat_i((int32_t)0xb5bfbe8eu);
    EACH(r13, f32_mul_of(r8[u], r12))
    EACH(r14, f32_add_of(r11[u], r13[u]))
    EACH(r15, f32_mul_of(r14[u], r14[u]))
    const vi r16 = splat_i((int32_t)0x3ab5cd15u);
    EACH(r17, f32_mul_of(r14[u], r16))
    const vi r18 = splat_i((int32_t)0x3c09129fu);
    EACH(r19, f32_add_of(r17[u], r18))
    EACH(r20, f32_mul_of(r14[u], r19[u]))
    const vi r21 = splat_i((int32_t)0x3d2aab7au);
    EACH(r22, f32_add_of(r20[u], r21))
    EACH(r23, f32_mul_of(r14[u], r22[u]))
    const vi r24 = splat_i((int32_t)0x3e2aaa5au);
    EACH(r25, f32_add_of(r23[u], r24))
    EACH(r26, f32_mul_of(r14[u], r25[u]))
    const vi r27 = splat_i((int32_t)0x3effffffu);
    EACH(r28, f32_add_of(r26[u], r27))
    EACH(r29, f32_mul_of(r15[u], r28[u]))
    EACH(r30, f32_add_of(r13[u], r29[u]))
    EACH(r31, f32_add_of(r11[u], r30[u]))
    EACH(r32, f32_to_i32_of(r8[u]))
    const vi r33 = splat_i((int32_t)0x00000000u);
    const vi r34 = splat_i((int32_t)0x3f800000u);
    EACH(r35, i32_sub_of(r33, r32[u]))
    EACH(r36, i32_min_of(r32[u], r35[u]))
    EACH(r37, f32_scale2_of(r34, r36[u]))
    EACH(r38, f32_add_of(r34, r37[u]))
    EACH(r39, f32_sub_of(r38[u], r34))
    EACH(r40, f32_sub_of(r37[u], r39[u]))
    EACH(r41, i32_min_of(r32[u], r33))
    EACH(r42, f32_scale2_of(r31[u], r41[u]))
    EACH(r43, f32_add_of(r40[u], r42[u]))
    EACH(r44, f32_add_of(r38[u], r43[u]))
    EACH(r45, f32_div_of(r34, r44[u]))
    EACH(r46, i32_min_of(r33, r35[u]))
    EACH(r47, f32_scale2_of(r45[u], r46[u]))
    RESULT(r47)
}

FUNCTION_1(f32_log)
{
    ARGUMENT(r0, a)
    const vi r1 = splat_i((int32_t)0x00000000u);
    const vi r2 = splat_i((int32_t)0x3f800000u);
    EACH(r3, f32_exponent_of(r0[u]))
    const vi r4 = splat_i((int32_t)0x00000000u);
    EACH(r5, i32_sub_of(r4, r3[u]))
    EACH(r6, f32_scale2_of(r0[u], r5[u]))
    const vi r7 = splat_i((int32_t)0x3f3504f3u);
    EACH(r8, f32_lt_of(r6[u], r7))
    EACH(r9, bool_to_i32_of(r8[u]))
    EACH(r10, i32_sub_of(r3[u], r9[u]))
    EACH(r11, i32_to_f32_of(r10[u]))
    EACH(r12, f32_add_of(r6[u], r6[u]))
    EACH(r13, select_word_of(r8[u], r12[u], r6[u]))
    EACH(r14, f32_sub_of(r13[u], r2))
    const vi r15 = splat_i((int32_t)0x40000000u);
    EACH(r16, f32_add_of(r14[u], r15))
    EACH(r17, f32_div_of(r14[u], r16[u]))
    EACH(r18, f32_mul_of(r17[u], r17[u]))
    const vi r19 = splat_i((int32_t)0x3f000000u);
    EACH(r20, f32_mul_of(r14[u], r14[u]))
    EACH(r21, f32_mul_of(r19, r20[u]))
    const vi r22 = splat_i((int32_t)0x3e98f0d4u);
    EACH(r23, f32_mul_of(r18[u], r22))
    const vi r24 = splat_i((int32_t)0x3eccaf68u);
    EACH(r25, f32_add_of(r23[u], r24))
    EACH(r26, f32_mul_of(r18[u], r25[u]))
    const vi r27 = splat_i((int32_t)0x3f2aaabdu);
    EACH(r28, f32_add_of(r26[u], r27))
    EACH(r29, f32_mul_of(r18[u], r28[u]))
    EACH(r30, f32_add_of(r21[u], r29[u]))
    EACH(r31, f32_mul_of(r17[u], r30[u]))
    const vi r32 = splat_i((int32_t)0x35bfbe8eu);
    EACH(r33, f32_mul_of(r11[u], r32))
    EACH(r34, f32_add_of(r31[u], r33[u]))
    const vi r35 = splat_i((int32_t)0x3f317200u);
    EACH(r36, f32_mul_of(r11[u], r35))
    EACH(r37, f32_sub_of(r21[u], r34[u]))
    EACH(r38, f32_sub_of(r37[u], r14[u]))
    EACH(r39, f32_sub_of(r36[u], r38[u]))
    EACH(r40, f32_add_of(r0[u], r1))
    EACH(r41, f32_sqrt_of(r40[u]))
    EACH(r42, f32_div_of(r2, r41[u]))
    EACH(r43, f32_sub_of(r41[u], r42[u]))
    EACH(r44, f32_sub_of(r43[u], r43[u]))
    EACH(r45, f32_eq_of(r1, r44[u]))
    EACH(r46, select_word_of(r45[u], r39[u], r43[u]))
    RESULT(r46)
}

FUNCTION_1(f32_sin)
{
    ARGUMENT(r0, a)
    const vi r1 = splat_i((int32_t)0x3f22f983u);
    EACH(r2, f32_mul_of(r0[u], r1))
    EACH(r3, f32_rint_of(r2[u]))
    const vi r4 = splat_i((int32_t)0x3fc90000u);
    EACH(r5, f32_mul_of(r3[u], r4))
    EACH(r6, f32_sub_of(r0[u], r5[u]))
    const vi r7 = splat_i((int32_t)0x39fd8000u);
    EACH(r8, f32_mul_of(r3[u], r7))
    EACH(r9, f32_sub_of(r6[u], r8[u]))
    const vi r10 = splat_i((int32_t)0x34a8885au);
    EACH(r11, f32_mul_of(r3[u], r10))
    EACH(r12, f32_sub_of(r9[u], r11[u]))
    const vi r13 = splat_i((int32_t)0xbf4ccccdu);
    EACH(r14, f32_max_of(r12[u], r13))
    const vi r15 = splat_i((int32_t)0x3f4ccccdu);
    EACH(r16, f32_min_of(r14[u], r15))
    EACH(r17, f32_mul_of(r16[u], r16[u]))
    EACH(r18, f32_mul_of(r16[u], r17[u]))
    const vi r19 = splat_i((int32_t)0xb94c6d04u);
    EACH(r20, f32_mul_of(r17[u], r19))
    const vi r21 = splat_i((int32_t)0x3c0882dcu);
    EACH(r22, f32_add_of(r20[u], r21))
    EACH(r23, f32_mul_of(r17[u], r22[u]))
    const vi r24 = splat_i((int32_t)0xbe2aaaa0u);
    EACH(r25, f32_add_of(r23[u], r24))
    EACH(r26, f32_mul_of(r18[u], r25[u]))
    EACH(r27, f32_add_of(r16[u], r26[u]))
    const vi r28 = splat_i((int32_t)0x37ccf076u);
    EACH(r29, f32_mul_of(r17[u], r28))
    const vi r30 = splat_i((int32_t)0xbab6060du);
    EACH(r31, f32_add_of(r29[u], r30))
    EACH(r32, f32_mul_of(r17[u], r31[u]))
    const vi r33 = splat_i((int32_t)0x3d2aaaa5u);
    EACH(r34, f32_add_of(r32[u], r33))
    EACH(r35, f32_mul_of(r17[u], r34[u]))
    const vi r36 = splat_i((int32_t)0xbf000000u);
    EACH(r37, f32_add_of(r35[u], r36))
    EACH(r38, f32_mul_of(r17[u], r37[u]))
    const vi r39 = splat_i((int32_t)0x3f800000u);
    EACH(r40, f32_add_of(r38[u], r39))
    EACH(r41, f32_to_i32_of(r3[u]))
    const vi r42 = splat_i((int32_t)0x00000000u);
    EACH(r43, i32_add_of(r41[u], r42))
    const vi r44 = splat_i((int32_t)0x00000001u);
    EACH(r45, i32_and_of(r43[u], r44))
    EACH(r46, i32_to_bool_of(r45[u]))
    EACH(r47, select_word_of(r46[u], r40[u], r27[u]))
    const vi r48 = splat_i((int32_t)0x00000002u);
    EACH(r49, i32_and_of(r43[u], r48))
    EACH(r50, i32_to_bool_of(r49[u]))
    EACH(r51, f32_neg_of(r47[u]))
    EACH(r52, select_word_of(r50[u], r51[u], r47[u]))
    RESULT(r52)
}

FUNCTION_1(f32_cos)
{
    ARGUMENT(r0, a)
    const vi r1 = splat_i((int32_t)0x3f22f983u);
    EACH(r2, f32_mul_of(r0[u], r1))
    EACH(r3, f32_rint_of(r2[u]))
    const vi r4 = splat_i((int32_t)0x3fc90000u);
    EACH(r5, f32_mul_of(r3[u], r4))
    EACH(r6, f32_sub_of(r0[u], r5[u]))
    const vi r7 = splat_i((int32_t)0x39fd8000u);
    EACH(r8, f32_mul_of(r3[u], r7))
    EACH(r9, f32_sub_of(r6[u], r8[u]))
    const vi r10 = splat_i((int32_t)0x34a8885au);
    EACH(r11, f32_mul_of(r3[u], r10))
    EACH(r12, f32_sub_of(r9[u], r11[u]))
    const vi r13 = splat_i((int32_t)0xbf4ccccdu);
    EACH(r14, f32_max_of(r12[u], r13))
    const vi r15 = splat_i((int32_t)0x3f4ccccdu);
    EACH(r16, f32_min_of(r14[u], r15))
    EACH(r17, f32_mul_of(r16[u], r16[u]))
    EACH(r18, f32_mul_of(r16[u], r17[u]))
    const vi r19 = splat_i((int32_t)0xb94c6d04u);
    EACH(r20, f32_mul_of(r17[u], r19))
    const vi r21 = splat_i((int32_t)0x3c0882dcu);
    EACH(r22, f32_add_of(r20[u], r21))
    EACH(r23, f32_mul_of(r17[u], r22[u]))
    const vi r24 = splat_i((int32_t)0xbe2aaaa0u);
    EACH(r25, f32_add_of(r23[u], r24))
    EACH(r26, f32_mul_of(r18[u], r25[u]))
    EACH(r27, f32_add_of(r16[u], r26[u]))
    const vi r28 = splat_i((int32_t)0x37ccf076u);
    EACH(r29, f32_mul_of(r17[u], r28))
    const vi r30 = splat_i((int32_t)0xbab6060du);
    EACH(r31, f32_add_of(r29[u], r30))
    EACH(r32, f32_mul_of(r17[u], r31[u]))
    const vi r33 = splat_i((int32_t)0x3d2aaaa5u);
    EACH(r34, f32_add_of(r32[u], r33))
    EACH(r35, f32_mul_of(r17[u], r34[u]))
    const vi r36 = splat_i((int32_t)0xbf000000u);
    EACH(r37, f32_add_of(r35[u], r36))
    EACH(r38, f32_mul_of(r17[u], r37[u]))
    const vi r39 = splat_i((int32_t)0x3f800000u);
    EACH(r40, f32_add_of(r38[u], r39))
    EACH(r41, f32_to_i32_of(r3[u]))
    const vi r42 = splat_i((int32_t)0x00000001u);
    EACH(r43, i32_add_of(r41[u], r42))
    EACH(r44, i32_and_of(r42, r43[u]))
    EACH(r45, i32_to_bool_of(r44[u]))
    EACH(r46, select_word_of(r45[u], r40[u], r27[u]))
    const vi r47 = splat_i((int32_t)0x00000002u);
    EACH(r48, i32_and_of(r43[u], r47))
    EACH(r49, i32_to_bool_of(r48[u]))
    EACH(r50, f32_neg_of(r46[u]))
    EACH(r51, select_word_of(r49[u], r50[u], r46[u]))
    RESULT(r51)
}

FUNCTION_1(f32_gauss)
{
    ARGUMENT(r0, a)
    EACH(r1, f32_abs_of(r0[u]))
    const vi r2 = splat_i((int32_t)0x41680000u);
    EACH(r3, f32_min_of(r1[u], r2))
    const vi r4 = splat_i((int32_t)0x47400000u);
    EACH(r5, f32_add_of(r3[u], r4))
    EACH(r6, f32_sub_of(r5[u], r4))
    const vi r7 = splat_i((int32_t)0xbf000000u);
    EACH(r8, f32_sub_of(r3[u], r6[u]))
    EACH(r9, f32_add_of(r3[u], r6[u]))
    EACH(r10, f32_mul_of(r8[u], r9[u]))
    EACH(r11, f32_mul_of(r7, r10[u]))
    EACH(r12, f32_mul_of(r6[u], r6[u]))
    EACH(r13, f32_mul_of(r7, r12[u]))
    const vi r14 = splat_i((int32_t)0x3fb8aa3bu);
    EACH(r15, f32_mul_of(r13[u], r14))
    EACH(r16, f32_rint_of(r15[u]))
    const vi r17 = splat_i((int32_t)0x3f317200u);
    EACH(r18, f32_mul_of(r16[u], r17))
    EACH(r19, f32_sub_of(r13[u], r18[u]))
    const vi r20 = splat_i((int32_t)0xb5bfbe8eu);
    EACH(r21, f32_mul_of(r16[u], r20))
    EACH(r22, f32_add_of(r11[u], r21[u]))
    EACH(r23, f32_add_of(r19[u], r22[u]))
    EACH(r24, f32_mul_of(r23[u], r23[u]))
    const vi r25 = splat_i((int32_t)0x3ab5cd15u);
    EACH(r26, f32_mul_of(r23[u], r25))
    const vi r27 = splat_i((int32_t)0x3c09129fu);
    EACH(r28, f32_add_of(r26[u], r27))
    EACH(r29, f32_mul_of(r23[u], r28[u]))
    const vi r30 = splat_i((int32_t)0x3d2aab7au);
    EACH(r31, f32_add_of(r29[u], r30))
    EACH(r32, f32_mul_of(r23[u], r31[u]))
    const vi r33 = splat_i((int32_t)0x3e2aaa5au);
    EACH(r34, f32_add_of(r32[u], r33))
    EACH(r35, f32_mul_of(r23[u], r34[u]))
    const vi r36 = splat_i((int32_t)0x3effffffu);
    EACH(r37, f32_add_of(r35[u], r36))
    EACH(r38, f32_mul_of(r24[u], r37[u]))
    EACH(r39, f32_add_of(r22[u], r38[u]))
    EACH(r40, f32_add_of(r19[u], r39[u]))
    EACH(r41, f32_to_i32_of(r16[u]))
    const vi r42 = splat_i((int32_t)0x3f800000u);
    EACH(r43, f32_add_of(r40[u], r42))
    EACH(r44, f32_scale2_of(r43[u], r41[u]))
    RESULT(r44)
}

FUNCTION_1(f32_exp)
{
    ARGUMENT(r0, a)
    const vi r1 = splat_i((int32_t)0xc2d00000u);
    EACH(r2, f32_max_of(r0[u], r1))
    const vi r3 = splat_i((int32_t)0x42b20000u);
    EACH(r4, f32_min_of(r2[u], r3))
    const vi r5 = splat_i((int32_t)0x3fb8aa3bu);
    EACH(r6, f32_mul_of(r4[u], r5))
    EACH(r7, f32_rint_of(r6[u]))
    const vi r8 = splat_i((int32_t)0x3f317200u);
    EACH(r9, f32_mul_of(r7[u], r8))
    EACH(r10, f32_sub_of(r4[u], r9[u]))
    const vi r11 = splat_i((int32_t)0xb5bfbe8eu);
    EACH(r12, f32_mul_of(r7[u], r11))
    EACH(r13, f32_add_of(r10[u], r12[u]))
    EACH(r14, f32_mul_of(r13[u], r13[u]))
    const vi r15 = splat_i((int32_t)0x3ab5cd15u);
    EACH(r16, f32_mul_of(r13[u], r15))
    const vi r17 = splat_i((int32_t)0x3c09129fu);
    EACH(r18, f32_add_of(r16[u], r17))
    EACH(r19, f32_mul_of(r13[u], r18[u]))
    const vi r20 = splat_i((int32_t)0x3d2aab7au);
    EACH(r21, f32_add_of(r19[u], r20))
    EACH(r22, f32_mul_of(r13[u], r21[u]))
    const vi r23 = splat_i((int32_t)0x3e2aaa5au);
    EACH(r24, f32_add_of(r22[u], r23))
    EACH(r25, f32_mul_of(r13[u], r24[u]))
    const vi r26 = splat_i((int32_t)0x3effffffu);
    EACH(r27, f32_add_of(r25[u], r26))
    EACH(r28, f32_mul_of(r14[u], r27[u]))
    EACH(r29, f32_add_of(r12[u], r28[u]))
    EACH(r30, f32_add_of(r10[u], r29[u]))
    EACH(r31, f32_to_i32_of(r7[u]))
    const vi r32 = splat_i((int32_t)0x3f800000u);
    EACH(r33, f32_add_of(r30[u], r32))
    EACH(r34, f32_scale2_of(r33[u], r31[u]))
    RESULT(r34)
}

/* clang-format on */

#endif
