"""The lock-step machine with the checks of `simulator.checks`.

How to read this package: `machine` does the checks. `threefold` runs every workgroup three times, which finds what
depends on undefined registers; `register_history` remembers who wrote them, and `lds_history` what wrote LDS. `races`
finds races, with `access_history` for who accessed each byte, `clocks` for what happened before what, `lost_update`
for updates without an atomic, and `under_way` for copies that nobody has waited for.
"""
