"""Why nodes were removed, in plain words and with the figures behind them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from taxofit.flattening import Judge
from taxofit.taxonomy import PATH_SEPARATOR

if TYPE_CHECKING:
    from collections.abc import Hashable

    from numpy.typing import NDArray

    from taxofit.bank.evidence import Evidence
    from taxofit.classifier import TaxonomyClassifier
    from taxofit.taxonomy import Taxonomy

    IntArray = NDArray[np.int32]

__all__ = ["Neighbours", "Removal", "explain_removals", "neighbours_of"]

CHUNK_CELLS = 1 << 24  # scores looked at together
SOLVED_TO = 1e-5  # relative: two sides of one question have the same objective but for rounding


@dataclass(frozen=True)
class Neighbours:
    """Which categories the rows of a node are closest to, their own child of it left aside.

    A row under child c of the node is closest to that leaf, among all leaves not under c, whose
    score θ·x is highest. Shares are of the node's validation rows.

    Attributes
    ----------
    n_rows : int
    own_share : float
        Closest to a leaf under another child of the node.
    nearest : label or None
        The branch that is closest most often among those beside the node: the child of their lowest
        common ancestor with the node. None where there are no rows or no other branch.
    nearest_share : float
    """

    n_rows: int
    own_share: float
    nearest: Hashable | None
    nearest_share: float


@dataclass(frozen=True)
class Removal:
    """A removed node and what speaks against it.

    Attributes
    ----------
    label : label
    path : str
    level, n_children, n_rows : int
        Rows are those of training.
    objective : float or None
        f* on the validation rows.
    worse_than : float or None
        Share of the other nodes whose f* is lower.
    sent_elsewhere : float or None
        Share of its validation rows that top-down prediction in the original taxonomy does not lead
        through the node.
    neighbours : Neighbours or None
        None where no rows were held out.
    reason : str
        All of that in plain words.
    """

    label: Hashable
    path: str
    level: int
    n_children: int
    n_rows: int
    objective: float | None
    worse_than: float | None
    sent_elsewhere: float | None
    neighbours: Neighbours | None
    reason: str

    def to_json(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return asdict(self)


def explain_removals(classifier: TaxonomyClassifier) -> list[Removal]:
    """Return the removed nodes, worst first, each with reasons.

    Examples
    --------
    >>> from taxofit import TaxonomyClassifier
    >>> texts = ["steel kettle", "copper kettle", "tea mug", "red mug", "guppy", "goldfish"] * 5
    >>> paths = [("Home", "Kettles")] * 2 + [("Home", "Mugs")] * 2 + [("Pets", "Fish")] * 2
    >>> fitted = TaxonomyClassifier(flattening="lr", encoder="words", C=1.0).fit(texts, paths * 5)
    >>> [(removal.path, removal.reason) for removal in explain_removals(fitted)]
    [('Home', 'every internal node is removed'), ('Pets', 'it has a single child: ...')]
    """
    taxonomy, validation = classifier.original_taxonomy_, classifier.validation_
    evidence = None if validation is None else validation.evidence
    reached = None
    if validation is not None:
        judge = Judge(taxonomy, validation.evidence, validation.classes)
        reached = judge.predict(np.zeros(taxonomy.n_nodes, dtype=bool))
    table = classifier.evidence_  # one line for each node but the root
    removals = [
        _explained(taxonomy, node, table.iloc[node - 1], evidence, reached)
        for node in taxonomy.nodes_of(classifier.removed_).tolist()
    ]
    return sorted(removals, key=lambda removal: -(removal.worse_than or 0.0))


def neighbours_of(taxonomy: Taxonomy, evidence: Evidence, node: int) -> Neighbours:
    """Return what the rows of an internal node are closest to, from the validation scores.

    Parameters
    ----------
    taxonomy : Taxonomy
        The original one, whose nodes are the columns of the scores.
    evidence : Evidence
    node : int
    """
    rows = np.flatnonzero(_is_under(taxonomy, evidence.row_leaf, node))
    if not rows.size:
        return Neighbours(0, 0.0, None, 0.0)
    closest = _closest_leaves(taxonomy, evidence, node, rows)
    leaves, counts = np.unique(closest[closest >= 0], return_counts=True)
    is_own = _is_under(taxonomy, leaves, node)
    own = int(counts[is_own].sum())
    branches: dict[int, int] = {}
    for leaf, count in zip(leaves[~is_own].tolist(), counts[~is_own].tolist(), strict=True):
        branch = _branch_beside(taxonomy, node, leaf)
        branches[branch] = branches.get(branch, 0) + count
    if not branches:
        return Neighbours(rows.size, own / rows.size, None, 0.0)
    nearest = max(branches, key=lambda branch: (branches[branch], -branch))
    return Neighbours(
        rows.size, own / rows.size, taxonomy.labels[nearest], branches[nearest] / rows.size
    )


def _explained(
    taxonomy: Taxonomy,
    node: int,
    line: Any,
    evidence: Evidence | None,
    reached: IntArray | None,
) -> Removal:
    n_children = len(taxonomy.children(node))
    worse_than = sent_elsewhere = neighbours = objective = None
    if evidence is not None and reached is not None:
        objective = float(evidence.objective[node])
        others = np.delete(evidence.objective, [0, node])
        is_lower = others < objective * (1 - SOLVED_TO)
        worse_than = float(np.mean(is_lower)) if others.size else 0.0
        neighbours = neighbours_of(taxonomy, evidence, node)
        mine = _is_under(taxonomy, evidence.row_leaf, node)
        if mine.any():
            sent_elsewhere = float(np.mean(~_is_under(taxonomy, reached[mine], node)))
    words = [_why(str(line["why"]), worse_than, is_compared=np.isfinite(line["threshold"]))]
    if n_children == 1:
        words.insert(0, "it has a single child: it asks a question that has one answer")
    elif neighbours is not None and neighbours.nearest is not None:
        words.append(_in_words(neighbours))
    if sent_elsewhere:
        words.append(f"top-down, {sent_elsewhere:.0%} of its rows are sent elsewhere")
    return Removal(
        label=taxonomy.labels[node],
        path=PATH_SEPARATOR.join(map(str, taxonomy.path(node))),
        level=int(taxonomy.level[node]),
        n_children=n_children,
        n_rows=int(line["rows"]),
        objective=objective,
        worse_than=worse_than,
        sent_elsewhere=sent_elsewhere,
        neighbours=neighbours,
        reason="; ".join(words),
    )


def _why(why: str, worse_than: float | None, *, is_compared: bool) -> str:
    if worse_than is None or not is_compared:
        return why.removeprefix("removed: ").partition(",")[0]
    share = "all other" if worse_than == 1 else f"{np.floor(100 * worse_than):.0f} % of"
    return f"its rows are told apart from the rest worse than {share} nodes"


def _in_words(neighbours: Neighbours) -> str:
    own, other = f"{neighbours.own_share:.0%}", f"{neighbours.nearest_share:.0%}"
    if neighbours.nearest_share > neighbours.own_share:
        return (
            f"its children are closer to '{neighbours.nearest}' than to each other "
            f"({other} of its rows against {own})"
        )
    if neighbours.nearest_share == neighbours.own_share:
        return f"its children are as close to '{neighbours.nearest}' as to each other ({own} each)"
    return (
        f"its children are closest to each other ({own} of its rows), then to "
        f"'{neighbours.nearest}' ({other})"
    )


def _is_under(taxonomy: Taxonomy, leaves: IntArray, node: int) -> NDArray[np.bool_]:
    position = taxonomy.leaf_start[leaves]
    return (position >= taxonomy.leaf_start[node]) & (position < taxonomy.leaf_stop[node])


def _closest_leaves(
    taxonomy: Taxonomy, evidence: Evidence, node: int, rows: NDArray[np.int64]
) -> IntArray:
    """Return the leaf of highest score outside each row's own child of the node; -1 if none."""
    closest = np.full(rows.size, -1, dtype=np.int32)
    step = max(1, CHUNK_CELLS // taxonomy.n_leaves)
    for start in range(0, rows.size, step):
        part = rows[start : start + step]
        scores = evidence.scores[part][:, taxonomy.leaf_order]
        for child in taxonomy.children(node):
            mine = _is_under(taxonomy, evidence.row_leaf[part], int(child))
            columns = slice(taxonomy.leaf_start[child], taxonomy.leaf_stop[child])
            scores[mine, columns] = -np.inf
        best = np.argmax(scores, axis=1)
        is_found = np.isfinite(scores[np.arange(part.size), best])
        closest[start : start + step] = np.where(is_found, taxonomy.leaf_order[best], -1)
    return closest


def _branch_beside(taxonomy: Taxonomy, node: int, leaf: int) -> int:
    """Return the branch that a leaf outside the node is in, where their paths part."""
    above = set()
    while node > 0:
        node = int(taxonomy.parent[node])
        above.add(node)
    branch = leaf
    while int(taxonomy.parent[branch]) not in above:
        branch = int(taxonomy.parent[branch])
    return branch
