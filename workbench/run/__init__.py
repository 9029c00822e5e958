"""Views of a launch: arguments, counters, the roofline, and single steps."""
