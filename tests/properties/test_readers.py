from __future__ import annotations

import csv
import gzip
import io
import tempfile
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from taxofit import Taxonomy
from taxofit.datasets import read_hierarchy, read_svmlight, read_table

finite = st.floats(allow_nan=False, allow_infinity=False)
numbers = st.one_of(
    finite.map(repr),
    finite.map("{:.17g}".format),
    st.floats(-1e307, 1e307).map("{:+.3e}".format),
    st.decimals(allow_nan=False, allow_infinity=False, places=9).map("{:f}".format),
    st.integers(-(10**25), 10**25).map(str),
)
entries = st.lists(st.tuples(st.integers(0, 2**40), numbers), max_size=6, unique_by=lambda e: e[0])
blanks = st.sampled_from([" ", "  ", "\t"])
names = st.text(st.characters(codec="utf-8", categories=["L", "N"]), min_size=1, max_size=4)
words = st.text(st.characters(codec="utf-8", exclude_categories=["C"]), max_size=8)
paths = st.lists(names, min_size=1, max_size=4).map(tuple)


def read_text(read, text, suffix, **options):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, f"rows{suffix}")
        file.write_bytes(text.encode())
        return read(file, **options)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(-(10**17), 10**17), entries), min_size=1), blanks)
def test_svmlight_rows_survive_writing_and_reading(rows, blank):
    lines = [blank.join([str(label), *(f"{i}:{v}" for i, v in row)]) for label, row in rows]
    read = read_text(read_svmlight, "\n".join(lines), ".txt", compact=True)
    ids = sorted({i for _, row in rows for i, _ in row})
    assert read.feature_ids.tolist() == ids
    assert read.y.tolist() == [label for label, _ in rows]
    expected = np.zeros((len(rows), len(ids)))
    for position, (_, row) in enumerate(rows):
        for i, value in row:
            expected[position, ids.index(i)] = float(value)
    np.testing.assert_array_equal(read.X.toarray(), expected)


@settings(deadline=None)
@given(st.lists(st.lists(names.filter(lambda n: "," not in n), max_size=4), min_size=1))
def test_several_labels_survive_writing_and_reading(rows):
    text = "".join(f"{','.join(labels)} 1:1\n" for labels in rows)
    read = read_text(read_svmlight, text, ".txt", multilabel=True)
    assert [tuple(map(str, labels)) for labels in read.y] == [tuple(labels) for labels in rows]


@settings(deadline=None)
@given(st.lists(paths, min_size=1), st.sampled_from([" > ", ">", "/", "|", "::", "\t"]))
def test_paths_survive_writing_and_reading(listed, separator):
    text = "\n".join(separator.join(path) for path in listed)
    if all(name.isdecimal() for path in listed for name in path):
        return  # these become integers
    read = read_text(read_hierarchy, text, ".txt", layout="paths", separator=separator.strip(" "))
    assert read == Taxonomy.from_paths(listed)


@settings(deadline=None)
@given(
    st.lists(st.tuples(words, finite, paths), min_size=1),
    st.sampled_from([",", ";", "\t", "|"]),
    st.booleans(),
)
def test_csv_rows_survive_writing_and_reading(rows, delimiter, packed):
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, delimiter=delimiter)
    writer.writerow(["text", "number", "path"])
    writer.writerows((text, repr(x), " > ".join(path)) for text, x, path in rows)
    content = buffer.getvalue().encode()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "rows.csv")
        file.write_bytes(gzip.compress(content, 1) if packed else content)
        options = {"label_path": "path", "separator": ">", "internal_labels": "keep"}
        texts = read_table(file, text="text", **options)
        numeric = read_table(file, numeric="number", **options)
    assert [t.strip() for t in texts.X] == [text.strip() for text, _, _ in rows]
    assert numeric.X[:, 0].tolist() == [x for _, x, _ in rows]
    assert texts.taxonomy == Taxonomy.from_paths([path for _, _, path in rows])
    assert [texts.taxonomy.path_of(label) for label in texts.y] == [path for _, _, path in rows]
