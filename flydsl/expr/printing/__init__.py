"""Text and errors of kernels and launchers: `printf`, assertions, and why a runtime value is no Python value."""
