"""Terms of texts and how often each occurs: words, pairs of neighbouring words, runs of characters.

A term is what scikit-learn's CountVectorizer would call one, so results can be held against it. Two
things are done differently because they matter here: runs of characters are found once for each
distinct word and multiplied out, and a single text takes a short way without matrices.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from itertools import pairwise, repeat
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from taxofit.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

__all__ = [
    "CHARACTER_RUNS",
    "TermCounter",
    "character_runs",
    "terms_of",
    "words",
    "words_and_pairs",
]

CHARACTER_RUNS = (2, 5)
_find_words = re.compile(r"(?u)\b\w\w+\b").findall


def words(text: str) -> list[str]:
    """Return the words of two characters or more.

    Examples
    --------
    >>> words("a 2-litre kettle")
    ['litre', 'kettle']
    """
    return _find_words(text)


def words_and_pairs(text: str) -> list[str]:
    """Return the words, then every word with the one after it.

    Examples
    --------
    >>> words_and_pairs("steel kettle lid")
    ['steel', 'kettle', 'lid', 'steel kettle', 'kettle lid']
    """
    found = _find_words(text)
    return [*found, *(f"{one} {next_one}" for one, next_one in pairwise(found))]


def character_runs(token: str) -> list[str]:
    """Return the runs of 2 to 5 characters of a token with a space on either side.

    Examples
    --------
    >>> character_runs("mug")
    [' m', 'mu', 'ug', 'g ', ' mu', 'mug', 'ug ', ' mug', 'mug ', ' mug ']
    """
    padded = f" {token} "
    shortest, longest = CHARACTER_RUNS
    runs: list[str] = []
    for length in range(shortest, longest + 1):
        if length >= len(padded):
            runs.append(padded)
            break
        runs += [padded[at : at + length] for at in range(len(padded) - length + 1)]
    return runs


def terms_of(kind: str, text: str) -> list[str]:
    """Return the terms of one kind in a text, as often as they occur.

    Examples
    --------
    >>> terms_of("words", "steel mug"), len(terms_of("chars", "steel mug"))
    (['steel', 'mug'], 28)
    """
    if kind == "chars":
        return [run for token in text.split() for run in character_runs(token)]
    return _ANALYSES[kind](text)


class TermCounter:
    """Counts the terms of one kind that it knows; `learn` finds out which those are.

    Parameters
    ----------
    kind : {"words", "pairs", "chars"}
    terms : sequence of str
        What each column counts.

    Examples
    --------
    >>> counter, counts = TermCounter.learn("words", ["steel kettle", "steel mug"])
    >>> counter.terms
    ['kettle', 'mug', 'steel']
    >>> counter.count(["mug and mug"]).toarray().tolist()
    [[0.0, 2.0, 0.0]]
    >>> dict(counter.count_one("mug and mug"))
    {1: 2}
    """

    def __init__(self, kind: str, terms: Sequence[str]) -> None:
        self.kind = kind
        self.terms = list(terms)
        self._column: Mapping[str, int] = {term: column for column, term in enumerate(terms)}

    @classmethod
    def learn(
        cls,
        kind: str,
        texts: Sequence[str],
        *,
        min_df: int = 1,
        max_features: int | None = None,
    ) -> tuple[TermCounter, sparse.csr_matrix]:
        """Return a counter of the terms in these texts, in alphabetical order, and their counts.

        Parameters
        ----------
        kind : {"words", "pairs", "chars"}
        texts : sequence of str
        min_df : int
            Leave out terms of fewer texts; a DataError where none are left.
        max_features : int, optional
            Keep the most frequent; of equals the first in alphabetical order.
        """
        column = _Open()
        counts = _count(kind, texts, column)
        terms = np.array(list(column), dtype=object)
        kept = np.bincount(counts.indices, minlength=terms.size) >= min_df
        alphabetical = np.argsort(terms, kind="stable")
        order = alphabetical[kept[alphabetical]]
        if max_features is not None and order.size > max_features:
            total = np.asarray(counts.sum(axis=0)).ravel()[order]
            order = order[np.sort(np.argsort(-total, kind="stable")[:max_features])]
        if not order.size:
            raise DataError("no terms are left")
        return cls(kind, terms[order].tolist()), _with_columns(counts, order)

    def count(self, texts: Sequence[str]) -> sparse.csr_matrix:
        """Return how often each known term occurs, CSR of float32, shape (n_texts, n_terms)."""
        return _count(self.kind, texts, self._column)

    def count_one(self, text: str) -> dict[int, int]:
        """Return the columns of a single text's known terms with their counts."""
        counted = Counter(map(self._column.get, terms_of(self.kind, text), repeat(-1)))
        counted.pop(-1, None)
        return counted


class _Open(dict[str, int]):
    """Columns by term; a term that is asked for gets one."""

    def __missing__(self, term: str) -> int:
        self[term] = column = len(self)
        return column


_ANALYSES: dict[str, Callable[[str], list[str]]] = {"words": words, "pairs": words_and_pairs}


def _count(kind: str, texts: Sequence[str], column: Mapping[str, int]) -> sparse.csr_matrix:
    if kind != "chars":
        return _counts_of(map(_ANALYSES[kind], texts), column)
    # A text's runs are those of its tokens, so a row is a sum over tokens: (texts × tokens) times
    # (tokens × runs), each distinct token taken apart once.
    tokens = _Open()
    per_text = _counts_of(map(str.split, texts), tokens)
    per_token = _counts_of(map(character_runs, tokens), column)
    counts = sparse.csr_matrix(per_text @ per_token)
    counts.sort_indices()
    return counts


def _counts_of(term_lists: Any, column: Mapping[str, int]) -> sparse.csr_matrix:
    """Return counts of terms by text; unknown ones are left out unless the mapping is open."""
    columns, ends = array("i"), array("q", [0])
    for terms in term_lists:
        if isinstance(column, _Open):
            columns.extend(map(column.__getitem__, terms))
        else:
            columns.extend(map(column.get, terms, repeat(-1)))
        ends.append(len(columns))
    indices = np.frombuffer(columns, dtype=np.int32) if columns else np.empty(0, np.int32)
    indptr = np.frombuffer(ends, dtype=np.int64)
    known = indices >= 0
    if not known.all():
        indptr = np.concatenate([[0], np.cumsum(known)])[indptr]
        indices = indices[known]
    counts = sparse.csr_matrix(
        (np.ones(indices.size, dtype=np.float32), indices.copy(), indptr),
        shape=(len(ends) - 1, len(column)),
    )
    counts.sum_duplicates()
    return counts


def _with_columns(counts: sparse.csr_matrix, order: NDArray[np.int64]) -> sparse.csr_matrix:
    """Return the matrix with these columns in this order, rows sorted."""
    position = np.full(counts.shape[1], -1, dtype=np.int32)
    position[order] = np.arange(order.size)
    indices = position[counts.indices]
    kept = indices >= 0
    indptr = np.concatenate([[0], np.cumsum(kept)])[counts.indptr]
    chosen = sparse.csr_matrix(
        (counts.data[kept], indices[kept], indptr), shape=(counts.shape[0], order.size)
    )
    chosen.sort_indices()
    return chosen
