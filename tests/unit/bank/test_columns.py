"""Pruned weights and where they end up, against dense arrays."""

import numpy as np
import pytest

from taxofit.bank.columns import ColumnStore, prune_columns


@pytest.fixture
def weights():
    rng = np.random.default_rng(3)
    return (rng.normal(size=(50, 23)) * rng.random((50, 1)) ** 3).astype(np.float32)


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("order", ["C", "F"])
def test_what_is_small_for_its_column_goes(weights, n_threads, order):
    rms = np.sqrt((weights.astype(np.float64) ** 2).mean(axis=0))
    expected = np.where(np.abs(weights) > 0.3 * rms, weights, 0)
    found = prune_columns(np.asarray(weights, order=order), 0.3, n_threads)
    np.testing.assert_array_equal(found.toarray(), expected)
    assert found.has_sorted_indices
    assert 0 < found.nnz < weights.size


@pytest.mark.parametrize("n_threads", [1, 4])
def test_blocks_in_any_order_become_rows_in_order(weights, n_threads):
    places = np.random.default_rng(4).permutation(30)[:23]
    store = ColumnStore((50, 30))
    for mine in (slice(10, 23), slice(0, 3), slice(3, 10)):
        store.put(places[mine], prune_columns(weights[:, mine], 0.3))
    expected = np.zeros((50, 30), dtype=np.float32)
    expected[:, places] = prune_columns(weights, 0.3).toarray()
    rows = store.to_csr(n_threads)
    np.testing.assert_array_equal(rows.toarray(), expected)
    assert rows.has_sorted_indices


def test_nothing_put_is_nothing_taken():
    assert ColumnStore((5, 4)).to_csr(2).nnz == 0
    assert prune_columns(np.zeros((5, 0), dtype=np.float32), 0.1).shape == (5, 0)
