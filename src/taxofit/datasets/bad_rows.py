"""Rows that cannot be used: the first one is an error, or all of them are counted and left out."""

from __future__ import annotations

from dataclasses import dataclass

from taxofit.errors import DataError

__all__ = ["BadRows", "LeftOut"]

N_PLACES_KEPT = 3


@dataclass(frozen=True)
class LeftOut:
    """Rows that were left out for one reason.

    Attributes
    ----------
    reason : str
        As in "3 rows without a label".
    n_rows : int
    places : tuple of str
        Where the first few are: ``'line 12'``.

    Examples
    --------
    >>> str(LeftOut("without a label", 7, ("line 3", "line 9")))
    '7 rows without a label (line 3, line 9, …)'
    """

    reason: str
    n_rows: int
    places: tuple[str, ...]

    def __str__(self) -> str:
        shown = ", ".join(self.places) + ", …" * (self.n_rows > len(self.places))
        return f"{self.n_rows:,} row{'s' * (self.n_rows != 1)} {self.reason} ({shown})"

    def to_json(self) -> dict[str, object]:
        """Return the reason, the number of rows and the first places as JSON values."""
        return {"reason": self.reason, "rows": self.n_rows, "first": list(self.places)}


class BadRows:
    """Takes note of rows that cannot be used.

    Parameters
    ----------
    strict : bool
        Raise a DataError at the first instead.
    empty_text : bool
        Whether a row without any text is one of them.

    Examples
    --------
    >>> bad = BadRows()
    >>> bad.add("without a label", "line 3", "shop.csv:3: the label is empty")
    >>> [str(left_out) for left_out in bad.left_out]
    ['1 row without a label (line 3)']
    >>> BadRows(strict=True).add("without a label", "line 3", "shop.csv:3: the label is empty")
    Traceback (most recent call last):
        ...
    taxofit.errors.DataError: shop.csv:3: the label is empty
    """

    def __init__(self, *, strict: bool = False, empty_text: bool = True) -> None:
        self.strict = strict
        self.empty_text = empty_text
        self._n_rows: dict[str, int] = {}
        self._places: dict[str, list[str]] = {}

    def add(self, reason: str, place: str, message: str) -> None:
        """Take note of a row, or raise the message."""
        if self.strict:
            raise DataError(message)
        self._n_rows[reason] = self._n_rows.get(reason, 0) + 1
        places = self._places.setdefault(reason, [])
        if len(places) < N_PLACES_KEPT:
            places.append(place)

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """What was left out, by reason; the most frequent first."""
        reasons = sorted(self._n_rows, key=lambda reason: -self._n_rows[reason])
        return tuple(
            LeftOut(reason, self._n_rows[reason], tuple(self._places[reason])) for reason in reasons
        )
