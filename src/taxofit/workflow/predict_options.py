"""What a person can ask of ``predict``; read before anything heavy is imported."""

from __future__ import annotations

from dataclasses import dataclass

from taxofit.errors import DataError

__all__ = ["INPUT_FORMATS", "OUTPUT_FORMATS", "PredictOptions"]

INPUT_FORMATS = ("auto", "table", "lines", "svmlight", "arff")
OUTPUT_FORMATS = ("auto", "csv", "tsv", "jsonl", "parquet")


@dataclass(frozen=True, kw_only=True)
class PredictOptions:
    """How to read rows and what to write about them; the defaults are those of the command line.

    Attributes
    ----------
    format : str
        Of the input, one of ``INPUT_FORMATS``. ``"auto"`` is the format that the model was trained
        on; on standard input, texts without the model's heading are ``"lines"``: one text each.
    out_format : str
        One of ``OUTPUT_FORMATS``; ``"auto"`` goes by the name of the file to write.
    encoding, delimiter : str, optional
        Of a text table; as at training, or guessed, by default.
    top : int
        How many labels to write for every row, the likeliest first.
    min_confidence : float, optional
        Stop at an internal node where no label below it is as likely as this.
    proba : bool
        Write the probability of every label.
    keep : tuple of str
        Columns of the input to copy to the output.
    all_columns : bool
        Copy all of them.
    exact : bool
        Write cells as they are, even those that a spreadsheet would run as a formula.
    chunk_rows : int
        How many rows are read, predicted and written at a time.

    Examples
    --------
    >>> PredictOptions(top=0).check()
    Traceback (most recent call last):
        ...
    taxofit.errors.DataError: top must be at least 1, but is 0
    """

    format: str = "auto"
    out_format: str = "auto"
    encoding: str | None = None
    delimiter: str | None = None
    top: int = 1
    min_confidence: float | None = None
    proba: bool = False
    keep: tuple[str, ...] = ()
    all_columns: bool = False
    exact: bool = False
    chunk_rows: int = 10_000

    def check(self) -> None:
        """Raise a DataError that names the first option that makes no sense."""
        for name, value, choices in (
            ("format", self.format, INPUT_FORMATS),
            ("out-format", self.out_format, OUTPUT_FORMATS),
        ):
            if value not in choices:
                raise DataError(f"{name} must be one of {', '.join(choices)}, but is {value!r}")
        for name, number in (("top", self.top), ("chunk-rows", self.chunk_rows)):
            if number < 1:
                raise DataError(f"{name} must be at least 1, but is {number}")
        if self.min_confidence is None:
            return
        if not 0 <= self.min_confidence <= 1:
            raise DataError(f"min-confidence must be from 0 to 1, but is {self.min_confidence}")
        if self.top > 1:
            raise DataError("top lists leaves and min-confidence may stop above them; choose one")
