import gzip
import json

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from taxofit import Taxonomy, TaxonomyClassifier
from taxofit.datasets import (
    ColumnScaler,
    CountEncoder,
    TextEncoder,
    convert,
    convert_svmlight,
    convert_table,
    mapped,
    open_store,
    read_svmlight,
    read_table,
)
from taxofit.datasets.row_store import fingerprint
from taxofit.errors import DataError

N_ROWS, N_COLUMNS = 300, 60


@pytest.fixture
def svmlight(tmp_path, monkeypatch):
    """Write an untidy file, and let it be read in many pieces."""
    monkeypatch.setattr(convert, "TEXT_BYTES", 500)
    monkeypatch.setattr(mapped, "CHUNK_ENTRIES", 40)
    rng = np.random.default_rng(0)
    lines = ["# a remark", ""]
    for row in range(N_ROWS):
        ids = rng.integers(5, 5 + N_COLUMNS, size=rng.integers(0, 12)) ** 3  # some twice, unsorted
        entries = " ".join(f"{i}:{rng.integers(0, 4)}" for i in ids)  # some are 0
        lines.append(f"{rng.integers(1, 7)} {entries}")
        if row % 50 == 0:
            lines.append("")
    file = tmp_path / "train.svm"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


@pytest.fixture
def taxonomy():
    return Taxonomy.from_paths([("a", n) for n in (1, 2, 3)] + [("b", n) for n in (4, 5, 6)])


def test_stored_rows_are_those_that_are_read(svmlight, tmp_path, taxonomy):
    store = convert_svmlight(svmlight, tmp_path / "store")
    read = read_svmlight(svmlight, compact=True)
    assert mapped.is_mapped(store.X)
    np.testing.assert_array_equal(store.X.toarray(), read.X.toarray())
    np.testing.assert_array_equal(store.feature_ids, read.feature_ids)
    data = store.to_dataset(taxonomy)
    np.testing.assert_array_equal(data.y, read.to_dataset(taxonomy).y)
    assert data.name == "train"


def test_features_to_ignore_and_gzip_are_heeded(svmlight, tmp_path):
    packed = tmp_path / "train.svm.gz"
    packed.write_bytes(gzip.compress(svmlight.read_bytes()))
    store = convert_svmlight(packed, tmp_path / "store", ignore_features=[6**3, 7**3])
    read = read_svmlight(svmlight, compact=True, ignore_features=[6**3, 7**3])
    np.testing.assert_array_equal(store.X.toarray(), read.X.toarray())
    np.testing.assert_array_equal(store.feature_ids, read.feature_ids)


@pytest.mark.parametrize("encoder", [CountEncoder(sublinear_tf=True), ColumnScaler()])
def test_rows_are_encoded_as_in_memory(svmlight, tmp_path, encoder):
    store = convert_svmlight(svmlight, tmp_path / "store", encoder=encoder)
    X = read_svmlight(svmlight, compact=True).X
    expected = type(encoder)(**encoder.get_params()).fit_transform(X)
    np.testing.assert_array_equal(store.X.toarray(), expected.toarray().astype(np.float32))
    again = store.encoder.transform(X)
    np.testing.assert_array_equal(again.toarray().astype(np.float32), store.X.toarray())


