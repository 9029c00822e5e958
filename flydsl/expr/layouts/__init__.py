"""The layout algebra on traced values, and tensors of coordinates."""
