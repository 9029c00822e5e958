"""Building blocks of every view: HTML, coloured code, controls, and widgets that a saved notebook still shows."""
