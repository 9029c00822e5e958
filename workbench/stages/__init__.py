"""Views of a compilation: stages, levels side by side, diffs, and the search for an operation."""
