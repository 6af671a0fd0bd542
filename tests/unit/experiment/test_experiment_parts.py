"""The parts of an experiment by themselves: protocol, folders, the paper's figures, tables."""

import numpy as np
import pytest

from taxofit import DataError
from taxofit.experiment import METHODS, Protocol
from taxofit.experiment import paper_figures as paper
from taxofit.experiment.folder import read_folder
from taxofit.experiment.problem import load_problem


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_runs": 0}, "n_runs must be at least 1"),
        ({"Cs": (0.0,)}, "Cs must be positive"),
        ({"validation_fraction": 1.0}, "between 0 and 1"),
        ({"methods": ("svm",)}, "unknown method 'svm'"),
        ({"methods": ()}, "it is empty"),
    ],
)
def test_a_protocol_that_cannot_be_run_says_why(settings, message):
    with pytest.raises(ValueError, match=message):
        Protocol(**settings)


def test_the_default_protocol_is_the_papers():
    protocol = Protocol()
    assert list(protocol.seeds) == [0, 1, 2, 3, 4]
    assert protocol.Cs == (0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
    assert protocol.methods == METHODS


def test_the_papers_best_method_is_global_inf_in_every_table():
    for scores in paper.FLAT_SCORES.values():
        for printed in scores.values():
            assert max(printed, key=lambda method: printed[method][0]) == "global-inf"


def test_the_papers_cells_belong_to_known_methods():
    for table in (paper.FLAT_SCORES, paper.HIERARCHICAL):
        for scores in table.values():
            for printed in scores.values():
                assert set(printed) <= set(METHODS)
    assert "mlf" not in paper.FLAT_SCORES["clef"]["micro_f1"]
    assert paper.HIERARCHICAL["clef"]["tree_error_modified"]["global-inf"] == (0.71, 0.09)


def test_a_table_with_paths_needs_no_hierarchy_file(tmp_path):
    rows = "text,path\nsteel kettle,Home > Kettles\nblue guppy,Pets > Fish\n"
    for name in ("train", "test"):
        (tmp_path / f"{name}.csv").write_text(rows)
    problem = load_problem(tmp_path)
    assert problem.taxonomy.n_leaves == 2
    assert problem.encoding == "tf-idf of words"


def test_numbers_in_a_table_stay_as_they_are(tmp_path):
    for name in ("train", "test"):
        (tmp_path / f"{name}.csv").write_text("a,b,path\n1,2,x > y\n3,4,x > z\n")
    assert np.array_equal(load_problem(tmp_path).X, [[1, 2], [3, 4]])


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "has no train"),
        ({"train.svm": "1 1:1", "test.csv": "a"}, "two kinds"),
        ({"train.svm": "1 1:1", "test.svm": "1 1:1"}, "no hierarchy file"),
        ({"train.doc": "1 1:1", "test.doc": "1 1:1"}, "do not know how to read .doc"),
        ({"train.csv": "a\n1\n", "test.csv": "a\n1\n"}, "no column 'path' or 'label'"),
        ({"train.svm": "1 1:1", "train.csv": "a"}, "several files named train"),
    ],
)
def test_a_folder_that_cannot_be_read_says_what_is_missing(tmp_path, files, message):
    for name, text in files.items():
        (tmp_path / name).write_text(text + "\n")
    with pytest.raises(DataError, match=message):
        read_folder(tmp_path)


def test_an_unknown_benchmark_lists_those_there_are():
    with pytest.raises(DataError, match="unknown benchmark 'cleff'"):
        load_problem("cleff", "data")
