"""The command line; what commands do is in ``workflow``, how it looks in ``terminal``."""

from taxofit.cli.app import app
from taxofit.cli.entry import main

__all__ = ["app", "main"]
