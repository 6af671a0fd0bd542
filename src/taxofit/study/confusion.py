"""Where validation rows end that do not end where they should."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from taxofit.taxonomy import Taxonomy

    IntArray = NDArray[np.int32]

__all__ = ["confused_leaves", "confused_nodes", "error_kinds", "n_found"]

N_OTHERS = 4  # the most frequent rivals of a node
N_PAIRS = 400  # of leaves, for the heat map


def n_found(true: IntArray, predicted: IntArray, taxonomy: Taxonomy) -> NDArray[np.int64]:
    """Return how many rows of every node were given a leaf under it, shape (n_nodes,).

    Examples
    --------
    >>> from taxofit import Taxonomy
    >>> t = Taxonomy.from_paths([("Home", "Kettles"), ("Home", "Mugs"), ("Pets", "Fish")])
    >>> kettles, mugs, fish = t.nodes_of(["Kettles", "Mugs", "Fish"])
    >>> found = n_found(np.array([kettles, fish]), np.array([mugs, fish]), t)
    >>> found[t.node_of("Home")], found[kettles], found[fish]
    (np.int64(1), np.int64(0), np.int64(1))
    """
    meeting = taxonomy.common_ancestors(true, predicted)
    return taxonomy.totals(np.bincount(meeting, minlength=taxonomy.n_nodes))


def confused_nodes(
    true: IntArray, predicted: IntArray, taxonomy: Taxonomy
) -> dict[str, list[list[int]]]:
    """Return, for each node that lost rows, the nodes of its level that they went to.

    A row that leaves its true path counts at each node it missed; its place there is the
    prediction's ancestor on the same level, or the prediction itself where that lies higher. The
    keys are nodes as texts, as JSON wants them; the values pairs (node, rows), most rows first.

    Examples
    --------
    >>> from taxofit import Taxonomy
    >>> t = Taxonomy.from_paths([("Home", "Kettles"), ("Home", "Mugs"), ("Pets", "Fish")])
    >>> confused_nodes(t.nodes_of(["Kettles"]), t.nodes_of(["Mugs"]), t)
    {'3': [[4, 1]]}
    """
    wrong = true != predicted
    true, predicted = true[wrong], predicted[wrong]
    true_path, predicted_path = taxonomy.ancestors(true), taxonomy.ancestors(predicted)
    places = np.where(predicted_path >= 0, predicted_path, predicted[:, None])
    missed = (true_path >= 0) & (true_path != places)
    pairs = np.column_stack([true_path[missed], places[missed]])
    return _most_frequent(pairs)


def confused_leaves(true: IntArray, before: IntArray, after: IntArray) -> list[list[int]]:
    """Return the most frequent wrong pairs: true leaf, predicted leaf, rows before, rows after."""
    pairs = np.concatenate(
        [np.column_stack([true, walk])[true != walk] for walk in (before, after)]
    )
    is_after = np.repeat([0, 1], [(true != before).sum(), (true != after).sum()])
    distinct, place = np.unique(pairs, axis=0, return_inverse=True)
    counts = np.zeros((len(distinct), 2), dtype=np.int64)
    np.add.at(counts, (place.ravel(), is_after), 1)
    order = np.lexsort((distinct[:, 1], distinct[:, 0], -counts.sum(axis=1)))[:N_PAIRS]
    return np.column_stack([distinct[order], counts[order]]).tolist()


def error_kinds(true: IntArray, predicted: IntArray, taxonomy: Taxonomy) -> dict[str, int]:
    """Return how many wrong rows ended at a sibling, a cousin, or further from their leaf.

    Siblings share a parent, cousins a grandparent of the true leaf.

    Examples
    --------
    >>> from taxofit import Taxonomy
    >>> t = Taxonomy.from_paths([("Home", "Kettles"), ("Home", "Mugs"), ("Pets", "Fish")])
    >>> error_kinds(t.nodes_of(["Kettles", "Kettles"]), t.nodes_of(["Mugs", "Fish"]), t)
    {'sibling': 1, 'cousin': 1, 'further': 0}
    """
    wrong = true != predicted
    meeting = taxonomy.common_ancestors(true[wrong], predicted[wrong])
    steps = taxonomy.level[true[wrong]] - taxonomy.level[meeting]
    n_sibling, n_cousin = int((steps <= 1).sum()), int((steps == 2).sum())
    return {"sibling": n_sibling, "cousin": n_cousin, "further": steps.size - n_sibling - n_cousin}


def _most_frequent(pairs: IntArray) -> dict[str, list[list[int]]]:
    distinct, counts = np.unique(pairs, axis=0, return_counts=True)
    found: dict[str, list[list[int]]] = {}
    for place in np.lexsort((distinct[:, 1], -counts, distinct[:, 0])).tolist():
        rivals = found.setdefault(str(distinct[place, 0]), [])
        if len(rivals) < N_OTHERS:
            rivals.append([int(distinct[place, 1]), int(counts[place])])
    return found
