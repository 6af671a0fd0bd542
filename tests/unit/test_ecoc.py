"""Output codes: what a code looks like, how it is decoded, and the estimator around it."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.utils.estimator_checks import parametrize_with_checks

from taxofit import DataError, Taxonomy
from taxofit.datasets import make_taxonomy_classification
from taxofit.ecoc import HierarchicalECOC, choose_length, code_lengths, decode, make_code


def tree(n_tops: int, n_leaves: int) -> Taxonomy:
    """Return tops with equally many leaves each."""
    return Taxonomy.from_paths(
        [(f"t{i}", f"{i}.{j}") for i in range(n_tops) for j in range(n_leaves)]
    )


@pytest.mark.parametrize("n_bits", [32, 33, 64, 128])
def test_columns_are_never_constant_equal_or_complementary(n_bits):
    taxonomy = tree(5, 6)
    code = make_code(taxonomy, taxonomy.leaf_order, n_bits)
    assert code.shape == (30, n_bits)
    assert set(np.unique(code)) == {-1, 1}
    assert (np.ptp(code, axis=0) == 2).all()
    canonical = {(column * column[0]).tobytes() for column in code.T}
    assert len(canonical) == n_bits


def test_every_prefix_of_a_code_is_the_shorter_code():
    taxonomy = tree(5, 6)
    long = make_code(taxonomy, taxonomy.leaf_order, 64, seed=3)
    assert np.array_equal(long[:, :32], make_code(taxonomy, taxonomy.leaf_order, 32, seed=3))


def test_internal_nodes_have_bits_and_the_most_even_comes_first():
    paths = [("big", str(i)) for i in range(10)] + [("small", f"s{i}") for i in range(3)]
    taxonomy = Taxonomy.from_paths([*paths, *(("other", f"o{i}") for i in range(7))])
    code = make_code(taxonomy, taxonomy.leaf_order, 32)
    under = {
        top: np.isin(taxonomy.leaf_order, taxonomy.nodes_of(taxonomy.leaves_under(top)))
        for top in ("big", "other", "small")
    }
    for column, top in zip((0, 2, 4), under, strict=True):
        assert np.array_equal(code[:, column] > 0, under[top])


def test_codewords_differ_even_where_there_are_more_nodes_than_bits():
    taxonomy = tree(100, 2)
    code = make_code(taxonomy, taxonomy.leaf_order, 32)
    assert len({word.tobytes() for word in code}) == 200


@pytest.mark.parametrize(("n_classes", "n_columns"), [(1, 1), (2, 1), (3, 3), (4, 7)])
def test_few_classes_have_all_the_columns_there_are(n_classes, n_columns):
    taxonomy = Taxonomy.from_labels(list(range(n_classes)))
    assert make_code(taxonomy, taxonomy.leaf_order, 1024).shape == (n_classes, n_columns)


def test_code_depends_on_the_seed_alone():
    taxonomy = tree(4, 5)
    codes = [make_code(taxonomy, taxonomy.leaf_order, 64, seed=seed) for seed in (1, 1, 2)]
    assert np.array_equal(codes[0], codes[1])
    assert not np.array_equal(codes[0], codes[2])


def test_lengths_go_from_32_to_1024():
    assert code_lengths(2) == (32,)
    assert code_lengths(12_294) == (32, 64, 128, 256, 512, 1024)


def test_decoding_is_brute_force_hamming_with_ties_by_margin():
    rng = np.random.default_rng(0)
    code = rng.choice(np.array([-1, 1], dtype=np.int8), size=(9, 5))  # short: ties abound
    margins = rng.normal(size=(300, 5)).astype(np.float32)
    decoded = decode(margins, code)
    n_ties = 0
    for z, found in zip(margins, decoded, strict=True):
        bits = [1 if value >= 0 else -1 for value in z]
        distance = [sum(b != m for b, m in zip(bits, word, strict=True)) for word in code]
        nearest = [c for c in range(9) if distance[c] == min(distance)]
        n_ties += len(nearest) > 1
        best = max(nearest, key=lambda c: float(z @ code[c].astype(np.float32)))
        assert found == best or np.array_equal(code[found], code[best])
    assert n_ties > 50


def test_of_equal_lengths_and_costs_the_smaller_are_chosen():
    code = make_code(Taxonomy.from_labels(list(range(20))), np.arange(1, 21, dtype=np.int32), 64)
    truth = np.arange(20, dtype=np.int32)
    perfect = code[truth].astype(np.float32)
    choice = choose_length({10.0: perfect, 0.1: perfect}, code, truth, (32, 64))
    assert (choice.n_bits, choice.C, choice.score) == (32, 0.1, 1.0)


@pytest.fixture(scope="module")
def toy():
    return make_taxonomy_classification(900, fan_out=3, n_features=300, n_inconsistent=3)


def test_sparse_and_dense_rows_give_the_same_predictions(toy):
    X = toy.X[:400]
    X = X.toarray() if sparse.issparse(X) else np.asarray(X)
    dense = HierarchicalECOC(toy.taxonomy, n_bits=32, C=1.0).fit(X, toy.y[:400])
    thin = HierarchicalECOC(toy.taxonomy, n_bits=32, C=1.0).fit(sparse.csr_array(X), toy.y[:400])
    assert np.mean(dense.predict(X) == thin.predict(sparse.csr_array(X))) > 0.99


def test_auto_chooses_length_and_cost_on_validation_rows(toy):
    clf = HierarchicalECOC(toy.taxonomy).fit(toy.X[:400], toy.y[:400])
    assert clf.n_bits_ in code_lengths(len(clf.classes_))
    assert 0 < clf.validation_score_ <= 1
    assert np.mean(clf.predict(toy.X[:400]) == toy.y[:400]) > 0.5


def test_rows_labelled_with_internal_nodes_are_refused():
    with pytest.raises(DataError, match="internal nodes"):
        HierarchicalECOC(tree(2, 2), C=1.0).fit(np.eye(2), ["t0", "0.1"])


@parametrize_with_checks([HierarchicalECOC(n_bits=32, C=1.0)])
def test_behaves_as_scikit_learn_expects(estimator, check):
    check(estimator)
