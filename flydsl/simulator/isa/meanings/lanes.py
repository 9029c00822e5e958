"""Values that go from lane to lane."""

MEANINGS = (
    (r"v_readfirstlane_b32", "D = S0 of the first active lane, as a scalar."),
    (r"v_readlane_b32", "D = S0 of the lane with the number S1, as a scalar."),
    (r"v_writelane_b32", "D of the lane with the number S1 = the scalar S0; other lanes stay."),
    (r"v_swap_b(?:16|32)", "D and S0 change places."),
    (r"v_permlane(16|32)_swap_b32", "The odd rows of {0} lanes of D change places with the even rows of S0."),
    (r"v_permlane16(?:_var)?_b32", "D = S0 of a lane of the same row of 16, which S1 (and S2) name, 4 bits per lane."),
    (r"v_permlanex16(?:_var)?_b32", "D = S0 of a lane of the row of 16 beside it, which S1 (and S2) name."),
    (r"v_permlane64_b32", "D = S0 of the lane 32 further on, in waves of 64; of 32 lanes D stays."),
    (r"v_permlane_bcast_b32", "D = S0 of the lane with the number S1 of the own group of S2 lanes."),
    (r"v_permlane_up_b32", "D = S0 of the lane S1 places below, in groups of S2 lanes; the own where there is none."),
    (r"v_permlane_down_b32", "D = S0 of the lane S1 places above, in groups of S2 lanes; the own where there is none."),
    (r"v_permlane_xor_b32", "D = S0 of the lane whose place in the group of S2 lanes is the own ^ S1."),
    (r"v_permlane_idx_gen_b32", "D = 4 * the lane with the number S0 of the own group of S1 lanes, for ds_bpermute."),
    (
        r"v_mbcnt_(lo|hi)_u32_b32",
        "D = S1 + the ones of the mask S0, the {0} 32 lanes, that stand for lanes before this one.",
    ),
    (r"ds_bpermute_b32", "D = the data of the lane with the number address / 4. LDS is not used."),
    (r"ds_bpermute_fi_b32", "D = the data of the lane with the number address / 4, active or not. LDS is not used."),
    (r"ds_permute_b32", "D of the lane with the number address / 4 = the data of this lane. LDS is not used."),
    (r"ds_swizzle_b32", "D = the data of another lane, by a fixed pattern (offset). LDS is not used."),
    (r"v_movrels_b32", "D = the register that lies M0 beyond S0."),
    (r"v_movreld_b32", "The register that lies M0 beyond D = S0."),
    (r"v_movrelsd_b32", "The register that lies M0 beyond D = the one that lies M0 beyond S0."),
    (r"v_movrelsd_2_b32", "The register that lies M0[25:16] beyond D = the one that lies M0[9:0] beyond S0."),
    (r"v_swaprel_b32", "The register that lies M0[25:16] beyond D and the one M0[9:0] beyond S0 change places."),
)
"""Patterns of mnemonics, and what they mean."""
