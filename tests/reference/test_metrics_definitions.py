"""Every metric against its definition written out with sets, dictionaries and searches."""

from collections import deque

import numpy as np
import pytest
from hiclass import metrics as hiclass_metrics
from sklearn.metrics import f1_score, precision_recall_fscore_support

from taxofit import Taxonomy
from taxofit import metrics as m


def random_problem(seed, *, leaves_only):
    """Return a tree with leaves at several depths, and random true and predicted labels."""
    rng = np.random.default_rng(seed)
    n_nodes = int(rng.integers(5, 40))
    parents = [-1, *(int(rng.integers(max(0, i - 6), i)) for i in range(1, n_nodes))]
    taxonomy = Taxonomy.from_parents(parents, [f"n{i}" for i in range(n_nodes)])
    truth = rng.choice(taxonomy.leaves, 60)
    pool = taxonomy.leaves if leaves_only else taxonomy.labels
    prediction = np.where(rng.random(60) < 0.4, truth, rng.choice(pool, 60))
    return taxonomy, truth.tolist(), prediction.tolist()


def ancestors(taxonomy, label):
    found = set()
    while label != taxonomy.root:
        found.add(label)
        label = taxonomy.parent_of(label)
    return found


def path_length(taxonomy, start, goal):
    neighbours = {label: set() for label in taxonomy.labels}
    for above, below in taxonomy.to_edges():
        neighbours[above].add(below)
        neighbours[below].add(above)
    distance, queue = {start: 0}, deque([start])
    while queue:
        label = queue.popleft()
        for other in neighbours[label] - distance.keys():
            distance[other] = distance[label] + 1
            queue.append(other)
    return distance[goal]


def class_scores(truth, prediction, classes):
    scores = {}
    for label in classes:
        right = sum(t == p == label for t, p in zip(truth, prediction, strict=True))
        precision = right / prediction.count(label) if label in prediction else 0.0
        recall = right / truth.count(label) if label in truth else 0.0
        f1 = 2 * precision * recall / (precision + recall) if right else 0.0
        scores[label] = (precision, recall, f1)
    return scores


@pytest.fixture(params=[(seed, leaves_only) for seed in range(10) for leaves_only in (True, False)])
def problem(request):
    return random_problem(request.param[0], leaves_only=request.param[1])


def test_micro_f1_is_the_share_of_right_rows(problem):
    taxonomy, truth, prediction = problem
    right = sum(t == p for t, p in zip(truth, prediction, strict=True))
    assert m.micro_f1(truth, prediction, taxonomy) == pytest.approx(right / len(truth))


def test_macro_scores_are_those_of_counted_classes(problem):
    taxonomy, truth, prediction = problem
    classes = set(truth) | (set(prediction) & set(taxonomy.leaves))
    scores = class_scores(truth, prediction, classes)
    found = m.per_class_f1(truth, prediction, taxonomy)
    assert found == pytest.approx({label: f1 for label, (_, _, f1) in scores.items()})
    precision, recall, f1 = np.mean(list(scores.values()), axis=0)
    assert m.macro_f1(truth, prediction, taxonomy) == pytest.approx(f1)
    combined = 2 * precision * recall / (precision + recall)
    assert m.macro_f1_lshtc(truth, prediction, taxonomy) == pytest.approx(combined)


def test_hierarchical_scores_are_those_of_ancestor_sets(problem):
    taxonomy, truth, prediction = problem
    true_sets = [ancestors(taxonomy, label) for label in truth]
    predicted_sets = [ancestors(taxonomy, label) for label in prediction]
    shared = sum(len(a & b) for a, b in zip(true_sets, predicted_sets, strict=True))
    precision = shared / sum(map(len, predicted_sets))
    recall = shared / sum(map(len, true_sets))
    assert m.hierarchical_precision(truth, prediction, taxonomy) == pytest.approx(precision)
    assert m.hierarchical_recall(truth, prediction, taxonomy) == pytest.approx(recall)
    expected = 2 * precision * recall / (precision + recall)
    assert m.hierarchical_f1(truth, prediction, taxonomy) == pytest.approx(expected)


