"""Finding what is wrong with a kernel: interpreted launches, references, variables in machine code, missing waits."""
