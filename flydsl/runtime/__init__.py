"""Running compiled kernels: the device, and how a launcher reaches it.

`device` chooses by where the tensors are, `host` runs the compiled launcher, `simulated` and `hip` are the devices.
"""
