"""The parts of `convert-fly-to-rocdl`: one module for each kind of operation that it replaces."""
