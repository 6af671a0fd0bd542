"""Studies to draw pages of: a fitted shop, hostile labels, and a directory of 17,222 nodes."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd

from taxofit import Taxonomy, TaxonomyClassifier
from taxofit.bank.evidence import Evidence
from taxofit.datasets import make_shop_catalogue
from taxofit.flattening import global_threshold
from taxofit.predict.search import GREEDY
from taxofit.selection import Validation
from taxofit.study import study_fit

HOSTILE = (
    "</script><script>window.pwned=1</script>",
    '<img src=x onerror="window.pwned=1">',
    '"><svg onload=window.pwned=1>',
    "<a href='javascript:window.pwned=1'>here</a>",
    "%{customdata} ${window.pwned=1} {{script}}",
    "<!-- <b>&amp; \u2028 ]]>",
)
FANS = (14, 12, 8, 4, 4)  # children of a node, level by level, before leaves are cut away
N_LARGE = 17_222


def shop_study():
    """Return the study of a fitted shop, and the classifier."""
    shop = make_shop_catalogue(1200)
    model = TaxonomyClassifier(shop.taxonomy, C=10.0, encoder="words").fit(shop.texts, shop.y)
    return study_fit(model, shop.texts, name="shop"), model


def other_study(**settings):
    """Return the study of a small shop fitted in another way."""
    shop = make_shop_catalogue(600)
    model = TaxonomyClassifier(shop.taxonomy, encoder="words", **settings)
    return study_fit(model.fit(shop.texts, shop.y), shop.texts, name="shop")


def hostile_study():
    """Return a study whose data, nodes, words and rows are all markup."""
    tops = HOSTILE[:3]
    paths = [(top, f"{leaf} {k}") for k, top in enumerate(tops) for leaf in HOSTILE]
    y = np.array([f"{leaf} {k}" for k in range(3) for leaf in HOSTILE] * 12, dtype=object)
    texts = [f"{label} row {row % 7}" for row, label in enumerate(y)]
    model = TaxonomyClassifier(Taxonomy.from_paths(paths), encoder="words", C=1.0).fit(texts, y)
    study = study_fit(model, texts, name=HOSTILE[0], how={HOSTILE[1]: HOSTILE[0]})
    study["features"] = {
        node: {"for": [[word, 1.0] for word in HOSTILE], "against": [[HOSTILE[1], -1.0]]}
        for node in study["features"]
    }
    return study


def large_study(n_nodes: int = N_LARGE, n_rows: int = 400):
    """Return the study of a directory that nobody trained: random scores for every node.

    All of it but the weights goes through the same code as a fitted classifier's.
    """
    rng = np.random.default_rng(0)
    taxonomy = Taxonomy.from_parents(_parents(n_nodes), [f"Category {k}" for k in range(n_nodes)])
    leaves = taxonomy.leaf_order
    true = rng.choice(leaves, n_rows).astype(np.int32)
    scores = rng.normal(size=(n_rows, n_nodes)).astype(np.float32)
    paths = taxonomy.ancestors(true)
    for level in range(1, taxonomy.depth + 1):
        there = np.flatnonzero(paths[:, level] >= 0)
        scores[there, paths[there, level]] += 4.0
    rows = taxonomy.totals(np.where(taxonomy.is_leaf, rng.zipf(1.8, n_nodes).clip(max=500), 0))
    objective = np.concatenate([[np.nan], rng.gamma(2.0, np.log1p(rows[1:]))])
    removed = taxonomy.is_internal & (objective > global_threshold(objective, 1.0))
    norm = np.ones(n_nodes)
    columns = {"rows": rows[1:], "removed": removed[1:]}
    repaired = taxonomy.without(removed)[0]
    weights = rng.normal(size=(64, repaired.n_nodes))

    classifier = SimpleNamespace(
        original_taxonomy_=taxonomy,
        removed_=tuple(taxonomy.labels[node] for node in np.flatnonzero(removed)),
        evidence_=pd.DataFrame(columns),
        validation_=Validation(
            np.arange(n_rows), leaves, Evidence(1.0, scores, true, objective, norm)
        ),
        flattening="global-inf",
        C_=1.0,
        psi_=1.0,
        n_features_in_=64,
        taxonomy_=repaired,
        weights_=SimpleNamespace(node_scores=lambda X, *_: X @ weights),
        search_=GREEDY,
        get_params=lambda deep: {"taxonomy": None, "deep": deep},
    )
    texts = [f"A page of the directory about {k}, " + "with words " * 12 for k in range(n_rows)]
    return study_fit(classifier, texts, name="directory")


def _parents(n_nodes: int) -> list[int]:
    """Return parents in breadth-first order, level by level as wide as `FANS` says."""
    parents, level = [-1], [0]
    for fan in FANS:
        below = []
        for node in level:
            for _ in range(fan):
                if len(parents) == n_nodes:
                    return parents
                below.append(len(parents))
                parents.append(node)
        level = below
    return parents
