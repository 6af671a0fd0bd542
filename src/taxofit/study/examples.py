"""Validation rows that are worth reading: a few of each leaf, those that moved first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    IntArray = NDArray[np.int32]

__all__ = ["choose_examples"]

MAX_EXAMPLES = 3000
N_PER_LEAF = 6
N_RIGHT = 2  # of these, rows that were right all along
MAX_CHARACTERS = 180


def choose_examples(
    true: IntArray,
    before: IntArray,
    after: IntArray,
    rows: NDArray[np.int64],
    X: Any = None,
) -> list[list[Any]]:
    """Return rows as [text or None, row, true leaf, leaf before, leaf after].

    Of every leaf come first the rows that repair put right or wrong, then those wrong in both, then
    a few that were always right. Where there are too many leaves, each gives fewer.

    Examples
    --------
    >>> leaf = np.array([1, 1, 2])
    >>> choose_examples(leaf, np.array([1, 2, 2]), leaf, np.arange(3), ["a", "b", "c"])
    [['b', 1, 1, 2, 1], ['a', 0, 1, 1, 1], ['c', 2, 2, 2, 2]]
    """
    was_right, is_right = before == true, after == true
    interest = np.where(was_right != is_right, 0, np.where(was_right, 2, 1))
    order = np.lexsort((interest, true))
    leaf, interest = true[order], interest[order]
    place = _place_in_run(leaf)
    place_of_right = _place_in_run(leaf * 3 + interest)
    wanted = (place < N_PER_LEAF) & ((interest < 2) | (place_of_right < N_RIGHT))
    for limit in range(N_PER_LEAF, 0, -1):
        chosen = order[wanted & (place < limit)]
        if chosen.size <= MAX_EXAMPLES:
            break
    return [
        [_text(X, int(rows[i])), int(rows[i]), int(true[i]), int(before[i]), int(after[i])]
        for i in chosen[:MAX_EXAMPLES]
    ]


def _place_in_run(values: NDArray[Any]) -> NDArray[np.int64]:
    """Return how many equal neighbours stand before each value."""
    is_new = np.ones(values.size, dtype=bool)
    is_new[1:] = values[1:] != values[:-1]
    starts = np.flatnonzero(is_new)
    return np.arange(values.size) - np.repeat(starts, np.diff(np.append(starts, values.size)))


def _text(X: Any, row: int) -> str | None:
    """Return a row's text, shortened; None where rows are numbers."""
    if hasattr(X, "iloc"):
        value = X.iloc[row]
        parts = value if isinstance(value, str) else [v for v in value if isinstance(v, str)]
        text = parts if isinstance(parts, str) else " · ".join(parts)
    elif isinstance(X, (list, tuple)) or getattr(X, "ndim", 0) == 1:
        text = X[row] if isinstance(X[row], str) else ""
    else:
        text = ""
    text = " ".join(text.split())
    if not text:
        return None
    return text if len(text) <= MAX_CHARACTERS else f"{text[: MAX_CHARACTERS - 1].rstrip()}…"
