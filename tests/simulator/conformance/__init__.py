"""What the tests of AMD's emulator expect of instructions: their inputs and results, run on our simulator.

The tests are public (ROCm/rocjitsu-test-corpus, corpus/cts/test_cases and corpus/semantics). Each function here is
about one of them, of which it has the name, and says what a GPU does with the operands that the test gives it. Those
that the corpus has for payloads of its own (fpsan) are not here: no hardware has them.
"""
