"""What a row of a request looks like, as the model that is served reads rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import Field
from scipy import sparse
from typing_extensions import TypedDict

from taxofit.datasets import CountEncoder, TableChunk, TextEncoder
from taxofit.workflow.sources import Source

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from taxofit.classifier import TaxonomyClassifier

__all__ = ["RowFormat"]

# Sums of products with weights stay finite, even in float32.
LARGEST_NUMBER = 1e15
WIDEST_EXAMPLE = 8
TEXT_EXAMPLE = "steel kettle, 1.7 litres"


@dataclass(frozen=True)
class RowFormat:
    """How rows of requests become X.

    Attributes
    ----------
    source : Source, optional
        What ``taxofit fit`` wrote down. None for a model saved from Python, which takes texts or
        lists of numbers.
    is_text : bool
        Whether a plain text is a row.
    is_counts : bool
        Whether numbers are counts, never negative.
    n_numbers : int, optional
        How many numbers a row is, where it is a list of them.
    """

    source: Source | None
    is_text: bool
    is_counts: bool
    n_numbers: int | None

    @classmethod
    def of(cls, classifier: TaxonomyClassifier, notes: Mapping[str, Any], folder: str) -> RowFormat:
        """Return the format that a loaded model reads."""
        source = Source.from_notes(notes, folder) if "source" in notes else None
        is_text = isinstance(classifier.encoder_, TextEncoder)
        is_list = not is_text and (source is None or source.format == "arff")
        return cls(
            source=source,
            is_text=is_text,
            is_counts=isinstance(classifier.encoder_, CountEncoder),
            n_numbers=int(classifier.n_features_in_) if is_list else None,
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns, where rows are objects that have them."""
        return self.source.columns if self.source and self.source.format == "table" else ()

    @property
    def shape(self) -> tuple[object, ...]:
        """What clients see of it: models of the same shape take the same requests."""
        kinds = frozenset((name, self._kind(name)) for name in self.columns)
        return self.source is None, self.is_text, self.is_counts, self.n_numbers, kinds

    def row_type(self, max_text_length: int) -> Any:
        """Return the type that pydantic checks a row against; what it lets through is usable."""
        lowest = 0.0 if self.is_counts else -LARGEST_NUMBER
        limits = Field(ge=lowest, le=LARGEST_NUMBER, allow_inf_nan=False, strict=True)
        number = Annotated[float, limits]
        text = Annotated[str, Field(max_length=max_text_length, strict=True)]
        if self.n_numbers is not None:
            width = Field(min_length=self.n_numbers, max_length=self.n_numbers)
            return Annotated[list[number], width]
        if self.source is None:
            return text
        if not self.columns:
            feature_id = Annotated[str, Field(pattern="^(0|[1-9][0-9]{0,17})$")]
            return dict[feature_id, number]
        kinds = {
            "text": text | None,
            "number": number if self._is_numbers else number | None,
            "category": text | number | None,
        }
        types = {name: kinds[self._kind(name)] for name in self.columns}
        row = TypedDict("Row", types)  # type: ignore[misc]  # columns are known when it runs
        return text | row if self.is_text else row

    def example(self) -> Any:
        """Return a row for the documentation; None where it would be too long to read."""
        if self.n_numbers is not None:
            return [0.5] * self.n_numbers if self.n_numbers <= WIDEST_EXAMPLE else None
        if self.source is None:
            return TEXT_EXAMPLE
        if not self.columns:
            return {"17": 2.0, "231": 1.0}
        examples = {"text": TEXT_EXAMPLE, "number": 1.5, "category": "steel"}
        return {name: examples[self._kind(name)] for name in self.columns}

    def blank(self) -> Any:
        """Return a row with nothing in it, to try a model on."""
        if self.n_numbers is not None:
            return [0.0] * self.n_numbers
        if self.is_text:
            return ""
        return {name: 0.0 if self._kind(name) == "number" else "" for name in self.columns}

    def features_of(self, rows: Sequence[Any]) -> Any:
        """Return X of checked rows, as the classifier takes it."""
        if self.n_numbers is not None:
            return np.asarray(rows, dtype=np.float64)
        if self.source is None:
            return list(rows)
        if not self.columns:
            return self._sparse_rows(rows)
        return self.source.features_of(self._chunk(rows))

    @property
    def _is_numbers(self) -> bool:
        """Whether all columns are numbers; where others are there too, numbers may be missing."""
        return all(self._kind(name) == "number" for name in self.columns)

    def _kind(self, column: str) -> str:
        if self.source is None or column in self.source.text:
            return "text"
        return "number" if column in self.source.numeric else "category"

    def _chunk(self, rows: Sequence[Any]) -> TableChunk:
        """Return rows as a piece of a table; a plain text stands in the first column of texts."""
        first, *others = self.columns
        plain = dict.fromkeys(others, "")
        table = [{first: row, **plain} if isinstance(row, str) else row for row in rows]
        columns = {name: [row[name] for row in table] for name in self.columns}
        return TableChunk("request", columns, range(len(rows)), has_lines=False)

    def _sparse_rows(self, rows: Sequence[Mapping[str, float]]) -> sparse.csr_matrix:
        """Return rows of ``{feature id: value}``; ids that the model does not know are left out."""
        known = () if self.source is None else self.source.feature_ids or ()
        column = {str(feature): place for place, feature in enumerate(known)}
        entries = [
            (row, column[feature], value)
            for row, features in enumerate(rows)
            for feature, value in features.items()
            if feature in column
        ]
        place = np.array([entry[:2] for entry in entries], dtype=np.int64).reshape(-1, 2)
        values = np.array([entry[2] for entry in entries], dtype=np.float64)
        shape = (len(rows), len(column))
        return sparse.csr_matrix((values, (place[:, 0], place[:, 1])), shape=shape)
