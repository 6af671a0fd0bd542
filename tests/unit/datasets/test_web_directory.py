import numpy as np
import pytest

from taxofit import DataError
from taxofit.datasets.web_directory import DIRECTORY_SIZES, DirectorySize, make_web_directory


@pytest.fixture(scope="module")
def small():
    return make_web_directory("dmoz-small")


def test_counts_are_those_of_the_papers_table(small):
    train, test = small
    assert train.X.shape == (6323, 51033)
    assert test.X.shape == (1858, 51033)
    taxonomy = train.taxonomy
    assert (taxonomy.n_nodes, taxonomy.n_leaves, taxonomy.depth) == (2388, 1139, 5)
    assert train.X.nnz / 6323 == pytest.approx(100, rel=0.1)


def test_every_leaf_has_training_rows_and_every_label_is_a_leaf(small):
    train, test = small
    leaves = set(train.taxonomy.leaves)
    assert set(train.y.tolist()) == leaves
    assert set(test.y.tolist()) <= leaves


def test_every_feature_occurs_and_many_in_one_row_only(small):
    train, test = small
    frequency = [np.bincount(data.X.indices, minlength=51033) for data in small]
    assert (frequency[0] + frequency[1] > 0).all()
    assert 0.2 < (frequency[0] == 1).mean() < 0.6
    assert frequency[0].max() < 0.7 * train.n_rows
    assert train.X.dtype == test.X.dtype == np.float32


def test_rows_are_unit_length(small):
    for data in small:
        np.testing.assert_allclose(data.X.multiply(data.X).sum(axis=1), 1, rtol=1e-5)


def test_class_sizes_follow_a_power_law(small):
    counts = np.sort(np.unique(small[0].y, return_counts=True)[1])[::-1]
    assert np.median(counts) <= 5
    assert counts[0] > 50 * np.median(counts)


def test_rows_of_a_class_are_more_alike_than_others(small):
    X, y = small[0].X, small[0].y
    largest = np.flatnonzero(y == np.bincount(y).argmax())
    others = np.flatnonzero(y != y[largest[0]])[: largest.size]
    centre = np.asarray(X[largest].mean(axis=0)).ravel()
    assert (X[largest] @ centre).mean() > 1.5 * (X[others] @ centre).mean()


@pytest.mark.parametrize("size", DIRECTORY_SIZES)
def test_scale_shrinks_all_counts_but_the_depth(size):
    train, test = make_web_directory(size, scale=0.02)
    full = DIRECTORY_SIZES[size]
    assert train.taxonomy.depth == full.depth
    assert train.n_rows == pytest.approx(0.02 * full.n_train, rel=0.1)
    assert test.n_rows == pytest.approx(0.02 * full.n_test, rel=0.1)
    assert train.n_features == pytest.approx(0.02 * full.n_features, rel=0.1)
    assert train.taxonomy.n_leaves == pytest.approx(0.02 * full.n_leaves, rel=0.1)


def test_same_seed_gives_the_same_rows_and_another_seed_others():
    first, same, other = (
        make_web_directory(scale=0.02, random_state=seed)[0] for seed in (1, 1, 2)
    )
    assert (first.X != same.X).nnz == 0
    assert first.y.tolist() == same.y.tolist()
    assert first.taxonomy == same.taxonomy
    assert first.taxonomy != other.taxonomy


def test_impossible_directories_say_why():
    with pytest.raises(DataError, match=r"size must be one of 'dmoz-small'.*but is 'dmoz'"):
        make_web_directory("dmoz")
    with pytest.raises(DataError, match="scale must be positive, but is 0"):
        make_web_directory(scale=0)
    shape = {"depth": 3, "n_train": 90, "n_test": 9, "n_features": 50, "words_per_row": 5.0}
    with pytest.raises(DataError, match="depth 3 needs as many internal nodes"):
        make_web_directory(DirectorySize(n_nodes=12, n_leaves=10, **shape))
    with pytest.raises(DataError, match="2 leaves are too few for 58 internal nodes"):
        make_web_directory(DirectorySize(n_nodes=60, n_leaves=2, **shape))
