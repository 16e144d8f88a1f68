"""Where commands run: one protocol, and two backends, ``docker`` and ``local``."""
