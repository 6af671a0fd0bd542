"""The bank against scikit-learn's liblinear, node by node, on the paper's data."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from tests.real_data import real_data

from taxofit.bank.harvest import Harvest, pick_weights
from taxofit.bank.node_bank import NodeBank
from taxofit.bank.objective import objective
from taxofit.bank.rows import Rows, node_targets
from taxofit.bank.solver import SolverSettings
from taxofit.datasets import ColumnScaler, TextEncoder, load_benchmark

# Raw CLEF has a huge gradient at zero, which liblinear's rule is relative to: at 1e-6 a separable
# node stops 8e-4 above its minimum. Float32 weights of sparse rows cannot follow it to 1e-8.
TOLERANCE = {"clef": 1e-8, "diatoms": 1e-6, "naics": 1e-6}
C_GRID = [10.0**k for k in range(-3, 4)]


def clef_rows():
    train, _ = load_benchmark("clef", real_data())
    return train, Rows.prepare(train.X)


def diatoms_rows():
    train, _ = load_benchmark("diatoms", real_data())
    return train, Rows.prepare(ColumnScaler().fit_transform(train.X))


def naics_rows():
    train, _ = load_benchmark("naics", real_data())
    return train, Rows.prepare(TextEncoder(features="pairs").fit_transform(train.X))


def as_liblinear_takes_it(X):
    if not sparse.issparse(X):
        return X
    return sparse.csr_array(
        (X.data.astype(np.float64), X.indices, X.indptr.astype(np.int32)), shape=X.shape
    )


def liblinear_objective(rows, y, C):
    # liblinear at this tolerance can run out of steps where float64 has nothing left to give.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LogisticRegression(
            C=C, solver="liblinear", tol=1e-8, fit_intercept=False, max_iter=1000
        ).fit(as_liblinear_takes_it(rows.X), y)
    return objective(model.coef_[0], rows.X, y, C)


def assert_objectives_agree(dataset, rows, nodes, Cs):
    taxonomy, row_leaf = dataset.taxonomy, dataset.taxonomy.nodes_of(dataset.y)
    solved = {}

    def keep(block, C, arrays):
        for column, node in enumerate(block):
            solved[int(node), C] = arrays["weights"][:, column].astype(np.float64)

    bank = NodeBank(rows, taxonomy, row_leaf, settings=SolverSettings(tol=TOLERANCE[dataset.name]))
    bank.solve(Cs, Harvest(pick_weights, keep), nodes=np.asarray(nodes, dtype=np.int32))
    signs = node_targets(taxonomy, row_leaf, np.asarray(nodes)).signs()
    for column, node in enumerate(nodes):
        y = signs[:, column]
        if (y < 0).all():
            continue  # liblinear refuses a single class
        for C in Cs:
            ours = objective(solved[int(node), C], rows.X, y, C)
            theirs = liblinear_objective(rows, y, C)
            assert ours <= theirs * (1 + 1e-6), (taxonomy.labels[node], C, ours, theirs)
            assert theirs <= ours * (1 + 1e-4), (taxonomy.labels[node], C, ours, theirs)


def some(taxonomy, n, seed=0):
    rng = np.random.default_rng(seed)
    return np.sort(rng.choice(np.arange(1, taxonomy.n_nodes), size=n, replace=False))


@pytest.mark.parametrize("load", [clef_rows, diatoms_rows, naics_rows])
def test_objectives_of_a_few_nodes_are_those_of_liblinear(load):
    dataset, rows = load()
    assert_objectives_agree(dataset, rows, some(dataset.taxonomy, 4), [1e-3, 1.0, 1e2])


@pytest.mark.slow
@pytest.mark.parametrize("load", [clef_rows, diatoms_rows])
def test_objectives_of_all_nodes_are_those_of_liblinear(load):
    dataset, rows = load()
    assert_objectives_agree(dataset, rows, np.arange(1, dataset.taxonomy.n_nodes), C_GRID)


@pytest.mark.slow
def test_objectives_of_fifty_nodes_of_naics_are_those_of_liblinear():
    dataset, rows = naics_rows()
    assert_objectives_agree(dataset, rows, some(dataset.taxonomy, 50), C_GRID)
