"""The timeline of a thread trace: waves over cycles, utilisation, stalls, hot spots, and what would help."""
