"""The table of semantics of the instructions, one file per family.

Importing this package enters the families that every GPU has something of; the others are entered when they are asked
for a row of a GPU that has them (`table.FAMILIES`).

Besides the families: `table` is how they are entered, `builder` the vocabulary in which they are written, `forms` the
forms of operands that only modifiers tell, `spellings` other names of instructions, `common` what families share,
`fields` a few bits of several dwords, `narrow_floats` the formats of 8 bits and less, `dpp` the lane patterns that any
vector instruction may have, and `elementary` the functions of f64 that backends build from their arithmetic.
"""

from flydsl.simulator.isa.table import TABLE, enter_families

__all__ = ["TABLE"]

enter_families([""])