def test_text_labels_turn_all_labels_into_texts(tmp_path):
    file = tmp_path / "train.svm"
    file.write_text("7 1:1\n007 1:2\n", encoding="utf-8")
    assert convert_svmlight(file, tmp_path / "store").labels == ("7", "007")


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize(
    "settings",
    [{}, {"features": "chars"}, {"features": "pairs", "min_df": 2}, {"max_features": 7}],
)
def test_texts_are_encoded_as_in_memory(tmp_path, monkeypatch, suffix, settings):
    monkeypatch.setattr(convert, "CHUNK_ROWS", 7)
    rng = np.random.default_rng(1)
    words = [f"word{k}" for k in range(30)]
    frame = pd.DataFrame(
        {
            "title": [" ".join(rng.choice(words, size=4)) for _ in range(40)],
            "body": [" ".join(rng.choice(words, size=2)) for _ in range(40)],
            "kind": [f"Top > {'ABC'[k % 3]} > {k % 6}" for k in range(40)],
        }
    )
    file = tmp_path / f"shop.{suffix}"
    frame.to_csv(file, index=False) if suffix == "csv" else frame.to_parquet(file)
    columns = {"text": ["title", "body"], "label_path": "kind", "separator": " > "}
    store = convert_table(file, tmp_path / "store", **columns, encoder=TextEncoder(**settings))
    read = read_table(file, **columns)
    encoder = TextEncoder(**settings)
    np.testing.assert_array_equal(store.X.toarray(), encoder.fit_transform(read.X).toarray())
    data = store.to_dataset()
    assert data.y.tolist() == read.y.tolist()
    assert data.taxonomy.to_edges() == read.taxonomy.to_edges()
    np.testing.assert_array_equal(
        store.encoder.transform(["word1 word2"]).toarray(),
        encoder.transform(["word1 word2"]).toarray(),
    )


def test_numbers_and_levels_are_stored(tmp_path):
    frame = pd.DataFrame(
        {"cm": [1.5, 0.0, 3.0], "kg": [4, 5, 6], "top": ["a", "a", "b"], "sub": ["x", None, "y"]}
    )
    file = tmp_path / "sizes.parquet"
    frame.to_parquet(file)
    columns = {"numeric": ["cm", "kg"], "levels": ["top", "sub"]}
    store = convert_table(file, tmp_path / "store", **columns, encoder=ColumnScaler())
    read = read_table(file, **columns, internal_labels="drop")
    scaled = ColumnScaler().fit(frame[["cm", "kg"]].to_numpy()).transform(read.X)
    data = store.to_dataset(internal_labels="drop")
    np.testing.assert_allclose(data.X.toarray(), scaled, rtol=1e-6)
    assert mapped.is_mapped(data.X)
    assert data.y.tolist() == read.y.tolist()
    assert "first 'a' at" in data.notes[0]
    assert data.notes == read.notes


@pytest.mark.parametrize("flattening", ["td-lr", "global-inf"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_fit_on_mapped_rows_is_the_fit_in_memory(
    svmlight, tmp_path, taxonomy, flattening, fit_intercept
):
    data = convert_svmlight(svmlight, tmp_path / "store").to_dataset(taxonomy)
    settings = {"flattening": flattening, "C": 1.0, "fit_intercept": fit_intercept}
    out_of_core = TaxonomyClassifier(taxonomy, **settings).fit(data.X, data.y)
    in_memory = TaxonomyClassifier(taxonomy, **settings).fit(data.X.copy(), data.y)
    assert out_of_core.removed_ == in_memory.removed_
    for label in (1, 6):
        for ours, theirs in zip(
            out_of_core.node_coef(label), in_memory.node_coef(label), strict=True
        ):
            np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(out_of_core.predict(data.X), in_memory.predict(data.X))
    assert {path.name for path in tmp_path.iterdir()} == {"store", "train.svm"}
    assert not list((tmp_path / "store").glob(f"{mapped.SCRATCH_PREFIX}*"))


def test_weights_of_zero_leave_rows_out_of_a_mapped_fit(svmlight, tmp_path, taxonomy):
    data = convert_svmlight(svmlight, tmp_path / "store").to_dataset(taxonomy)
    weight = (np.arange(data.n_rows) % 3 > 0).astype(float)
    settings = {"flattening": "td-lr", "C": 1.0}
    ours = TaxonomyClassifier(taxonomy, **settings).fit(data.X, data.y, weight)
    some = weight > 0
    theirs = TaxonomyClassifier(taxonomy, **settings).fit(data.X.copy()[some], data.y[some])
    np.testing.assert_array_equal(ours.node_coef("a")[0], theirs.node_coef("a")[0])


# ---------------------------------------------------------------------- what can go wrong


def test_label_outside_the_taxonomy_is_named_with_its_line(tmp_path, taxonomy):
    file = tmp_path / "train.svm"
    file.write_text("1 1:1\n\n9 1:2\n1 2:1\n", encoding="utf-8")
    store = convert_svmlight(file, tmp_path / "store")
    with pytest.raises(DataError, match=r"train\.svm:3.*9"):
        store.to_dataset(taxonomy)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 1:1\n2 1;3\n", r"train\.svm:2: expected feature:value"),
        ("", "no rows to read"),
        ("1\n2\n", "labels but no features"),
        ("1 1:1e300\n", "too large"),
    ],
)
def test_nothing_is_left_of_a_conversion_that_fails(tmp_path, text, message):
    file = tmp_path / "train.svm"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        convert_svmlight(file, tmp_path / "store")
    assert [path.name for path in tmp_path.iterdir()] == ["train.svm"]


