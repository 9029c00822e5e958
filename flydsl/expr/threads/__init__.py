"""Threads: where they are, how many a block has, and values from other lanes."""
