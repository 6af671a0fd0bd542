"""Equal columns, against a comparison of all with all."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import sparse

from taxofit.bank import equal_columns
from taxofit.bank.equal_columns import first_equals
from taxofit.datasets import mapped

small_matrices = arrays.arrays(
    np.float32,
    st.tuples(st.integers(0, 4), st.integers(0, 12)),
    elements=st.sampled_from(np.array([0, 0.5, 1, -1], dtype=np.float32)),
)


def first_by_comparison(X):
    return [next(k for k in range(j + 1) if (X[:, k] == X[:, j]).all()) for j in range(X.shape[1])]


@given(X=small_matrices)
def test_equal_columns_are_found(X):
    is_used = (X != 0).any(axis=0)
    expected = np.where(is_used, first_by_comparison(X), np.arange(X.shape[1]))
    assert first_equals(sparse.csc_array(X)).tolist() == expected.tolist()


@given(X=small_matrices)
def test_columns_are_found_a_few_entries_at_a_time(X):
    whole = first_equals(sparse.csc_array(X))
    entries, mapped.CHUNK_ENTRIES = mapped.CHUNK_ENTRIES, 3
    try:
        assert first_equals(sparse.csc_array(X)).tolist() == whole.tolist()
    finally:
        mapped.CHUNK_ENTRIES = entries


def test_columns_with_one_hash_are_still_compared(monkeypatch):
    monkeypatch.setattr(equal_columns, "_hashes", lambda X: np.zeros(X.shape[1], dtype=np.uint64))
    X = np.array([[1, 1, 2, 1, 0], [3, 3, 3, 0, 1]], dtype=np.float32)
    assert first_equals(sparse.csc_array(X)).tolist() == [0, 0, 2, 3, 4]
