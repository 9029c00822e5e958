"""The lock-step machine with the checks of `simulator.checks`.

How to read this package: `machine` does the checks. `threefold` runs every workgroup three times, which finds what
depends on undefined registers; `register_history` remembers who wrote them, and `lds_history` what wrote LDS. `races`
finds races, with `access_history` for who accessed each byte, `clocks` for what happened before what, `lost_update`
for updates without an atomic. `waiting` counts what is under way, in `outstanding`, and finds registers that are used
before it has come; `copies` and `cells` have the memory that it goes to past the registers. `late` is a machine of its
own, which checks nothing: its loads come late.
"""
