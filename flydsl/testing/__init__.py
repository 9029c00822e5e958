"""Tests of kernels with pytest, on every GPU that the simulator executes: a plugin that pytest loads by itself.

How to read this package: `plugin` is what pytest calls; `gpus` knows GPUs by name; `figures` measures a call, and
`baseline` keeps the figures in a file beside the test and compares. The guide's page "Test kernels without a GPU" says
how to use it.
"""
