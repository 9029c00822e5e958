"""From one type to another."""

_SMALL = "(?P<small>fp8|bf8|fp6|bf6|fp4)"
_FLOAT = "(?P<float>f32|f16|bf16)"
_TO_INTEGER, _FROM_FLOAT = "(?P<to>[iu](?:16|32))", "(?P<start>f16|f32|f64)"

MEANINGS = (
    (r"v_cvt_f32_ubyte(\d)", "D = byte {0} of S0, which has no sign, in f32."),
    (r"v_cvt_off_f32_i4", "D = the lowest 4 bits of S0, from -8 to 7, over 16, in f32."),
    (r"v_cvt_(?:flr|floor)_i32_f32", "D = S0 rounded down, as an i32."),
    (r"v_cvt_(?:rpi|nearest)_i32_f32", "D = S0 rounded to the nearest integer, halves up, as an i32."),
    (r"[vs]_cvt_hi_f32_f16", "D = the upper half of S0, an f16, in f32."),
    (
        rf"[vs]_cvt_{_TO_INTEGER}_{_FROM_FLOAT}",
        "D = S0 from {start} to {to}, without its fraction; what is outside becomes the nearest, NaN 0.",
    ),
    (r"v_cvt_(?P<to>[iu]32)_(?P<start>[iu]16)", "D = the lower half of S0, from {start} to {to}."),
    (r"[vs]_cvt_(?P<to>b?f\d\d)_(?P<start>[iu]\d+|b?f\d\d)", "D = S0 from {start} to {to}."),
    (r"v_cvt_norm_([iu]16)_f16", "D = S0, from 0 or -1 to 1, spread over the whole range {0}."),
    (
        r"v_cvt_pk_?norm_([iu]16)_(f16|f32)",
        "Halves of D = S0 and S1, from 0 or -1 to 1, spread over the whole range {0}.",
    ),
    (r"[vs]_cvt_pk_?rtz_f16_f32", "Halves of D = S0 and S1 in f16, rounded towards 0."),
    (r"v_cvt_pk_(f16|bf16)_f32", "Halves of D = S0 and S1 {0}."),
    (r"v_cvt_pk_([iu]16)_([iu]32|f32)", "Halves of D = S0 and S1 {0}; what is outside becomes the nearest."),
    (r"v_cvt_pk_u8_f32", "D = S2, but its byte with the number S1 = S0 as an integer from 0 to 255."),
    (r"v_cvt_pkaccum_u8_f32", "The byte of D with the number S1 = S0 as an integer from 0 to 255."),
    (
        rf"v_cvt_pk_{_SMALL}_f16",
        "A half of D = both halves of S0, in f16, as {small}; op_sel says which, the other stays.",
    ),
    (rf"v_cvt_pk_{_SMALL}_f32", "Two bytes of D = S0 and S1 as {small}; op_sel says which half, the other stays."),
    (rf"v_cvt_pk_(f32|f16)_{_SMALL}", "D = two elements of S0, of {small}, as a pair {0}."),
    (rf"v_cvt_sr_{_SMALL}_(f32|f16)", "A byte of D = S0 as {small}, rounded at random by S1; the other bytes stay."),
    (r"v_cvt_sr_(?:pk_)?(f16|bf16)_f32", "A half of D = S0 {0}, rounded at random by S1."),
    (rf"v_cvt_(f32|f16)_{_SMALL}", "D = a byte of S0, of {small}, {0}."),
    # with a scale
    (
        rf"v_cvt_scalef32_{_FLOAT}_{_SMALL}",
        "D = an element of S0, of {small}, times the power of two in S1, in {float}.",
    ),
    (
        rf"v_cvt_scalef32_(?:pk|pk8|pk16|pk32)_{_FLOAT}_{_SMALL}",
        "D = the elements of S0, of {small}, times the power of two in S1, in {float}.",
    ),
    (
        rf"v_cvt_scalef32_(?:pk|pk8|pk16|pk32|2xpk16)_{_SMALL}_{_FLOAT}",
        "D = the elements of the sources before the scale, in {float}, over its power of two, as {small}.",
    ),
    (
        rf"v_cvt_scalef32_sr_(?:pk\d*_)?{_SMALL}_{_FLOAT}",
        "A part of D = S0, in {float}, over the power of two in the last source, as {small}, rounded at random by S1.",
    ),
    (rf"v_cvt_scale_pk\d+_{_FLOAT}_{_SMALL}", "D = the elements of S0, of {small}, times their scale, in {float}."),
    (r"v_prng_b32", "D = the random number that follows S0."),
    # halves
    (r"v_pack_b32_f16", "D = S1 : S0: the halves of a register."),
    (r"v_sat_pk_u8_i16", "Lower half of D = both halves of S0, each clamped to 0 to 255, as bytes."),
    (r"v_sat_pk4_([iu]4)_[iu]8", "A half of D = the four bytes of S0, each clamped to the range {0}."),
    (r"v_ashr_pk_([iu]8)_i32", "Lower bytes of D = S0 >> S2 and S1 >> S2, each clamped to the range {0}."),
)
"""Patterns of mnemonics, and what they mean."""
