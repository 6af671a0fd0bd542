"""The bank: which problems are solved, how often, and what harvests and callers see."""

import numpy as np
import pytest
from scipy import sparse

from taxofit import Taxonomy
from taxofit.bank.evidence import gather_evidence, nodes_with_rows
from taxofit.bank.harvest import Harvest, pick_nothing, pick_weights
from taxofit.bank.node_bank import NodeBank
from taxofit.bank.objective import objective
from taxofit.bank.rows import Rows, node_targets
from taxofit.datasets import make_taxonomy_classification


@pytest.fixture(scope="module")
def made():
    return make_taxonomy_classification(
        400, depth=2, fan_out=4, n_features=120, n_inconsistent=0, random_state=5
    )


def bank_of(made, **settings):
    return NodeBank(Rows.prepare(made.X), made.taxonomy, made.taxonomy.nodes_of(made.y), **settings)


def with_small_blocks(bank, size):
    bank._solver.block_size = size
    return bank


def test_nodes_with_the_same_rows_are_solved_once_and_get_the_same_model():
    taxonomy = Taxonomy.from_paths([("a", "b", "c"), ("a", "b", "d"), ("e", "f"), ("g", "h")])
    row_leaf = taxonomy.nodes_of(["c", "d", "f", "c", "d", "f"])
    X = np.random.default_rng(0).normal(size=(6, 3))
    columns = {}

    def keep(nodes, C, arrays):
        for k, node in enumerate(nodes):
            columns[taxonomy.labels[node], C] = arrays["weights"][:, k]

    bank = NodeBank(Rows.prepare(X), taxonomy, row_leaf)
    report = bank.solve([1.0, 10.0], Harvest(pick_weights, keep))
    # a = b, e = f, and g = h have no rows; c and d are on their own
    assert report.n_problems == 2 * 5
    np.testing.assert_array_equal(columns["a", 1.0], columns["b", 1.0])
    np.testing.assert_array_equal(columns["e", 10.0], columns["f", 10.0])
    np.testing.assert_array_equal(columns["g", 1.0], columns["h", 1.0])
    assert not np.array_equal(columns["c", 1.0], columns["d", 1.0])


def test_a_bank_has_blocks_for_many_cores():
    taxonomy = Taxonomy.from_paths([(f"leaf {k}",) for k in range(300)])
    row_leaf = np.repeat(np.arange(1, 301, dtype=np.int32), 2)
    bank = NodeBank(Rows.prepare(sparse.eye_array(600, format="csr")), taxonomy, row_leaf)
    sizes = [block.solved.size for block in bank._blocks(np.arange(1, 301, dtype=np.int32))]
    assert sizes == [64, 64, 64, 64, 44]


@pytest.mark.parametrize("share", [0.0, 0.1, 1.1])
def test_blocks_hold_large_problems_by_size_and_then_the_others_along_the_tree(made, share):
    bank = with_small_blocks(bank_of(made), 5)
    bank._solver.by_size_from = share
    taxonomy, (n_rows, *_) = made.taxonomy, made.X.shape
    size = [
        node_targets(taxonomy, bank.row_leaf, [k]).n_positive()[0] for k in range(taxonomy.n_nodes)
    ]

    def place(node):
        large = size[node] >= share * n_rows
        return (-size[node] if large else 0, taxonomy.leaf_start[node], -taxonomy.leaf_stop[node])

    nodes = np.arange(1, taxonomy.n_nodes, dtype=np.int32)
    blocks = bank._blocks(nodes)
    solved = [int(node) for block in blocks for node in block.solved]
    assert solved == sorted(nodes.tolist(), key=place)
    for block in blocks:
        assert block.solved[block.column].tolist() == block.nodes.tolist()


def test_every_node_is_received_once_at_each_regularisation(made):
    seen = []
    bank = with_small_blocks(bank_of(made), 5)
    harvest = Harvest(pick_nothing, lambda nodes, C, _: seen.extend((int(n), C) for n in nodes))
    bank.solve([1.0, 0.1], harvest)
    expected = {(n, C) for n in range(1, made.taxonomy.n_nodes) for C in (0.1, 1.0)}
    assert len(seen) == len(expected)
    assert set(seen) == expected


def test_progress_ends_at_all_problems(made):
    calls = []
    bank = with_small_blocks(bank_of(made), 5)
    harvest = Harvest(pick_nothing, lambda *_: None)
    report = bank.solve([0.1, 1.0], harvest, progress=lambda *at: calls.append(at))
    assert [done for done, _ in calls] == sorted(done for done, _ in calls)
    assert calls[-1] == (report.n_problems, report.n_problems)


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, RuntimeError])
def test_what_goes_wrong_in_one_block_stops_the_others(made, monkeypatch, interruption):
    solved = []
    bank = with_small_blocks(bank_of(made, n_threads=1), 2)
    solve = bank._solver.solve
    monkeypatch.setattr(bank._solver, "solve", lambda *args: solved.append(1) or solve(*args))

    def stop(*_):
        raise interruption

    with pytest.raises(interruption):
        bank.solve([0.1, 1.0], Harvest(stop, lambda *_: None))
    assert len(solved) == 1


def test_evidence_is_the_objective_on_the_validation_rows(made):
    bank = bank_of(made)
    rows = Rows.prepare(made.X[:60])
    row_leaf = made.taxonomy.nodes_of(made.y[:60])
    weights = {}

    def keep(nodes, C, arrays):
        weights.update({(int(n), C): arrays["weights"][:, k] for k, n in enumerate(nodes)})

    also = Harvest(pick_weights, keep)
    first, second = gather_evidence(bank, rows, row_leaf, [1.0, 0.01], also=also)
    assert (first.C, second.C) == (0.01, 1.0)
    for evidence in (first, second):
        for node in (1, 7, made.taxonomy.n_nodes - 1):
            y = node_targets(made.taxonomy, row_leaf, np.array([node])).signs()[:, 0]
            theta = weights[node, evidence.C].astype(np.float64)
            expected = objective(theta, rows.X, y, evidence.C)
            assert evidence.objective[node] == pytest.approx(expected, rel=1e-5)
            np.testing.assert_allclose(evidence.scores[:, node], rows.X @ theta, atol=1e-4)


def test_nodes_without_rows_cannot_be_entered(made):
    leaf = made.taxonomy.nodes_of(made.y)
    keep = np.flatnonzero(leaf != made.taxonomy.leaf_order[0])
    bank = bank_of(made).take(keep)
    evidence = gather_evidence(bank, bank.rows, bank.row_leaf, [1.0])[0]
    empty = made.taxonomy.leaf_order[0]
    assert not nodes_with_rows(bank)[empty]
    assert np.isneginf(evidence.scores[:, empty]).all()
    assert np.isfinite(evidence.objective[1:]).all()


def test_threads_are_for_sparse_rows_on_the_cpu(made):
    assert bank_of(made, n_threads=2).n_threads == 2
    dense = NodeBank(
        Rows.prepare(made.X.toarray()), made.taxonomy, made.taxonomy.nodes_of(made.y), n_threads=2
    )
    assert dense.n_threads == 1
