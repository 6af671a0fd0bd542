from __future__ import annotations

import gzip

import pytest

from taxofit import DataError
from taxofit.datasets import read_arff

HEADER = (
    "% made by hand\n@RELATION things\n@ATTRIBUTE 'a b' NUMERIC\n@attribute c real\n"
    "@ATTRIBUTE class hierarchical 2,3,2/1/3,2/1,2/0\n\n@DATA\n"
)


def write(folder, rows, header=HEADER):
    file = folder / "things.arff"
    file.write_text(header + rows, encoding="utf-8")
    return file


def test_header_gives_the_taxonomy_and_paths_their_deepest_label(tmp_path):
    things = read_arff(write(tmp_path, "1,2.5,2@2/1@2/1/3\n-3,1e2,3\r\n% remark\n0,0,2/0\n"))
    assert things.y.tolist() == ["2/1/3", "3", "2/0"]
    assert things.X.tolist() == [[1, 2.5], [-3, 100], [0, 0]]
    assert set(things.taxonomy.leaves) == {"2/1/3", "2/0", "3"}
    assert things.taxonomy.n_nodes == 6


def test_sparse_rows_are_filled_with_zeros(tmp_path):
    things = read_arff(write(tmp_path, "{1 4, 2 2@2/0}\n{2 3}\n"))
    assert things.X.tolist() == [[0, 4], [0, 0]]
    assert things.y.tolist() == ["2/0", "3"]


def test_gzip_is_unpacked(tmp_path):
    file = tmp_path / "things.arff.gz"
    file.write_bytes(gzip.compress((HEADER + "1,2,3\n").encode()))
    assert read_arff(file).n_rows == 1


def test_internal_labels_are_refused_dropped_or_kept(tmp_path):
    file = write(tmp_path, "1,2,2@2/1\n1,2,3\n")
    with pytest.raises(DataError, match=r"things.arff:8: '2/1' is an internal node"):
        read_arff(file)
    assert read_arff(file, internal_labels="drop").y.tolist() == ["3"]
    assert read_arff(file, internal_labels="keep").y.tolist() == ["2/1", "3"]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("1,?,3", r"things.arff:9: attribute 'c' is missing"),
        ("1,x,3", r"things.arff:9: attribute 'c' is not a number: 'x'"),
        ("1,nan,3", r"things.arff:9: value 2 is nan"),
        ("1,3", r"things.arff:9: 2 values where the header has 3"),
        ("1,2,9", r"things.arff:9: label '9' is not among"),
        ("1,2,", r"things.arff:9: the label is empty"),
        ("1,2,2/0@3", r"things.arff:9: the row has 2 labels, '2/0', '3'"),
        ("{7 1, 2 3}", r"things.arff:9: expected an attribute's index from 0 to 2"),
    ],
)
def test_malformed_rows_are_named(tmp_path, row, message):
    with pytest.raises(DataError, match=message):
        read_arff(write(tmp_path, f"1,2,3\n{row}\n"))


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("@ATTRIBUTE a {x,y}\n@DATA\n", r"things.arff:1: attribute 'a' is of type '\{x,y\}'"),
        ("@ATTRIBUTE a numeric\n@DATA\n", "no attribute 'class hierarchical'"),
        ("@ATTRIBUTE a numeric\n", "no @DATA"),
        ("hello\n", r"things.arff:1: expected @ATTRIBUTE"),
        (HEADER, "no rows after @DATA"),
    ],
)
def test_malformed_headers_are_named(tmp_path, header, message):
    with pytest.raises(DataError, match=message):
        read_arff(write(tmp_path, "", header))
