"""Views of the resources of a kernel: registers, LDS, and the occupancy that follows."""
