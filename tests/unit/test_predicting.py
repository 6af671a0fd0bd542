"""Rows in, predictions out: formats, pipes, copied columns, and memory that does not grow."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from taxofit import load_model
from taxofit.errors import DataError
from taxofit.predict.predictor import Predictor
from taxofit.workflow.options import FitOptions
from taxofit.workflow.output_formats import Answers, Layout
from taxofit.workflow.outputs import format_of_output, open_writer
from taxofit.workflow.predict_options import PredictOptions
from taxofit.workflow.predicting import predict_file
from taxofit.workflow.training import fit_file

SHOP = {"Home > Kettles": "kettle", "Home > Mugs": "mug", "Pets > Fish": "fish"}
LINES = [f"{k},{colour} {word}" for k, (colour, word) in enumerate(
    (colour, word) for word in SHOP.values() for colour in ("red", "blue", "green")
)]  # fmt: skip
NEW = ["tiny mug", "", "old fish", "steel kettle"]
EXPECTED = ["Mugs", None, "Fish", "Kettles"]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shop")
    rows = [f"{c} {word},{path}" for path, word in SHOP.items() for c in ("red", "blue", "green")]
    (folder / "shop.csv").write_text("\n".join(["title,category", *rows]))
    options = FitOptions(text=("title",), label_path="category", method="td-lr", C="10")
    fit_file(str(folder / "shop.csv"), str(folder / "model"), options)
    return str(folder / "model")


@pytest.fixture
def new_csv(tmp_path):
    file = tmp_path / "new.csv"
    with file.open("w", newline="") as handle:
        writer = csv.writer(handle)
        writer.writerow(["id", "title"])
        writer.writerows(enumerate(NEW))
    return str(file)


@pytest.fixture
def pipe(monkeypatch):
    """Put bytes on standard input, in pieces as small as they come."""

    def put(content: bytes, piece: int = 7):
        class Pieces(io.RawIOBase):
            name = "pieces"

            def __init__(self):
                self.inner = io.BytesIO(content)

            def readable(self):
                return True

            def readinto(self, buffer):
                block = self.inner.read(min(piece, len(buffer)))
                buffer[: len(block)] = block
                return len(block)

        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BufferedReader(Pieces())))

    return put


def predicted(model, file, **options):
    out = io.StringIO()
    report = predict_file(model, file, out, PredictOptions(**options))
    rows = list(csv.DictReader(io.StringIO(out.getvalue())))
    assert len(rows) == report.n_rows
    return rows


def labels(rows):
    return [
        row["label"] if expected else None for row, expected in zip(rows, EXPECTED, strict=True)
    ]


class TestInputs:
    def test_any_number_of_rows_at_a_time_gives_the_same(self, model, new_csv):
        whole = predicted(model, new_csv)
        assert labels(whole) == EXPECTED
        assert all(predicted(model, new_csv, chunk_rows=n) == whole for n in (1, 2, 3, 4))

    def test_a_row_without_text_gets_a_row_and_is_counted(self, model, new_csv):
        report = predict_file(model, new_csv, io.StringIO())
        assert (report.n_rows, report.n_blank) == (4, 1)

    @pytest.mark.parametrize("pack", [bytes, gzip.compress])
    def test_a_table_comes_through_a_pipe(self, model, new_csv, pipe, pack):
        with open(new_csv, "rb") as handle:  # noqa: PTH123  (a text)
            pipe(pack(handle.read()))
        assert predicted(model, "-", keep=("id",)) == predicted(model, new_csv, keep=("id",))

    def test_texts_come_through_a_pipe_one_a_line(self, model, pipe):
        pipe("\r\n".join(NEW).encode())
        assert labels(predicted(model, "-")) == EXPECTED
        pipe("\n".join(NEW).encode("utf-16"))
        assert labels(predicted(model, "-")) == EXPECTED

    def test_lines_that_look_like_another_table_are_noted(self, model, pipe):
        pipe(b"id,name\n1,blue mug\n")
        report = predict_file(model, "-", io.StringIO())
        assert report.n_rows == 2
        assert report.notes == (
            "standard input has no heading with 'title': read as one text a line",
        )

    def test_lines_of_a_file_are_texts_when_asked(self, model, tmp_path):
        file = tmp_path / "texts.txt"
        file.write_text("\n".join(NEW))
        rows = predicted(model, str(file), format="lines", all_columns=True)
        assert labels(rows) == EXPECTED
        assert [row["text"] for row in rows] == NEW

    def test_an_empty_pipe_is_refused(self, model, pipe):
        pipe(b"")
        with pytest.raises(DataError, match=r"standard input: .*(empty|no lines)"):
            predict_file(model, "-", io.StringIO())

    @pytest.mark.parametrize(
        ("format_", "said"), [("svmlight", "tables of texts"), ("x", "one of")]
    )
    def test_a_format_that_the_model_cannot_read_is_refused(self, model, new_csv, format_, said):
        with pytest.raises(DataError, match=said):
            predict_file(model, new_csv, io.StringIO(), PredictOptions(format=format_))

    def test_parquet_is_read_from_a_file_and_from_a_pipe(self, model, tmp_path, pipe):
        file = tmp_path / "new.parquet"
        pq.write_table(pa.table({"id": range(4), "title": NEW}), file, row_group_size=3)
        assert labels(predicted(model, str(file), chunk_rows=2)) == EXPECTED
        pipe(file.read_bytes(), piece=100)
        assert labels(predicted(model, "-")) == EXPECTED

    def test_svmlight_in_pieces_is_svmlight_at_once(self, tmp_path, monkeypatch):
        rng = np.random.default_rng(0)
        rows = [
            f"{2 + k % 2} " + " ".join(f"{i}:{rng.integers(1, 9)}" for i in (5 + k % 2, 8, 99))
            for k in range(60)
        ]
        (tmp_path / "h.txt").write_text("1 2\n1 3\n")
        file = tmp_path / "rows.svm"
        file.write_text("\n".join(rows) + "\n\n# the end")
        options = FitOptions(hierarchy=str(tmp_path / "h.txt"), method="td-lr", C="10")
        model = str(tmp_path / "model")
        fit_file(str(file), model, options)
        whole = predicted(model, str(file))
        assert [row["label"] for row in whole] == [str(2 + k % 2) for k in range(60)]
        monkeypatch.setattr("taxofit.datasets.svmlight.CHUNK_BYTES", 100)
        assert predicted(model, str(file), chunk_rows=2) == whole

    def test_arff_labels_are_not_looked_at(self, tmp_path):
        head = "@RELATION x\n@ATTRIBUTE a NUMERIC\n@ATTRIBUTE class hierarchical 1,1/1,1/2\n@DATA\n"
        train, new = tmp_path / "train.arff", tmp_path / "new.arff"
        train.write_text(head + "".join(f"{k},1/1\n{-k},1/2\n" for k in range(1, 9)))
        new.write_text(head + "5,?\n-5,unknown\n")
        model = str(tmp_path / "model")
        fit_file(str(train), model, FitOptions(method="lr", C="10"))
        assert [row["label"] for row in predicted(model, str(new), chunk_rows=1)] == ["1/1", "1/2"]
        with pytest.raises(DataError, match="only columns of a table can be kept"):
            predicted(model, str(new), keep=("id",))

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ({"top": 0}, "top must be at least 1"),
            ({"chunk_rows": 0}, "chunk-rows must be at least 1"),
            ({"min_confidence": 1.5}, "from 0 to 1"),
            ({"min_confidence": float("nan")}, "from 0 to 1"),
            ({"min_confidence": 0.5, "top": 2}, "choose one"),
            ({"out_format": "xml"}, "out-format must be one of"),
        ],
    )
    def test_options_that_make_no_sense_are_refused(self, model, new_csv, options, said):
        with pytest.raises(DataError, match=said):
            predict_file(model, new_csv, io.StringIO(), PredictOptions(**options))


class TestOutputs:
    @pytest.mark.parametrize("name", ["o.csv", "o.tsv", "o.jsonl", "o.parquet", "o.csv.gz"])
    def test_every_format_says_the_same(self, model, new_csv, tmp_path, name):
        out = tmp_path / name
        predict_file(model, new_csv, str(out), PredictOptions(keep=("id",), chunk_rows=3))
        rows = read_back(out)
        whole = predicted(model, new_csv)
        assert [row["id"] for row in rows] == ["0", "1", "2", "3"]
        assert [row["label"] for row in rows] == [row["label"] for row in whole]
        assert [row["path"] for row in rows] == [row["path"].split(" > ") for row in whole]
        assert [float(row["score"]) for row in rows] == pytest.approx(
            [float(row["score"]) for row in whole], rel=1e-5
        )
        assert {file.name for file in tmp_path.iterdir()} == {"new.csv", name}

    def test_a_copied_column_gives_way_to_ours(self, model, tmp_path):
        file = tmp_path / "new.csv"
        file.write_text("label,input_label,title\nold,older,blue mug\n")
        (row,) = predicted(model, str(file), all_columns=True)
        assert row["label"] == "Mugs"
        assert (row["input_input_label"], row["input_label"]) == ("old", "older")

    def test_copied_cells_are_safe_in_a_spreadsheet_unless_exact(self, model, tmp_path):
        file = tmp_path / "new.csv"
        file.write_text("=cmd,title\n=1+1,@mug\n")
        (safe,) = predicted(model, str(file), all_columns=True)
        assert (safe["'=cmd"], safe["title"]) == ("'=1+1", "'@mug")
        (exact,) = predicted(model, str(file), all_columns=True, exact=True)
        assert (exact["=cmd"], exact["title"]) == ("=1+1", "@mug")

    def test_types_of_parquet_survive(self, model, tmp_path):
        columns = {
            "id": pa.array([None, 3], pa.int16()),
            "when": pa.array([None, 0], pa.timestamp("ms")),
            "sizes": pa.array([[1.5, float("nan")], None]),
            "title": pa.array([None, "mug"]),
        }
        file, out, lines = (tmp_path / name for name in ("a.parquet", "b.parquet", "b.jsonl"))
        pq.write_table(pa.table(columns), file)
        options = PredictOptions(all_columns=True, chunk_rows=1)
        predict_file(model, str(file), str(out), options)
        table = pq.read_table(out)
        assert [table.schema.field(name).type for name in columns] == [
            values.type for values in columns.values()
        ]
        assert table["id"].to_pylist() == [None, 3]
        predict_file(model, str(file), str(lines), options)
        first, second = (json.loads(line) for line in lines.read_text().splitlines())
        assert (first["id"], first["sizes"], first["title"]) == (None, [1.5, None], None)
        assert second["when"] == "1970-01-01 00:00:00"

    def test_a_failure_leaves_no_file(self, model, tmp_path):
        file = tmp_path / "new.csv"
        file.write_text("id,title\n1,mug\n2,mug,mug\n")
        for name in ("o.csv", "o.parquet", "o.jsonl.gz"):
            with pytest.raises(DataError, match=r"new.csv:3: 3 fields"):
                predict_file(model, str(file), str(tmp_path / name), PredictOptions(chunk_rows=1))
        assert [file.name for file in tmp_path.iterdir()] == ["new.csv"]

    def test_an_unknown_ending_is_refused(self):
        with pytest.raises(DataError, match=r"'\.xlsx' is no format to write"):
            format_of_output("o.xlsx")


@pytest.fixture(scope="module")
def classifier(model):
    return load_model(model)


class TestRanks:
    def test_ranks_are_columns_of_csv(self, model, classifier, new_csv):
        best = classifier.predict_topk(NEW, k=2)
        rows = predicted(model, new_csv, top=2)
        assert list(rows[0]) == ["label", "path", "score", "label_2", "path_2", "score_2"]
        assert [[row["label"], row["label_2"]] for row in rows] == best.labels.tolist()
        for row, paths, scores in zip(rows, best.paths, best.probabilities, strict=True):
            assert [row["path"], row["path_2"]] == [" > ".join(path) for path in paths]
            assert [row["score"], row["score_2"]] == [format(score, ".6g") for score in scores]

    def test_there_are_no_more_ranks_than_labels(self, model, new_csv):
        assert list(predicted(model, new_csv, top=9)[0])[-1] == "score_3"

    def test_ranks_are_a_list_in_json_and_parquet(self, model, classifier, new_csv, tmp_path):
        best = classifier.predict_topk(NEW, k=4)
        for name in ("o.jsonl", "o.parquet"):
            predict_file(model, new_csv, str(tmp_path / name), PredictOptions(top=4))
            for position, row in enumerate(read_back(tmp_path / name)):
                assert row["label"] == best.labels[position, 0]
                assert [entry["label"] for entry in row["top"]] == best.labels[position].tolist()
                assert [tuple(entry["path"]) for entry in row["top"]] == list(best.paths[position])
                assert [entry["score"] for entry in row["top"]] == pytest.approx(
                    best.probabilities[position].tolist(), rel=1e-5
                )

    def test_probabilities_of_all_labels_are_written(self, model, classifier, new_csv, tmp_path):
        wanted = classifier.predict_proba(NEW)
        rows = {"csv": predicted(model, new_csv, proba=True)}
        for name in ("jsonl", "parquet"):
            predict_file(model, new_csv, str(tmp_path / f"o.{name}"), PredictOptions(proba=True))
            rows[name] = read_back(tmp_path / f"o.{name}")
        for position, label in enumerate(classifier.classes_.tolist()):
            for name in ("csv", "parquet"):
                written = [float(row[f"p({label})"]) for row in rows[name]]
                np.testing.assert_allclose(written, wanted[:, position], rtol=1e-5)
            written = [row["probabilities"][label] for row in rows["jsonl"]]
            np.testing.assert_allclose(written, wanted[:, position], rtol=1e-5)

    def test_an_unsure_row_may_stop_above_the_leaves(self, model, classifier, new_csv, tmp_path):
        blank = dict(zip(classifier.classes_, classifier.predict_proba([""])[0], strict=True))
        home = blank["Kettles"] + blank["Mugs"]  # two of three leaves that are all alike
        sure, unsure, *_ = predicted(model, new_csv, min_confidence=0.6)
        assert (sure["label"], sure["path"]) == ("Mugs", "Home > Mugs")
        assert (unsure["label"], unsure["path"]) == ("Home", "Home")
        assert float(unsure["score"]) == pytest.approx(home, rel=1e-5)
        _, nothing, *_ = predicted(model, new_csv, min_confidence=0.9)
        assert (nothing["label"], nothing["path"], nothing["score"]) == ("", "", "1")
        for name in ("o.jsonl", "o.parquet"):
            options = PredictOptions(min_confidence=0.9)
            predict_file(model, new_csv, str(tmp_path / name), options)
            row = read_back(tmp_path / name)[1]
            assert (row["label"], row["path"], row["score"]) == (None, [], 1)

    def test_probabilities_are_computed_once(self, model, new_csv, monkeypatch):
        counted = []
        compute = Predictor.probabilities
        monkeypatch.setattr(
            Predictor, "probabilities", lambda *given: counted.append(1) or compute(*given)
        )
        predicted(model, new_csv, min_confidence=0.6)
        assert len(counted) == 1


def test_labels_that_are_numbers_stay_numbers(tmp_path):
    layout = Layout(lambda label: (1, label), classes=[2, 3])
    answers = Answers(np.array([[2]], dtype=object), np.array([[0.5]]))
    for kind in ("jsonl", "parquet"):
        with open_writer(str(tmp_path / f"o.{kind}"), layout, kind) as writer:
            writer.write(answers)
        assert read_back(tmp_path / f"o.{kind}")[0]["label"] == 2


# Pieces are made small so that the plateau is reached with files that a test can afford. VmHWM is
# the peak of this process; getrusage would count the memory of the one that started it.
CHILD = """
import re, sys
from pathlib import Path
import taxofit.datasets.svmlight as svmlight
svmlight.CHUNK_BYTES = 2**18
from taxofit.workflow.predicting import predict_file
from taxofit.workflow.predict_options import PredictOptions
model, small, large, out, *keep = sys.argv[1:]
for file in (small, large):
    predict_file(model, file, out, PredictOptions(chunk_rows=500, keep=tuple(keep)))
    print(re.search(r"VmHWM:\\s*([0-9]+) kB", Path("/proc/self/status").read_text())[1])
