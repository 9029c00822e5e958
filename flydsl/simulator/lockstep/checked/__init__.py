"""The lock-step machine with the checks of `simulator.checks`.

How to read this package:

- `machine` does the checks.
- `threefold` runs every workgroup three times, which finds results that depend on undefined registers;
  `register_history` remembers which instruction wrote a register, and `lds_history` which wrote LDS.
- `races` finds races: `access_history` says who accessed each byte, `clocks` what happened before what, and
  `lost_update` recognises updates without an atomic. `signals` names the waves that an endless loop waits for.
- `waiting` finds registers that are used before their load has arrived; `outstanding` counts the loads under way, and
  `copies` and `cells` follow those that write to memory past the registers.
- `nans` remembers which instruction made the first NaN or infinity.
- `late` is a machine of its own that checks nothing: it delays loads as far as the waits allow.
"""
