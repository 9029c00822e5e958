"""Python and the operating system around it: Ctrl-C, child processes, files, the garbage collector, lazy imports."""
