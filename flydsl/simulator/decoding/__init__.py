"""From machine code to instructions: decoding, the operands and modifiers that an instruction may have, its help."""
