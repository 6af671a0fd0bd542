from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

from taxofit import DataError, Taxonomy, datasets
from taxofit.datasets import Dataset, load_benchmark

TAXONOMY = Taxonomy.from_labels(["ham", "spam"])
LABELS = np.array(["ham", "spam", "ham"], dtype=object)


@pytest.mark.parametrize(
    "X", [np.eye(3), sparse.csr_matrix(np.eye(3)), np.array(["a", "b", "c"], dtype=object)]
)
def test_subset_keeps_rows_with_their_labels(X):
    mails = Dataset(X, LABELS, TAXONOMY, "mails")
    for rows in ([1, 2], np.array([False, True, True]), slice(1, None)):
        part = mails.subset(rows)
        assert part.y.tolist() == ["spam", "ham"]
        assert len(part) == part.n_rows == part.X.shape[0] == 2
    assert mails.is_text == (X.ndim == 1)


def test_rows_and_labels_must_agree_in_number():
    with pytest.raises(DataError, match="mails: X has 2 rows but y has 3 labels"):
        Dataset(np.eye(2), LABELS, TAXONOMY, "mails")


def test_dataset_cannot_be_changed():
    with pytest.raises(AttributeError):
        Dataset(np.eye(3), LABELS, TAXONOMY).name = "other"


def test_public_names_are_sorted_and_there():
    assert datasets.__all__ == sorted(datasets.__all__)
    assert set(datasets._HOME) == set(datasets.__all__)
    assert dir(datasets) == datasets.__all__
    with pytest.raises(AttributeError, match="no attribute 'read_mind'"):
        _ = datasets.read_mind


def test_importing_the_package_loads_no_reader():
    program = (
        "import sys, taxofit.datasets as d; "
        "assert not {'numba', 'pyarrow', 'sklearn', 'narwhals'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_benchmark_in_the_wrong_place_says_where_it_should_be(tmp_path, monkeypatch):
    with pytest.raises(DataError, match=r"clef is expected in the folder .*CLEF"):
        load_benchmark("clef", tmp_path)
    monkeypatch.delenv("TAXOFIT_DATA", raising=False)
    with pytest.raises(DataError, match="set TAXOFIT_DATA"):
        load_benchmark("clef")
