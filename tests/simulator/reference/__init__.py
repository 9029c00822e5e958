"""What the instructions of gfx942 do, written down a second time: plain Python on integers, one file per family.

Sources: AMD's "CDNA3 Instruction Set Architecture" (the pseudocode of each instruction, and its notes), AMD's matrix
instruction calculator for register layouts, and LLVM's AMDGPU sources where the document is silent. Nothing here uses
the simulator.
"""
