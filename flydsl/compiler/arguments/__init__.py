"""The arguments of a launch: what each parameter takes, how values bind to it, and what the launcher passes."""
