from __future__ import annotations

import gzip

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from taxofit import DataError, Taxonomy
from taxofit.datasets import read_svmlight, svmlight


def write(folder, text, name="file.txt"):
    file = folder / name
    file.write_bytes(text.encode())
    return file


def failure(folder, text, **options):
    with pytest.raises(DataError) as caught:
        read_svmlight(write(folder, text), **options)
    return str(caught.value).removeprefix(f"{folder}/")


@pytest.mark.parametrize("n_digits", [1, 6, 17])
def test_rows_equal_those_of_scikit_learn(tmp_path, n_digits):
    rng = np.random.default_rng(0)
    X = sparse.random_array((300, 2000), density=0.02, rng=rng, format="csr")
    X.data = np.array([float(f"{v:.{n_digits}g}") for v in X.data * 10.0 ** rng.integers(-9, 9)])
    X.data[::3] *= -1
    file = tmp_path / "rows.txt"
    dump_svmlight_file(X, rng.integers(-5, 50, 300), str(file), zero_based=False)
    theirs, labels = load_svmlight_file(str(file))
    ours = read_svmlight(file)
    assert ours.X.shape == theirs.shape
    np.testing.assert_array_equal(ours.X.indptr, theirs.indptr)
    np.testing.assert_array_equal(ours.X.indices, theirs.indices)
    np.testing.assert_array_equal(ours.X.data, theirs.data)
    np.testing.assert_array_equal(ours.y, labels)


def test_chunks_do_not_change_what_is_read(tmp_path, monkeypatch):
    text = "".join(f"{row % 7} {row + 1}:1 {2 * row + 2}:{row}.5\n" for row in range(200))
    file = write(tmp_path, text)
    whole = read_svmlight(file)
    monkeypatch.setattr(svmlight, "CHUNK_BYTES", 50)
    pieces = read_svmlight(file)
    assert (whole.X != pieces.X).nnz == 0
    np.testing.assert_array_equal(whole.y, pieces.y)
    np.testing.assert_array_equal(whole.origins[0][1], pieces.origins[0][1])


def test_comments_blank_lines_and_query_ids_are_skipped(tmp_path):
    text = "# heading\n\n3 qid:12 1:1 2:2 # remark 9:9\r\n   \n\t4\t2:5\n5#nothing"
    rows = read_svmlight(write(tmp_path, text))
    assert rows.X.toarray().tolist() == [[1, 2], [0, 5], [0, 0]]
    assert rows.y.tolist() == [3, 4, 5]
    assert rows.locate(1).endswith("file.txt:5")


def test_byte_order_mark_is_no_part_of_a_label(tmp_path):
    assert read_svmlight(write(tmp_path, "\ufeff29 1:1")).y.tolist() == [29]


def test_gzip_is_unpacked(tmp_path):
    file = tmp_path / "rows.txt.gz"
    file.write_bytes(gzip.compress(b"1 1:2\n"))
    assert read_svmlight(file).X.toarray().tolist() == [[2]]


def test_damaged_gzip_is_a_data_error(tmp_path):
    file = tmp_path / "rows.txt.gz"
    file.write_bytes(gzip.compress(b"1 1:2\n" * 1000)[:-12])
    with pytest.raises(DataError, match="damaged gzip"):
        read_svmlight(file)


def test_missing_file_is_a_data_error(tmp_path):
    with pytest.raises(DataError, match=r"no such file: .*nowhere\.txt"):
        read_svmlight(tmp_path / "nowhere.txt")


def test_repeated_features_of_a_row_are_summed_and_ids_sorted(tmp_path):
    rows = read_svmlight(write(tmp_path, "1 7:1 2:4 7:2\n"), compact=True)
    assert rows.feature_ids.tolist() == [2, 7]
    assert rows.X.toarray().tolist() == [[4, 3]]


def test_sparse_ids_are_compacted_and_reused_for_test_rows(tmp_path):
    train = read_svmlight(
        write(tmp_path, "29 0:5 1200000:1 30:2\n33 0:6 30:1\n"), ignore_features=[0], compact=True
    )
    assert train.feature_ids.tolist() == [30, 1_200_000]
    test = read_svmlight(
        write(tmp_path, "29 0:7 31:4 1200000:9\n"),
        ignore_features=[0],
        feature_ids=train.feature_ids,
    )
    assert test.X.toarray().tolist() == [[0, 9]]
    assert test.n_dropped == 1


def test_zero_based_is_found_out_after_ignored_features(tmp_path):
    file = write(tmp_path, "1 0:8 1:5\n")
    assert read_svmlight(file).X.toarray().tolist() == [[8, 5]]
    assert read_svmlight(file, ignore_features=[0]).X.toarray().tolist() == [[5]]
    assert read_svmlight(file, ignore_features=[0], zero_based=True).X.shape == (1, 2)
    assert "zero_based=True" in failure(tmp_path, "1 0:8\n", zero_based=False)


def test_number_of_features_widens_and_limits(tmp_path):
    assert read_svmlight(write(tmp_path, "1 2:1\n"), n_features=9).X.shape == (1, 9)
    assert "needs 10 columns" in failure(tmp_path, "1 10:1\n", n_features=9)


