"""The errors that taxofit raises: each says what is wrong, where, and what to do about it."""

__all__ = ["DataError", "DeviceError", "Interrupted", "ModelError", "TaxofitError", "TaxonomyError"]


class TaxofitError(Exception):
    """Base of all errors that a person can act on; the command line shows them as one line."""


class TaxonomyError(TaxofitError, ValueError):
    """A taxonomy that is not a tree, or a label that it does not have."""


class DataError(TaxofitError, ValueError):
    """Rows or files that cannot be read as what they were said to be."""


class DeviceError(TaxofitError, RuntimeError):
    """A device that was asked for and is not there."""


class Interrupted(TaxofitError):  # noqa: N818  (nothing went wrong)
    """A command that was stopped by Ctrl-C, with what it kept and how to go on.

    Not a KeyboardInterrupt, of which Typer would swallow the message.
    """


class ModelError(TaxofitError, ValueError):
    """A model folder that is missing, damaged, foreign or of a newer version."""
