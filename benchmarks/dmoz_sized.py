"""Problems of DMOZ's sizes, divided into training and validation rows, kept on disk if asked to.

    PYTHONPATH=src python3 benchmarks/dmoz_sized.py dmoz-2010 --cache /tmp/rows

Prints the statistics of what was made.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from taxofit.bank.rows import Rows
from taxofit.bank.split import split_rows
from taxofit.datasets.web_directory import make_web_directory
from taxofit.taxonomy import Taxonomy

if TYPE_CHECKING:
    from numpy.typing import NDArray

VALIDATION_FRACTION = 0.1


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows with the constant feature, their leaves as nodes, and the taxonomy."""

    train: Rows
    train_leaf: NDArray[np.int32]
    validation: Rows
    validation_leaf: NDArray[np.int32]
    taxonomy: Taxonomy

    def __str__(self) -> str:
        return (
            f"{self.taxonomy}, {self.train.n_rows} training and {self.validation.n_rows} "
            f"validation rows, {self.train.n_features} features with the constant one, "
            f"{self.train.X.nnz / self.train.n_rows:.1f} non-zeros a row"
        )


def load_problem(size: str, *, scale: float = 1.0, cache: Path | None = None) -> Problem:
    """Return a problem, from the cache if it is there."""
    file = None if cache is None else cache / f"{size}-{scale:g}.npz"
    if file is not None and file.is_file():
        with np.load(file) as arrays:
            return _divided(**arrays)
    train, _ = make_web_directory(size, scale=scale)
    X, taxonomy = train.X, train.taxonomy
    arrays = {
        "data": X.data,
        "indices": X.indices,
        "indptr": X.indptr,
        "n_features": np.array(X.shape[1]),
        "parent": taxonomy.parent,
        "row_leaf": taxonomy.nodes_of(train.y),
    }
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        np.savez(file, **arrays)
    return _divided(**arrays)


def _divided(
    data: Any, indices: Any, indptr: Any, n_features: Any, parent: Any, row_leaf: Any
) -> Problem:
    X = sparse.csr_array((data, indices, indptr), shape=(indptr.size - 1, int(n_features)))
    kept, held_out = split_rows(
        X, row_leaf, np.ones(row_leaf.size), fraction=VALIDATION_FRACTION, seed=0
    )
    return Problem(
        Rows.prepare(X[kept]),
        row_leaf[kept],
        Rows.prepare(X[held_out]),
        row_leaf[held_out],
        Taxonomy.from_parents(parent),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("size", nargs="?", default="dmoz-small")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--cache", type=Path)
    options = parser.parse_args()
    started = time.perf_counter()
    problem = load_problem(options.size, scale=options.scale, cache=options.cache)
    print(f"{problem}; {time.perf_counter() - started:.1f} s")
    frequency = np.bincount(problem.train.X.indices, minlength=problem.train.n_features)
    sizes = np.bincount(problem.train_leaf)
    sizes = sizes[sizes > 0]
    print(
        f"features in one row {np.mean(frequency == 1):.3f}, "
        f"in none {np.mean(frequency == 0):.3f}; "
        f"rows of a leaf: median {np.median(sizes):.0f}, largest {sizes.max()}"
    )


if __name__ == "__main__":
    main()