def test_several_files_are_read_one_after_the_other(tmp_path):
    files = [write(tmp_path, "1 1:1\n", "a.txt"), write(tmp_path, "\n2 3:1\n", "b.txt")]
    rows = read_svmlight(files)
    assert rows.X.toarray().tolist() == [[1, 0, 0], [0, 0, 1]]
    assert rows.locate(1).endswith("b.txt:2")


def test_several_labels_are_tuples(tmp_path):
    rows = read_svmlight(write(tmp_path, "12,34 1:1\n5, 6 2:1\n 1:2\n7\n"), multilabel=True)
    assert rows.y.tolist() == [(12, 34), (5, 6), (), (7,)]


def test_several_labels_need_to_be_asked_for(tmp_path):
    message = failure(tmp_path, "12,34 1:1\n")
    assert message.startswith("file.txt:1: several labels")
    assert "multilabel=True" in message


@pytest.mark.parametrize(
    ("written", "read"),
    [(["1", "-2", "+3"], [1, -2, 3]), (["1", "b"], ["1", "b"]), (["007", "7"], ["007", "7"])],
)
def test_labels_are_integers_where_all_are_written_so(tmp_path, written, read):
    rows = read_svmlight(write(tmp_path, "".join(f"{label} 1:1\n" for label in written)))
    assert rows.y.tolist() == read


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("3 1:1 abc", "expected feature:value but found 'abc' (column 7)"),
        ("3 1:1 2", "expected feature:value but found '2' (column 7)"),
        ("3 1:1 -2:1", "expected feature:value but found '-2:1' (column 7)"),
        ("3 1:", "expected feature:value with a finite number but found '1:' (column 3)"),
        ("3 1:x", "expected feature:value with a finite number but found '1:x' (column 3)"),
        ("3 1:nan", "expected feature:value with a finite number but found '1:nan' (column 3)"),
        ("3 1:-inf", "expected feature:value with a finite number but found '1:-inf' (column 3)"),
        ("3 1:1e999", "expected feature:value with a finite number but found '1e999' (column 5)"),
        ("3 1:1e", "expected feature:value with a finite number but found '1:1e' (column 3)"),
        ("3 1:1.2.3", "expected feature:value with a finite number but found '1:1.2.3' (column 3)"),
        ("3 1:0x1", "expected feature:value with a finite number but found '1:0x1' (column 3)"),
        ("1:1 2:1", "expected a label before the features but found '1:1' (column 1)"),
        ("3 qid:x", "expected feature:value but found 'qid:x' (column 3)"),
        (f"3 {'9' * 19}:1", f"a feature id has at most 18 digits but this is '{'9' * 19}:1'"),
    ],
)
def test_malformed_lines_are_named(tmp_path, line, message):
    text = f"# heading\n1 1:1\n{line}\n4 1:1\n"
    assert failure(tmp_path, text).startswith(f"file.txt:3: {message}")


def test_lines_are_counted_over_chunks(tmp_path, monkeypatch):
    monkeypatch.setattr(svmlight, "CHUNK_BYTES", 16)
    assert failure(tmp_path, "1 1:1\n" * 16 + "1 1:1 2:2 abc 3:1\n") == (
        "file.txt:17: expected feature:value but found 'abc' (column 11)"
    )


def test_overlong_line_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(svmlight, "MAX_LINE_BYTES", 100)
    monkeypatch.setattr(svmlight, "CHUNK_BYTES", 64)
    assert failure(tmp_path, "1 1:1\n" + "1 " + "5:1 " * 100).startswith("file.txt:2: a line of")


def test_file_without_rows_is_an_error(tmp_path):
    assert "no rows" in failure(tmp_path, "# nothing\n\n")


def test_unknown_label_is_named_with_its_line(tmp_path):
    rows = read_svmlight(write(tmp_path, "1 1:1\n\n9 1:1\n"))
    with pytest.raises(DataError, match=r"file.txt:3: unknown label 9"):
        rows.to_dataset(Taxonomy.from_labels([1, 2]))


def test_internal_labels_are_refused_dropped_or_kept(tmp_path):
    taxonomy = Taxonomy.from_paths([(1, 2), (1, 3), (4, 5)])
    rows = read_svmlight(write(tmp_path, "2 1:1\n1 1:2\n5 1:3\n"))
    with pytest.raises(DataError, match=r"file.txt:2: 1 is an internal node.*'drop'"):
        rows.to_dataset(taxonomy)
    dropped = rows.to_dataset(taxonomy, internal_labels="drop")
    assert dropped.y.tolist() == [2, 5]
    assert dropped.X.toarray().ravel().tolist() == [1, 3]
    assert "dropped 1 of 3 rows" in dropped.notes[0]
    assert rows.to_dataset(taxonomy, internal_labels="keep").n_rows == 3
    with pytest.raises(DataError, match="internal_labels must be one of"):
        rows.to_dataset(taxonomy, internal_labels="skip")


def test_rows_with_several_labels_make_no_dataset(tmp_path):
    rows = read_svmlight(write(tmp_path, "1,2 1:1\n"), multilabel=True)
    with pytest.raises(DataError, match="one a row"):
        rows.to_dataset(Taxonomy.from_labels([1, 2]))


@pytest.mark.parametrize("feature_ids", [[1, 1], [[1]], [0.5]])
def test_feature_ids_are_distinct_integers(tmp_path, feature_ids):
    assert "feature_ids" in failure(tmp_path, "1 1:1\n", feature_ids=feature_ids)
