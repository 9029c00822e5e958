"""Matrix instructions: the whole wave multiplies small matrices, whose elements lie in the registers of its lanes."""

_SHAPE = r"(?P<type>f32|f64|i32|f16|bf16|bf16f32)_(?P<m>\d+)x(?P<n>\d+)x(?P<k>\d+)"
_OF = "A is {m} x {k} and B {k} x {n}, of {elements}; D is {m} x {n}, {type}"

MEANINGS = (
    (rf"v_mfma_{_SHAPE}_(?P<blocks>\d+)b_(?P<elements>\w+)", f"D = A * B + C for {{blocks}} matrices at once: {_OF}."),
    (rf"v_(?:mfma|wmma)_{_SHAPE}_?(?P<elements>\w+)", f"D = A * B + C: {_OF}."),
    (
        rf"v_(?:mfma_scale|wmma_scale(?:16)?)_{_SHAPE}_(?P<elements>\w+)",
        f"D = A * B + C, where runs of A and B are multiplied by scales of their own: {_OF}.",
    ),
    (
        rf"v_(?:smfmac|swmmac)_{_SHAPE}_(?P<elements>\w+)",
        f"D = A * B + D with a sparse A: two of every four elements along k are stored, and an index says "
        f"which: {_OF}.",
    ),
    (r"v_mfma_ld_scale_b32", "Loads the scales of the matrix instruction after it."),
)
"""Patterns of mnemonics, and what they mean."""
