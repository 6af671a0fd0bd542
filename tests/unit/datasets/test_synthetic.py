import numpy as np
import pytest
from scipy.sparse import issparse

from taxofit import DataError
from taxofit.datasets.synthetic import make_taxonomy_classification


@pytest.fixture(scope="module")
def problem():
    return make_taxonomy_classification()


def test_rows_are_unit_length_float32_csr(problem):
    assert issparse(problem.X)
    assert problem.X.format == "csr"
    assert problem.X.dtype == np.float32
    assert (problem.X.data > 0).all()
    np.testing.assert_allclose(problem.X.multiply(problem.X).sum(axis=1), 1, rtol=1e-5)


def test_every_leaf_has_rows_and_every_label_is_a_leaf(problem):
    assert problem.X.shape == (5000, 2000)
    assert set(problem.y) == set(problem.taxonomy.leaves)


def test_planted_nodes_are_internal_and_leave_sound_ones_on_their_levels(problem):
    taxonomy, planted = problem.taxonomy, problem.inconsistent
    assert len(planted) == 6
    assert set(planted) <= set(taxonomy.internal_nodes)
    for level in (1, 2):
        of_level = {n for n in taxonomy.internal_nodes if taxonomy.level_of(n) == level}
        assert len(of_level & set(planted)) >= 2
        assert of_level - set(planted)


def test_planted_nodes_below_the_top_sit_under_sound_parents(problem):
    for label in problem.inconsistent:
        assert problem.taxonomy.parent_of(label) not in problem.inconsistent


@pytest.mark.parametrize("exponent", [0.0, 0.3, 1.0])
def test_planted_and_sound_nodes_of_a_level_have_like_numbers_of_rows(exponent):
    ratios = []
    for seed in range(5):
        problem = make_taxonomy_classification(class_size_exponent=exponent, random_state=seed)
        taxonomy = problem.taxonomy
        table = taxonomy.ancestors(taxonomy.nodes_of(problem.y))
        for level in (1, 2):
            n_rows = {
                n: (table[:, level] == taxonomy.node_of(n)).sum()
                for n in taxonomy.labels
                if taxonomy.level_of(n) == level
            }
            planted = [n for label, n in n_rows.items() if label in problem.inconsistent]
            sound = [n for label, n in n_rows.items() if label not in problem.inconsistent]
            ratios.append(np.mean(planted) / np.mean(sound))
    assert 0.8 < np.mean(ratios) < 1.25


def test_class_sizes_follow_the_exponent():
    balanced = make_taxonomy_classification(class_size_exponent=0).y
    skewed = make_taxonomy_classification(class_size_exponent=1).y
    assert np.ptp(np.unique(balanced, return_counts=True)[1]) <= 1
    counts = np.unique(skewed, return_counts=True)[1]
    assert counts.min() >= 4
    assert counts.max() > 10 * np.median(counts)


def test_planted_node_mixes_children_that_are_far_apart():
    """Under a sound node rows are more alike, by mean cosine, than under a planted one."""
    alike = {True: [], False: []}
    problem = make_taxonomy_classification(class_size_exponent=0)
    taxonomy = problem.taxonomy
    table = taxonomy.ancestors(taxonomy.nodes_of(problem.y))
    for label in taxonomy.internal_nodes:
        level = taxonomy.level_of(label)
        rows = problem.X[table[:, level] == taxonomy.node_of(label)]
        centre = np.asarray(rows.mean(axis=0)).ravel()
        alike[label in problem.inconsistent].append((level, centre @ centre))
    for level in (1, 2):
        planted = [value for at, value in alike[True] if at == level]
        sound = [value for at, value in alike[False] if at == level]
        assert max(planted) < min(sound)


def test_same_seed_gives_the_same_problem_and_another_seed_another():
    first, same, other = (
        make_taxonomy_classification(500, random_state=seed) for seed in (3, 3, 4)
    )
    assert (first.X != same.X).nnz == 0
    assert first.y.tolist() == same.y.tolist()
    assert first.inconsistent == same.inconsistent
    assert first.y.tolist() != other.y.tolist()


def test_dense_rows_are_float32_arrays():
    problem = make_taxonomy_classification(500, sparse=False, n_features=20)
    assert isinstance(problem.X, np.ndarray)
    assert problem.X.dtype == np.float32
    assert problem.X.shape == (500, 20)


@pytest.mark.parametrize("n_inconsistent", [0, 2, 3, 5, 6])
def test_as_many_nodes_are_planted_as_were_asked_for(n_inconsistent):
    problem = make_taxonomy_classification(500, n_inconsistent=n_inconsistent)
    assert len(set(problem.inconsistent)) == n_inconsistent


def test_shape_follows_depth_and_fan_out():
    assert (
        make_taxonomy_classification(500, depth=2, fan_out=5, n_inconsistent=2).taxonomy.n_leaves
        == 25
    )
    deep = make_taxonomy_classification(500, fan_out=(2, 3, 2, 4), n_inconsistent=2)
    assert (deep.taxonomy.depth, deep.taxonomy.n_leaves) == (4, 48)


def test_dataset_has_the_rows(problem):
    assert problem.dataset.X is problem.X
    assert problem.dataset.name == "synthetic"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_rows": 100}, "at least 4 per leaf, 256 for 64 leaves, but is 100"),
        ({"n_inconsistent": 1}, "n_inconsistent must be 0 or at least 2.*it is 1"),
        ({"n_inconsistent": -2}, "n_inconsistent must be 0 or at least 2.*it is -2"),
        ({"n_inconsistent": 40}, "n_inconsistent is too large: it is 40, .* has room for 6"),
        ({"fan_out": (2, 1)}, "at least 2 on every level"),
        ({"fan_out": (2, 3), "depth": 3}, "fan_out has 2 levels but depth is 3"),
        ({"fan_out": (8,), "n_inconsistent": 2}, "has room for 0"),
        ({"class_separation": 0}, "class_separation must be positive"),
    ],
)
def test_impossible_problems_say_why(arguments, message):
    with pytest.raises(DataError, match=message):
        make_taxonomy_classification(**arguments)
