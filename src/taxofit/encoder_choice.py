"""Which text features suit the data: tried on validation rows, before anything else is chosen.

Words, words and pairs, or words and runs of characters: short texts in which every ending counts
want the last, long ones the first, and the difference is as large as that between classifiers. Each
candidate encodes the same rows; the leaves alone are solved, at one C and loosely, on nine tenths
of the rows, and the macro-F1 of flat predictions on the rest decides; more features must be better
by half a point. The taxonomy and the way it is repaired play no part in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from taxofit.bank.harvest import Harvest
from taxofit.bank.node_bank import NodeBank
from taxofit.bank.rows import Rows
from taxofit.bank.solver import SolverSettings
from taxofit.bank.split import split_rows
from taxofit.datasets.text_encoder import ANALYSES, TextEncoder
from taxofit.metrics import macro_f1_nodes
from taxofit.selection import VALIDATION_FRACTION

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from taxofit.bank.harvest import Arrays
    from taxofit.bank.kernels import Device
    from taxofit.bank.solver import BlockSolution
    from taxofit.progress import StageProgress
    from taxofit.taxonomy import Taxonomy

    IntArray = NDArray[np.int32]

__all__ = ["EncoderChoice", "choose_features", "has_open_features", "new_encoder"]

AUTO = "auto"
CHOICE_C = 10.0
CHOICE_TOL = 1e-2  # moves NAICS' macro-F1 by less than 0.2 points from 1e-4, in 2/3 of the time
MIN_GAIN = 0.005  # of macro-F1, for which more features are worth their time and memory
MAX_ROWS, MAX_LEAVES = 20_000, 1_000
MAX_CHARACTERS = 20_000_000  # of text; their runs of characters take some 300 MB
N_ROWS_PROBED = 500


@dataclass(frozen=True)
class EncoderChoice:
    """Which features were chosen, and why.

    Attributes
    ----------
    features : str
        The name of the best candidate; one with more features must be better by half a point.
    scores : dict of float
        Validation macro-F1 of every candidate.
    n_features : dict of int
        Columns of every candidate.
    n_rows, n_leaves : int
        What the choice was made on; fewer than there are where the data is large.
    """

    features: str
    scores: dict[str, float]
    n_features: dict[str, int]
    n_rows: int
    n_leaves: int


def new_encoder(encoder: Any) -> Any:
    """Return an unfitted encoder of one's own, or None; a name stands for a text encoder.

    Examples
    --------
    >>> new_encoder("pairs")
    TextEncoder(features='pairs')
    """
    if isinstance(encoder, str):
        return TextEncoder(features=encoder)  # type: ignore[arg-type]
    return None if encoder is None else clone(encoder)


def has_open_features(encoder: Any) -> bool:
    """Return whether the features of an encoder are still to be chosen.

    Examples
    --------
    >>> from taxofit.datasets import TextEncoder
    >>> has_open_features(TextEncoder(features="auto")), has_open_features(None)
    (True, False)
    """
    return getattr(encoder, "features", None) == AUTO


def choose_features(
    encoder: Any,
    X: Any,
    taxonomy: Taxonomy,
    row_leaf: IntArray,
    *,
    seed: int = 0,
    n_threads: int | None = None,
    device: Device = "cpu",
    progress: StageProgress | None = None,
) -> EncoderChoice:
    """Return which features an encoder should have on these rows.

    All candidates see one split, drawn by what the rows hold as words. Data with more than 20,000
    rows, 1,000 leaves or 20 million characters is sampled: first leaves, then rows of these leaves.

    Parameters
    ----------
    encoder : TextEncoder or FrameEncoder
        Its other settings are kept.
    X : array, frame or list
        Rows as the encoder takes them.
    taxonomy : Taxonomy
    row_leaf : ndarray of int32, shape (n_rows,)
        The leaf of every row, as a node.
    seed : int
    n_threads, device
        As in :class:`~taxofit.bank.node_bank.NodeBank`.
    progress : callable, optional
        Called with ("Trying words", leaves done, leaves in all) and so on.
    """
    sample = _sample(X, row_leaf, seed)
    X, row_leaf = _take(X, sample), row_leaf[sample]
    scores: dict[str, float] = {}
    n_features: dict[str, int] = {}
    split: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None
    for features in ANALYSES:
        tell = None if progress is None else partial(progress, f"Trying {features}")
        if tell is not None:
            tell(0, 0)
        encoded = clone(encoder).set_params(features=features).fit_transform(X)
        if split is None:
            weight = np.ones(row_leaf.size)
            split = split_rows(encoded, row_leaf, weight, fraction=VALIDATION_FRACTION, seed=seed)
        training, held_out = split
        n_features[features] = int(encoded.shape[1])
        if not (training.size and held_out.size):
            scores[features] = 0.0  # a single distinct row: nothing can be held out
            continue
        bank = NodeBank(
            Rows.prepare(encoded[training]),
            taxonomy,
            row_leaf[training],
            settings=SolverSettings(tol=CHOICE_TOL),
            n_threads=n_threads,
            device=device,
        )
        rows = Rows.prepare(encoded[held_out])
        scores[features] = _flat_macro_f1(bank, rows, row_leaf[held_out], tell)
    return EncoderChoice(
        _chosen(scores), scores, n_features, row_leaf.size, np.unique(row_leaf).size
    )


def _chosen(scores: dict[str, float]) -> str:
    """Return the candidate that none after it, each with more features, beats by enough."""
    best, *others = scores
    for features in others:
        if scores[features] > scores[best] + MIN_GAIN:
            best = features
    return best


@dataclass(frozen=True, eq=False)
class _PickWinners:
    """Takes the best leaf of a block for every row, and its score."""

    rows: Rows

    def __call__(self, nodes: IntArray, C: float, solution: BlockSolution) -> Arrays:  # noqa: ARG002  (a Pick)
        scores = solution.scores(self.rows)
        winner = np.argmax(scores, axis=1)
        best = scores[np.arange(winner.size), winner]
        return {"winner": nodes[winner], "score": best}


def _flat_macro_f1(
    bank: NodeBank,
    rows: Rows,
    row_leaf: IntArray,
    progress: Callable[[int, int], None] | None,
) -> float:
    """Return the macro-F1 of giving each row to the leaf of highest score."""
    leaves = np.unique(bank.row_leaf)
    found: list[tuple[IntArray, NDArray[Any]]] = []

    def receive(nodes: IntArray, C: float, arrays: Arrays) -> None:  # noqa: ARG001  (a Receive)
        found.append((arrays["winner"], arrays["score"]))

    bank.solve([CHOICE_C], Harvest(_PickWinners(rows), receive), nodes=leaves, progress=progress)
    predicted, best = found[0]
    for nodes, scores in found[1:]:
        # of equal scores the smaller node wins: blocks come in any order
        is_better = (scores > best) | ((scores == best) & (nodes < predicted))
        predicted, best = np.where(is_better, nodes, predicted), np.where(is_better, scores, best)
    classes = np.union1d(leaves, row_leaf).astype(np.int32)
    return macro_f1_nodes(row_leaf, predicted, bank.taxonomy.is_leaf, classes)


def _sample(X: Any, row_leaf: IntArray, seed: int) -> NDArray[np.int64]:
    """Return the rows to choose on: all of them, or some rows of some leaves."""
    random = np.random.default_rng(seed)
    rows = np.arange(row_leaf.size)
    leaves = np.unique(row_leaf)
    if leaves.size > MAX_LEAVES:
        rows = rows[np.isin(row_leaf, random.choice(leaves, MAX_LEAVES, replace=False))]
    probe = random.choice(rows, min(rows.size, N_ROWS_PROBED), replace=False)
    mean_length = _n_characters(_take(X, probe)) / probe.size
    n_rows = int(min(MAX_ROWS, MAX_CHARACTERS / max(1.0, mean_length)))
    if rows.size > n_rows:
        rows = np.sort(random.choice(rows, max(2, n_rows), replace=False))
    return rows


def _n_characters(X: Any) -> int:
    cells = X if isinstance(X, list) else np.asarray(X, dtype=object).ravel().tolist()
    return sum(len(cell) for cell in cells if isinstance(cell, str))


def _take(X: Any, rows: NDArray[np.int64]) -> Any:
    """Return some rows of an array, a frame or a list."""
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    return [X[row] for row in rows.tolist()] if isinstance(X, list) else X[rows]
