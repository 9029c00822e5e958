"""Scalar arithmetic: one value for the whole wave. SCC is the bit that comparisons set and branches look at."""

_BITWISE = {
    "and": "S0 & S1",
    "or": "S0 | S1",
    "xor": "S0 ^ S1",
    "nand": "~(S0 & S1)",
    "nor": "~(S0 | S1)",
    "xnor": "~(S0 ^ S1)",
    "andn2|and_not1": "S0 & ~S1",
    "orn2|or_not1": "S0 | ~S1",
}
_WITH_EXEC = {
    "and": "S0 & EXEC",
    "or": "S0 | EXEC",
    "xor": "S0 ^ EXEC",
    "nand": "~(S0 & EXEC)",
    "nor": "~(S0 | EXEC)",
    "xnor": "~(S0 ^ EXEC)",
    "andn2|and_not1": "S0 & ~EXEC",
    "orn2|or_not1": "S0 | ~EXEC",
    "andn1|and_not0": "~S0 & EXEC",
    "orn1|or_not0": "~S0 | EXEC",
}
_COMPARE = "(eq|lg|gt|ge|lt|le)"

MEANINGS = (
    (r"s_mov_(b32|b64)", "D = S0, {0}."),
    (r"s_movk_i32", "D = the number, with its sign extended to 32 bits."),
    (r"s_cmov_(b32|b64)", "D = S0, {0}, if SCC is 1."),
    (r"s_cmovk_i32", "D = the number, with its sign extended, if SCC is 1."),
    (r"s_cselect_(b32|b64)", "D = S0 if SCC is 1, else S1, {0}."),
    *((rf"s_(?:{names})_(b32|b64)", f"D = {formula}, {{0}}; SCC = D is not 0.") for names, formula in _BITWISE.items()),
    *(
        (
            rf"s_(?:{names})_saveexec_b(?:32|64)",
            f"D = EXEC; EXEC = {formula}; SCC = any lane is active. Turns lanes on or off.",
        )
        for names, formula in _WITH_EXEC.items()
    ),
    *(
        (rf"s_(?:{names})_wrexec_b(?:32|64)", f"D and EXEC = {formula}; SCC = any lane is active.")
        for names, formula in _WITH_EXEC.items()
    ),
    (r"s_not_(b32|b64)", "D = ~S0, {0}; SCC = D is not 0."),
    (r"s_wqm_(b32|b64)", "Each four bits of D are ones where any of those of S0 is, {0}; SCC = D is not 0."),
    (r"s_quadmask_(b32|b64)", "A bit of D for each four of S0, {0}: 1 where any of them is; SCC = D is not 0."),
    (r"s_brev_(b32|b64)", "D = the bits of S0 in reverse order, {0}."),
    (r"s_bitreplicate_b64_b32", "D = each bit of S0 twice."),
    (r"s_bcnt([01])_i32_b\d+", "D = the number of bits of S0 that are {0}; SCC = D is not 0."),
    (r"s_ff([01])_i32_b\d+", "D = the place of the lowest bit of S0 that is {0}; -1 if there is none."),
    (r"s_ctz_i32_b\d+", "D = the number of zeros below the lowest one of S0; -1 if there is no one."),
    (r"s_(?:flbit_i32_b|clz_i32_u)\d+", "D = the number of zeros above the highest one of S0; -1 if there is no one."),
    (r"s_(?:flbit|cls)_i32(?:_i64)?", "D = the number of equal bits at the top of S0, its sign; -1 if all are."),
    (r"s_bitset([01])_b\d+", "The bit of D with the number S0 = {0}."),
    (r"s_bitcmp([01])_b\d+", "SCC = the bit of S0 with the number S1 is {0}."),
    (r"s_bfm_b\d+", "D = S0 ones, from bit S1 on."),
    (r"s_bfe_([iu])(\d+)", "D = a field of S0: S1 has its first bit and, from bit 16 on, its width; SCC = D is not 0."),
    (r"s_lshl(\d)_add_u32", "D = (S0 << {0}) + S1; SCC = carry."),
    (r"s_lshl_b(?:32|64)", "D = S0 << S1; SCC = D is not 0."),
    (r"s_lshr_b(?:32|64)", "D = S0 >> S1, with zeros from above; SCC = D is not 0."),
    (r"s_ashr_i(?:32|64)", "D = S0 >> S1, with the sign from above; SCC = D is not 0."),
    (r"s_(?:add_u32|add_co_u32)", "D = S0 + S1, in u32; SCC = carry."),
    (r"s_(?:add_i32|add_co_i32)", "D = S0 + S1, in i32; SCC = overflow."),
    (r"s_(?:addc_u32|add_co_ci_u32)", "D = S0 + S1 + SCC, in u32; SCC = carry."),
    (r"s_(?:sub_u32|sub_co_u32)", "D = S0 - S1, in u32; SCC = borrow."),
    (r"s_(?:sub_i32|sub_co_i32)", "D = S0 - S1, in i32; SCC = overflow."),
    (r"s_(?:subb_u32|sub_co_ci_u32)", "D = S0 - S1 - SCC, in u32; SCC = borrow."),
    (r"s_add_(?:nc_)?u64", "D = S0 + S1, in u64."),
    (r"s_sub_(?:nc_)?u64", "D = S0 - S1, in u64."),
    (r"s_addk_(?:co_)?i32", "D = D + the number, in i32; SCC = overflow."),
    (r"s_mulk_i32", "D = D * the number, in i32."),
    (r"s_mul_(i32|u64)", "D = S0 * S1, {0}, the lower half of the product."),
    (r"s_mul_hi_([iu]32)", "D = the upper half of S0 * S1, {0}."),
    (r"s_abs_i32", "D = |S0|; SCC = D is not 0."),
    (r"s_absdiff_i32", "D = |S0 - S1|; SCC = D is not 0."),
    (r"s_min_([iu]32)", "D = the smaller of S0 and S1, {0}; SCC = it is S0."),
    (r"s_max_([iu]32)", "D = the larger of S0 and S1, {0}; SCC = it is S0."),
    (r"s_sext_i32_(i8|i16)", "D = the lowest bits of S0, {0}, with their sign extended to 32 bits."),
    (r"s_pack_ll_b32_b16", "D = the lower half of S1 : the lower half of S0."),
    (r"s_pack_lh_b32_b16", "D = the upper half of S1 : the lower half of S0."),
    (r"s_pack_hl_b32_b16", "D = the lower half of S1 : the upper half of S0."),
    (r"s_pack_hh_b32_b16", "D = the upper half of S1 : the upper half of S0."),
    (rf"s_cmpk_{_COMPARE}_([iu]32)", "SCC = S0 {0} the number, {1}."),
    (rf"s_cmp_{_COMPARE}_(\w\d+)", "SCC = S0 {0} S1, {1}."),
    (r"s_cmp_n(eq|lg|lt|le|gt|ge)_(f\d+)", "SCC = not S0 {0} S1, {1}; so true where one is NaN."),
    (r"s_cmp_o_(f\d+)", "SCC = neither S0 nor S1 is NaN, {0}."),
    (r"s_cmp_u_(f\d+)", "SCC = S0 or S1 is NaN, {0}."),
)
"""Patterns of mnemonics, and what they mean. Of floats, `vector` has those that lanes have, too."""
