"""The address space of a launch: buffers and their gaps, allocations, memory of other processes, tile descriptors."""
