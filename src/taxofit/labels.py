"""Labels as estimators take them: checked, and found in a taxonomy."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.multiclass import check_classification_targets

from taxofit.errors import DataError
from taxofit.taxonomy import Taxonomy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["check_labels", "find_leaves", "label_array"]


def check_labels(y: Any, n_rows: int) -> NDArray[Any]:
    """Return y as a 1-D array of labels or tuples, or as a 2-D array with a path in each row.

    Examples
    --------
    >>> check_labels([("Home", "Kettles"), ("Pets",)], n_rows=2)
    array([('Home', 'Kettles'), ('Pets',)], dtype=object)
    """
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    if hasattr(y, "to_numpy"):
        y = y.to_numpy()
    if isinstance(y, (list, tuple)) and len(y) and isinstance(y[0], (list, tuple)):
        y = label_array([tuple(path) for path in y])
    y = np.asarray(y)
    if y.ndim == 2 and y.shape[1] == 1:
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected; it was flattened",
            DataConversionWarning,
            stacklevel=3,
        )
        y = y.ravel()
    if y.ndim not in (1, 2):
        raise ValueError(f"y must have one label or one path a row, got shape {y.shape}")
    if y.shape[0] != n_rows:
        raise DataError(f"X has {n_rows} rows but y has {y.shape[0]}; they must be the same")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise DataError("y contains NaN or infinity; every row needs a label")
    return y


def find_leaves(y: NDArray[Any], taxonomy: Taxonomy | None) -> tuple[Taxonomy, NDArray[np.int32]]:
    """Return the taxonomy and the leaf of every row, as a node.

    Parameters
    ----------
    y : ndarray
        From :func:`check_labels`.
    taxonomy : Taxonomy, optional
        Made from y where it is None: from paths, or a flat one from plain labels.

    Examples
    --------
    >>> find_leaves(np.array(["b", "a", "b"]), None)
    (Taxonomy(3 nodes, 2 leaves, depth 1), array([2, 1, 2], dtype=int32))
    """
    if taxonomy is None:
        if y.ndim == 2 or isinstance(y[0], tuple):
            taxonomy = Taxonomy.from_paths(y.tolist())
        else:
            check_classification_targets(y)
            taxonomy = Taxonomy.from_labels(np.unique(y).tolist())
    elif not isinstance(taxonomy, Taxonomy):
        raise TypeError(
            f"taxonomy must be a Taxonomy or None, got {type(taxonomy).__name__}; build one with "
            f"Taxonomy.from_edges or Taxonomy.from_paths"
        )
    row_leaf = taxonomy.nodes_of(y)
    inside = np.flatnonzero(~taxonomy.is_leaf[row_leaf])
    if inside.size:
        label = taxonomy.labels[row_leaf[inside[0]]]
        raise DataError(
            f"{inside.size} rows are labelled with internal nodes, first row {inside[0]} with "
            f"{label!r}; drop them or give them a leaf of their own"
        )
    return taxonomy, row_leaf


def label_array(labels: Sequence[Any]) -> NDArray[Any]:
    """Return labels as an array of their own type, or of objects where they are mixed or tuples.

    Examples
    --------
    >>> label_array(["a", 1])
    array(['a', 1], dtype=object)
    """
    kinds = {type(label) for label in labels}
    if len(kinds) == 1 and kinds <= {str, int, float, bool}:
        return np.asarray(labels)
    array = np.empty(len(labels), dtype=object)
    array[:] = labels
    return array
