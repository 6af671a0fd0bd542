"""The paper's experiments: its protocol, every table and figure, from one set of banks."""

from taxofit.experiment.protocol import METHODS, Protocol
from taxofit.experiment.run import run_reproduction

__all__ = ["METHODS", "Protocol", "run_reproduction"]
