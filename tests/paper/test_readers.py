"""Counts of the real files, as their SOURCE.txt and the paper state them."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from sklearn.datasets import load_svmlight_file
from tests.real_data import real_data

from taxofit.datasets import load_benchmark, read_hierarchy, read_svmlight, read_table


@pytest.mark.parametrize(
    ("name", "folder", "n_rows", "n_features", "n_nodes", "n_leaves"),
    [
        ("clef", "CLEF", (10000, 1006), 80, 97, 63),
        ("diatoms", "DIATOMS", (1940, 993), 371, 399, 311),
        ("dmoz-small", "DMOZ-SMALL", (6323, 1858), 13267, 2388, 1139),
        ("ipc-d", "IPC-D", (1352, 358), 100, 28, 20),
        ("naics", "NAICS2022", (16299, 4074), None, 2122, 1010),
        ("20news", "20NEWS", (11314, 7532), None, 28, 20),
    ],
)
def test_benchmarks_have_the_counts_that_are_known(
    *, name, folder, n_rows, n_features, n_nodes, n_leaves
):
    train, test = load_benchmark(name, real_data(folder).parent)
    assert (train.n_rows, test.n_rows) == n_rows
    assert train.n_features == test.n_features == n_features
    assert train.taxonomy is test.taxonomy
    assert (train.taxonomy.n_nodes, train.taxonomy.n_leaves) == (n_nodes, n_leaves)
    for part in (train, test):
        assert part.taxonomy.is_leaf[part.taxonomy.nodes_of(part.y)].all()


def test_clef_collapses_to_the_nodes_that_the_paper_counts():
    train, test = load_benchmark("clef", real_data("CLEF").parent)
    assert train.taxonomy.collapse_chains().n_nodes == 88
    assert set(train.y) == set(test.y) == set(train.taxonomy.leaves)
    sizes = np.unique(train.y.astype(str), return_counts=True)[1]
    assert (sizes.min(), sizes.max()) == (10, 3835)


def test_diatoms_keeps_test_rows_that_training_never_saw():
    train, test = load_benchmark("diatoms", real_data("DIATOMS").parent)
    assert len(set(train.y)) == 290
    assert len(set(test.y)) == 268
    assert sum(label not in set(train.y) for label in test.y) == 42
    assert "dropped 125 of 2065 rows" in train.notes[0]
    assert "dropped 61 of 1054 rows" in test.notes[0]


def test_naics_split_follows_its_seed():
    folder = real_data("NAICS2022").parent
    first, again, other = (load_benchmark("naics", folder, random_state=s)[1] for s in (0, 0, 1))
    assert first.X.tolist() == again.X.tolist() != other.X.tolist()
    counts = np.bincount(first.taxonomy.level)
    assert counts.tolist() == [1, 20, 96, 308, 687, 1010]


def test_dmoz_hierarchy_is_known_as_paths_of_integers():
    taxonomy = read_hierarchy(real_data("DMOZ-SMALL") / "cat_hier.txt")
    assert (taxonomy.n_nodes, taxonomy.n_leaves, taxonomy.depth) == (2388, 1139, 5)
    assert taxonomy.has_virtual_root
    assert taxonomy.path_of(29) == (1, 2, 3, 20, 29)


@pytest.mark.parametrize("part", ["train", "validation", "test"])
def test_dmoz_rows_equal_those_of_scikit_learn(part, tmp_path):
    file = real_data("DMOZ-SMALL") / "Task2_Train_RDFData_Test_CrawlData" / f"{part}.txt.gz"
    ours = read_svmlight(file)
    in_order = tmp_path / "sorted.txt"  # scikit-learn takes ascending features only
    with gzip.open(file, "rt") as lines, in_order.open("w") as out:
        for line in lines:
            label, *entries = line.split()
            entries.sort(key=lambda entry: int(entry.split(":")[0]))
            out.write(" ".join([label, *entries]) + "\n")
    theirs, labels = load_svmlight_file(str(in_order))
    assert ours.X.shape == theirs.shape
    assert (theirs != ours.X).nnz == 0
    np.testing.assert_array_equal(ours.y, labels)


def test_multi_label_sample_equals_that_of_scikit_learn():
    file = real_data("LSHTC-SAMPLE") / "train-sk-min.txt.gz"
    ours = read_svmlight(file, multilabel=True)
    theirs, labels = load_svmlight_file(str(file), multilabel=True)
    assert (theirs != ours.X).nnz == 0
    assert [set(row) for row in ours.y] == [set(row) for row in labels]


def test_anuran_has_one_column_a_level():
    file = real_data("ANURAN") / "Frogs_MFCCs.csv.gz"
    columns = [f"MFCCs_{k:2d}" for k in range(1, 23)]
    frogs = read_table(file, numeric=columns, levels=["Family", "Genus", "Species"])
    assert frogs.X.shape == (7195, 22)
    assert (frogs.taxonomy.n_nodes, frogs.taxonomy.n_leaves) == (23, 10)