"""
MAX_GROWTH_KB = 24 * 1024  # the larger files are 30 MB and more
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from /proc")


def assert_memory_does_not_grow(*arguments):
    command = [sys.executable, "-c", CHILD, *map(str, arguments)]
    # Arrow's own pool keeps what was freed, in amounts of its own choosing.
    environment = os.environ | {"ARROW_DEFAULT_MEMORY_POOL": "system"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    small, large = map(int, done.stdout.split())
    assert large < small + MAX_GROWTH_KB


@on_linux
@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "parquet"])
def test_ten_times_the_rows_of_a_table_need_no_more_memory(model, tmp_path, suffix):
    files = [tmp_path / f"{n_rows}.{suffix}" for n_rows in (2_000, 20_000)]
    for n_rows, file in zip((2_000, 20_000), files, strict=True):
        blobs = [f"{row:09d}" * 350 for row in range(n_rows)]  # 63 MB in the larger file
        if suffix == "parquet":
            table = pa.table({"title": ["blue mug"] * n_rows, "blob": blobs})
            pq.write_table(table, file, use_dictionary=False, compression="none")
        else:
            text = "".join(["title,blob\n", *(f"blue mug,{blob}\n" for blob in blobs)]).encode()
            file.write_bytes(gzip.compress(text, 1) if suffix.endswith("gz") else text)
    assert_memory_does_not_grow(model, *files, tmp_path / "out.csv", "blob")
    assert (tmp_path / "out.csv").stat().st_size > 60 * 2**20


@on_linux
def test_ten_times_the_rows_of_svmlight_need_no_more_memory(tmp_path):
    (tmp_path / "h.txt").write_text("1 2\n1 3\n")
    train, small, large = (tmp_path / f"{name}.svm" for name in ("train", "small", "large"))
    rows = [f"{2 + k} {500 + k}:3 " + " ".join(f"{i}:1" for i in range(1, 400)) for k in (0, 1)]
    train.write_text("\n".join(rows * 5))
    small.write_text("\n".join(rows * 800))
    large.write_text("\n".join(rows * 8_000))
    model = str(tmp_path / "model")
    fit_file(str(train), model, FitOptions(hierarchy=str(tmp_path / "h.txt"), C="1", method="lr"))
    assert_memory_does_not_grow(model, small, large, tmp_path / "out.csv")
    assert large.stat().st_size > 30 * 2**20


def read_back(file):
    if file.suffix == ".parquet":
        return pq.read_table(file).to_pylist()
    text = (
        gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    ).decode()
    if file.suffix == ".jsonl":
        return [json.loads(line) for line in text.splitlines()]
    rows = list(csv.DictReader(io.StringIO(text), delimiter="\t" if file.suffix == ".tsv" else ","))
    return [row | {"path": row["path"].split(" > ")} for row in rows]