def test_conversion_replaces_a_store_and_nothing_else(svmlight, tmp_path):
    convert_svmlight(svmlight, tmp_path / "store")
    assert convert_svmlight(svmlight, tmp_path / "store").X.shape[0] == N_ROWS
    other = tmp_path / "thesis"
    other.mkdir()
    (other / "chapter.txt").write_text("precious", encoding="utf-8")
    with pytest.raises(DataError, match="not a store of rows"):
        convert_svmlight(svmlight, other)
    with pytest.raises(DataError, match="is a file"):
        convert_svmlight(svmlight, svmlight)
    assert (other / "chapter.txt").read_text(encoding="utf-8") == "precious"


def changed(folder, **values):
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text(encoding="utf-8")) | values
    path.write_text(json.dumps(manifest), encoding="utf-8")
    return manifest


def flip_a_byte(folder):
    path = folder / "data.npy"
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)


def point_beyond_the_columns(folder):
    indices = np.load(folder / "indices.npy")
    indices[5] = 10_000_000
    np.save(folder / "indices.npy", indices)
    files = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["files"]
    files["indices.npy"] = fingerprint(folder / "indices.npy")
    changed(folder, files=files)


def escape_from_the_folder(folder):
    files = changed(folder)["files"]
    changed(folder, files=files | {"../../etc/passwd": files["data.npy"]})


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (flip_a_byte, "checksum"),
        (lambda folder: (folder / "indices.npy").unlink(), "incomplete"),
        (lambda folder: changed(folder, format_version=99), "upgrade"),
        (lambda folder: changed(folder, format="a cake"), "not a store"),
        (lambda folder: changed(folder, rows=7), "damaged"),
        (lambda folder: changed(folder, rows="many"), "damaged"),
        (lambda folder: changed(folder, files={}), "incomplete"),
        (lambda folder: changed(folder, labels=[1]), "damaged"),
        (point_beyond_the_columns, "points beyond"),
        (escape_from_the_folder, "damaged"),
        (lambda folder: (folder / "manifest.json").write_text("{"), "damaged"),
        (lambda folder: (folder / "manifest.json").unlink(), "not a store"),
    ],
)
def test_damaged_foreign_and_newer_stores_are_refused(svmlight, tmp_path, damage, message):
    convert_svmlight(svmlight, tmp_path / "store")
    damage(tmp_path / "store")
    with pytest.raises(DataError, match=message):
        open_store(tmp_path / "store")


def test_full_disk_is_an_error_before_anything_is_written(tmp_path):
    with pytest.raises(DataError, match="no room"):
        mapped.scratch_array(1 << 50, np.float64, tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("n_entries", [1, 50, 10**6])
def test_mapped_rows_are_turned_to_mapped_columns(monkeypatch, tmp_path, n_entries):
    monkeypatch.setattr(mapped, "CHUNK_ENTRIES", 40)
    monkeypatch.setattr(mapped, "COLUMN_ENTRIES", n_entries)
    X = sparse.random_array((60, 30), density=0.1, rng=np.random.default_rng(0), format="csr")
    X.data[3] = 0  # stays an entry
    data = mapped.scratch_array(X.nnz, np.float64, tmp_path)
    data[:] = X.data
    found = mapped.by_column(sparse.csr_array((data, X.indices, X.indptr), shape=X.shape))
    expected = X.tocsc()
    assert mapped.is_mapped(found)
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