def test_tree_error_is_the_mean_length_of_searched_paths(problem):
    taxonomy, truth, prediction = problem
    lengths = [path_length(taxonomy, t, p) for t, p in zip(truth, prediction, strict=True)]
    assert m.tree_error(truth, prediction, taxonomy) == pytest.approx(np.mean(lengths))


def test_lca_f1_is_that_of_paths_cut_at_the_common_ancestor(problem):
    taxonomy, truth, prediction = problem
    scores = []
    for t, p in zip(truth, prediction, strict=True):
        up_t = [*sorted(ancestors(taxonomy, t), key=taxonomy.level_of), taxonomy.root]
        up_p = [*sorted(ancestors(taxonomy, p), key=taxonomy.level_of), taxonomy.root]
        lowest = max(set(up_t) & set(up_p), key=taxonomy.level_of)
        cut_t = {a for a in up_t if taxonomy.level_of(a) >= taxonomy.level_of(lowest)}
        cut_p = {a for a in up_p if taxonomy.level_of(a) >= taxonomy.level_of(lowest)}
        precision, recall = len(cut_t & cut_p) / len(cut_p), len(cut_t & cut_p) / len(cut_t)
        scores.append(2 * precision * recall / (precision + recall))
    assert m.lca_f1(truth, prediction, taxonomy) == pytest.approx(np.mean(scores))


def test_level_errors_are_those_of_a_walk_down_each_path(problem):
    taxonomy, truth, prediction = problem
    n_rows, n_wrong = np.zeros((2, taxonomy.depth), dtype=int)
    for t, p in zip(truth, prediction, strict=True):
        true_path = sorted(ancestors(taxonomy, t), key=taxonomy.level_of)
        predicted_path = sorted(ancestors(taxonomy, p), key=taxonomy.level_of)
        for level, label in enumerate(true_path):
            n_rows[level] += 1
            if predicted_path[level : level + 1] != [label]:
                n_wrong[level] += 1
                break
    found = m.level_errors(truth, prediction, taxonomy)
    assert [e.n_rows for e in found] == n_rows.tolist()
    assert [e.n_wrong for e in found] == n_wrong.tolist()
    assert [e.n_wrong_so_far for e in found] == np.cumsum(n_wrong).tolist()
    assert found[-1].n_wrong_so_far == sum(t != p for t, p in zip(truth, prediction, strict=True))


@pytest.mark.parametrize("seed", range(5))
def test_flat_scores_agree_with_scikit_learn(seed):
    taxonomy, truth, prediction = random_problem(seed, leaves_only=True)
    micro = f1_score(truth, prediction, average="micro")
    macro = f1_score(truth, prediction, average="macro", zero_division=0)
    assert m.micro_f1(truth, prediction, taxonomy) == pytest.approx(micro)
    assert m.macro_f1(truth, prediction, taxonomy) == pytest.approx(macro)
    every = list(taxonomy.leaves)
    f1 = precision_recall_fscore_support(truth, prediction, labels=every, zero_division=0)[2]
    assert m.macro_f1(truth, prediction, taxonomy, classes=every) == pytest.approx(np.mean(f1))


@pytest.mark.parametrize("seed", range(5))
def test_hierarchical_scores_agree_with_hiclass(seed):
    taxonomy, truth, prediction = random_problem(seed, leaves_only=True)

    def padded(labels):
        """Return what hiclass reads: names below the root by level, empty below a row's end."""
        paths = [taxonomy.path_of(label)[1:] for label in labels]
        return np.array([[*path, *[""] * (taxonomy.depth - len(path))] for path in paths])

    theirs = padded(truth), padded(prediction)
    precision = hiclass_metrics.precision(*theirs)
    recall = hiclass_metrics.recall(*theirs)
    assert m.hierarchical_precision(truth, prediction, taxonomy) == pytest.approx(precision)
    assert m.hierarchical_recall(truth, prediction, taxonomy) == pytest.approx(recall)
    assert m.hierarchical_f1(truth, prediction, taxonomy) == pytest.approx(
        hiclass_metrics.f1(*theirs)
    )
