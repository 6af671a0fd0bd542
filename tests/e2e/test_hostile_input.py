"""Broken and hostile files through the command line: a clear line, nothing written, no traceback.

Every case runs in this process. A case that is refused must exit with code 2, print one line on
standard error and leave the folder as it was; one that is accepted does what is documented.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import shutil
import struct
import sys
import warnings
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from safetensors.numpy import load_file, save_file

from taxofit import cli
from taxofit.datasets import streams

HIERARCHY = "1 2\n1 3\n2 4\n2 5\n"
COUNTS = "4 1:2 7:1\n5 2:1 7:3\n3 3:4\n4 1:1\n5 2:2\n3 3:1 7:1\n" * 3
SHOP = "title,size,category\n" + "".join(
    f"{colour} {word},{size},Home > {word}\n"
    for size, word in enumerate(("kettle", "mug", "spade"))
    for colour in ("red", "blue", "green", "old")
)
TEXT = ("--text", "title", "--path", "category", "--method", "td-lr", "--C", "10")
NUMBERS = ("--numeric", "size", "--path", "category", "--method", "td-lr", "--C", "10")
SPARSE = ("--hierarchy", "h.txt", "--method", "td-lr", "--C", "10")


@dataclass
class Outcome:
    code: int
    out: str
    err: str
    changed: set[str] = field(default_factory=set)


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run a command in a folder of its own, with files in it; return what came of it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)

    def start(*arguments: str, files: dict[str, str | bytes] | None = None) -> Outcome:
        for name, content in (files or {}).items():
            blob = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
            Path(name).write_bytes(blob)
        before = snapshot(tmp_path)
        capsys.readouterr()
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            code = cli.main([str(argument) for argument in arguments])
        shown = capsys.readouterr()
        after = snapshot(tmp_path)
        changed = {name for name in before | after if before.get(name) != after.get(name)}
        return Outcome(code, shown.out, shown.err, changed)

    return start


def snapshot(folder):
    return {
        str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in folder.rglob("*")
        if file.is_file() and not file.is_symlink()
    }


def refused(outcome, said):
    assert outcome.code == 2, (outcome.out, outcome.err)
    lines = [line for line in outcome.err.splitlines() if not line.startswith("warning: ")]
    assert len(lines) == 1, outcome.err
    assert lines[0].startswith("error: ")
    assert said in lines[0], lines[0]
    assert len(lines[0]) < 1000
    assert outcome.changed == set()


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Return a folder with a model of texts, one of numbers and one of counts."""
    folder = tmp_path_factory.mktemp("models")
    (folder / "shop.csv").write_text(SHOP)
    (folder / "h.txt").write_text(HIERARCHY)
    (folder / "rows.svm").write_text(COUNTS)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name, file, options in (
            ("text", "shop.csv", TEXT),
            ("numbers", "shop.csv", NUMBERS),
            ("counts", "rows.svm", SPARSE),
        ):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                show = warnings.showwarning
                assert cli.main(["fit", file, *options, "--model", name, "--quiet"]) == 0
                warnings.showwarning = show
    return folder


# ---------------------------------------------------------------------- files to learn from

BAD_TRAINING = {
    "NaN in svmlight": ({"a.svm": "4 1:nan\n3 1:1\n"}, SPARSE, "a.svm:1"),
    "infinity in svmlight": ({"a.svm": "4 1:1\n3 1:1e999\n"}, SPARSE, "a.svm:2"),
    "negative counts": ({"a.svm": "4 1:-1\n3 1:1\n"}, SPARSE, "egative"),
    "a feature id of 30 digits": ({"a.svm": f"4 {'9' * 30}:1\n"}, SPARSE, "a.svm:1"),
    "labels but no features": ({"a.svm": "4\n3\n"}, SPARSE, "no features"),
    "a label that the hierarchy lacks": ({"a.svm": "4 1:1\n99 1:1\n"}, SPARSE, "a.svm:2"),
    "the label of an internal node": (
        {"a.svm": "4 1:1\n2 1:1\n3 1:1\n"}, (*SPARSE, "--internal-labels", "error"), "a.svm:2"),
    "several labels": ({"a.svm": "4,3 1:1\n"}, SPARSE, "a.svm:1"),
    "an empty file": ({"a.csv": ""}, TEXT, "empty"),
    "a heading and no rows": ({"a.csv": "title,category\n"}, TEXT, "no rows"),
    "nothing but line ends": ({"a.csv": "\n" * 500}, TEXT, "a.csv"),
    "a quote that never ends": ({"a.csv": 'title,category\n"mug,Home\ncup,Home\n'}, TEXT, "quote"),
    "no label at all": ({"a.csv": "title,category\nmug,\ncup,\n"}, TEXT, "label"),
    "no words": ({"a.csv": "title,category\n!,Home > A\n?,Home > B\n"}, TEXT, "learn from"),
    "half a gzip file": ({"a.csv": gzip.compress(SHOP.encode())[:-20]}, TEXT, "damaged gzip"),
    "gzip that was changed": (
        {"a.csv": gzip.compress(SHOP.encode())[:-8] + bytes(8)}, TEXT, "damaged gzip"),
    "garbage after the gzip magic": ({"a.csv": b"\x1f\x8b" + bytes(50)}, TEXT, "damaged gzip"),
    "Parquet by name only": ({"a.parquet": b"PAR1, they say"}, TEXT, "not a readable Parquet"),
    "Parquet cut short": ({"a.parquet": b"PAR1" + bytes(99)}, TEXT, "not a readable Parquet"),
    "a hierarchy with a cycle": (
        {"a.svm": COUNTS, "h.txt": "1 2\n2 3\n3 2\n"}, SPARSE, "h.txt:3"),
    "a hierarchy with two parents": (
        {"a.svm": COUNTS, "h.txt": "1 2\n3 4\n1 4\n"}, SPARSE, "two parents"),
    "a node that is its own parent": ({"a.svm": COUNTS, "h.txt": "1 1\n"}, SPARSE, "h.txt"),
    "an empty hierarchy": ({"a.svm": COUNTS, "h.txt": "\n# nothing\n"}, SPARSE, "no edges"),
    "an ARFF file without classes": (
        {"a.arff": "@relation x\n@attribute a numeric\n@data\n1\n"}, (), "hierarchical"),
    "ARFF values that are NaN": (
        {"a.arff": "@relation x\n@attribute a numeric\n@attribute class hierarchical 1,2\n"
                   "@data\nnan,1\n1,2\n"}, (), "a.arff:5"),
    "an unknown encoding": ({"a.csv": SHOP}, (*TEXT, "--encoding", "klingon"), "klingon"),
    "a delimiter of two characters": ({"a.csv": SHOP}, (*TEXT, "--delimiter", "::"), "delimiter"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_TRAINING)
def test_training_rows_that_make_no_sense_are_refused(run, case):
    files, options, said = BAD_TRAINING[case]
    data = next(iter(files))
    outcome = run("fit", data, *options, "--model", "m", files={"h.txt": HIERARCHY} | files)
    refused(outcome, said)


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "1e999", "", "many"])
def test_a_value_that_is_no_finite_number_is_refused_or_left_out_with_a_note(run, value):
    rows = SHOP + f"red mug,{value},Home > mug\n"
    outcome = run("fit", "a.csv", *NUMBERS, "--model", "m", "--json", files={"a.csv": rows})
    if outcome.code == 0:
        report = json.loads(outcome.out)
        assert report["rows"] == 12
        assert "14" in outcome.out  # the line
    else:
        refused(outcome, "a.csv:14")


ODD_TRAINING = {
    "one class only": ({"a.csv": "title,category\nred mug,Home\nblue cup,Home\n"}, TEXT),
    "rows without entries": ({"a.svm": COUNTS + "4\n5 # nothing\n"}, SPARSE),
    "a column that is 0 throughout": ({"a.svm": COUNTS.replace("\n", " 9:0\n")}, SPARSE),
    "columns that are equal": ({"a.svm": COUNTS.replace(" 7:1", " 7:1 8:1")}, SPARSE),
    "negative values taken as they are": (
        {"a.svm": COUNTS.replace("1:2", "1:-2")}, (*SPARSE, "--raw")),
    "internal labels that are dropped": (
        {"a.svm": COUNTS + "2 1:1\n"}, (*SPARSE, "--internal-labels", "drop")),
    "a line of 1 MB": ({"a.csv": SHOP + f"{'kettle ' * 150_000},1,Home > kettle\n"}, TEXT),
    "letters of all kinds": (
        {"a.csv": SHOP + "ﷺ 👩‍👩‍👧 é\u202e,1,Home > \u202eגעגוע\n" * 2}, TEXT),
    "a byte-order mark": ({"a.csv": "\ufeff" + SHOP}, TEXT),
    "a formula as a label": ({"a.csv": SHOP.replace("Home > mug", "Home > =1+1")}, TEXT),
    "a path that climbs": ({"a.csv": SHOP.replace("Home > mug", "Home > ../../etc")}, TEXT),
}  # fmt: skip


@pytest.mark.parametrize("case", ODD_TRAINING)
def test_odd_training_rows_give_a_model_that_predicts_them(run, case):
    files, options = ODD_TRAINING[case]
    data = next(iter(files))
    fitted = run(
        "fit", data, *options, "--model", "m", "--json", files={"h.txt": HIERARCHY} | files
    )
    assert fitted.code == 0, fitted.err
    assert all(name.startswith("m/") for name in fitted.changed)
    predicted = run("predict", "m", data, "-o", "out.csv")
    assert predicted.code == 0, predicted.err
    assert predicted.changed == {"out.csv"}
    with Path("out.csv").open(newline="") as handle:
        rows = list(csv.DictReader(handle))
    assert rows
    assert not any(cell.startswith(("=", "@")) for row in rows for cell in row.values())


def test_dropped_rows_are_counted(run):
    files = {"a.svm": COUNTS + "2 1:1\n" * 3, "h.txt": HIERARCHY}
    outcome = run("fit", "a.svm", *SPARSE, "--internal-labels", "drop", "--model", "m", "--json",
                  files=files)  # fmt: skip
    report = json.loads(outcome.out)
    assert report["rows"] == 18
    assert any("3" in note for note in report["notes"])


# ---------------------------------------------------------------------- files to predict

BAD_ROWS = {
    "a column that is missing": ("text", "a.csv", "name\nmug\n", "no column 'title'"),
    "a number that is missing": ("numbers", "a.csv", "size,x\n1,\n,\n", "a.csv:3"),
    "a number that is infinite": ("numbers", "a.csv", "size,x\n1,\n-inf,\n", "a.csv:3"),
    "a row that is too long": ("text", "a.csv", "id,title\n1,mug\n1,2,mug\n", "a.csv:3"),
    "NaN in svmlight": ("counts", "a.svm", "0 1:1\n0 1:nan\n", "a.svm:2"),
    "negative counts": ("counts", "a.svm", "0 1:-4\n", "egative"),
    "a table for a model of svmlight": ("counts", "a.csv", "title,size\nred mug,3\n", "a.csv:2"),
    "Parquet that is none": ("text", "a.parquet", "PAR1PAR1", "not a readable Parquet"),
    "nothing": ("text", "a.csv", "", "empty"),
}


@pytest.mark.parametrize("target", ["out.csv", "out.jsonl", "out.parquet", "out.csv.gz"])
@pytest.mark.parametrize("case", BAD_ROWS)
def test_rows_that_cannot_be_read_leave_no_output(run, models, case, target):
    model, name, content, said = BAD_ROWS[case]
    outcome = run("predict", models / model, name, "-o", target, files={name: content})
    refused(outcome, said)


def test_a_line_of_commas_does_not_keep_anybody_waiting(run):
    outcome = run("info", "a.txt", files={"a.txt": ", " * 20_000 + "1:1 x"})
    assert outcome.code in (0, 2)


def test_a_file_of_quotes_is_refused(run):
    for content in ('"', '""', '"\n"\n'):
        refused(run("info", "a.csv", files={"a.csv": content}), "a.csv")


def test_a_table_of_any_types_is_read_as_text(run, models):
    table = pa.table({
        "title": pa.array([["red", "mug"], None]),
        "b": pa.array([b"\xff", None]),
        "d": pa.array([None, None]),
    })  # fmt: skip
    pq.write_table(table, "a.parquet")
    for out in ("o.csv", "o.jsonl", "o.parquet"):
        outcome = run("predict", models / "text", "a.parquet", "--all-columns", "-o", out)
        assert outcome.code == 0, outcome.err


def test_a_pipe_under_a_name_is_read_once(run, models):
    import os
    import threading

    os.mkfifo("pipe")
    thread = threading.Thread(target=lambda: Path("pipe").write_text("title\nred mug\n"))
    thread.start()
    outcome = run("predict", models / "text", "pipe")
    thread.join()
    assert outcome.code == 0, outcome.err
    assert outcome.out.splitlines()[1].startswith("mug,")


@pytest.mark.parametrize("command", ["fit", "predict"])
def test_a_gzip_bomb_is_refused_and_a_person_may_insist(run, models, monkeypatch, command):
    monkeypatch.setattr(streams, "MAX_UNPACKED_BYTES", 2**20)
    packed = gzip.compress(
        b"title,category\n" + b"red mug,Home > mug\n" * 100_000 + b"x,Home > x\n"
    )
    assert len(packed) * 100 < 19 * 100_000
    arguments = {
        "fit": ("fit", "a.csv.gz", *TEXT, "--model", "m", "-q"),
        "predict": ("predict", models / "text", "a.csv.gz", "-o", "out.csv", "-q"),
    }[command]
    refused(run(*arguments, files={"a.csv.gz": packed}), "TAXOFIT_MAX_UNPACKED_BYTES")
    monkeypatch.setenv("TAXOFIT_MAX_UNPACKED_BYTES", "much")
    refused(run(*arguments), "must be a number of bytes")
    monkeypatch.setenv("TAXOFIT_MAX_UNPACKED_BYTES", str(2**30))
    assert run(*arguments).code == 0


def test_a_bomb_through_a_pipe_is_refused(run, models, monkeypatch):
    monkeypatch.setattr(streams, "MAX_UNPACKED_BYTES", 2**17)
    packed = io.BytesIO(gzip.compress(b"title\n" + b"mug\n" * 10**5))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(packed))
    outcome = run("predict", models / "text", "-", "-o", "out.csv")
    refused(outcome, "standard input: unpacks to more than")


# ---------------------------------------------------------------------- models


def manifest_with(**changes):
    def change(folder):
        manifest = json.loads((folder / "manifest.json").read_text())
        for key, value in changes.items():
            *above, last = key.split("__")
            place = manifest
            for name in above:
                place = place[name]
            place[last] = value
        (folder / "manifest.json").write_text(json.dumps(manifest))

    return change


def manifest_text(text):
    return lambda folder: (folder / "manifest.json").write_bytes(text)


def signed(folder, name, content):
    """Write a file and make the manifest vouch for it, as an attacker would."""
    (folder / name).write_bytes(content)
    digest = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    manifest_with(**{f"files__{name}": digest})(folder)


def weights_with(**changes):
    """Change arrays of the weights, checksum and all."""

    def change(folder):
        arrays = load_file(folder / "weights.safetensors")
        for name, value in changes.items():
            arrays[name] = value(arrays[name])
        save_file(arrays, folder / "new")
        content = (folder / "new").read_bytes()
        (folder / "new").unlink()
        signed(folder, "weights.safetensors", content)

    return change


def header_that_lies(folder):
    content = (folder / "weights.safetensors").read_bytes()
    (size,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + size])
    name = next(key for key in header if key != "__metadata__")
    header[name]["data_offsets"][1] += 2**40
    lied = json.dumps(header).encode()
    signed(folder, "weights.safetensors", struct.pack("<Q", len(lied)) + lied + content[8 + size :])


def replaced_by_link(name, target):
    def change(folder):
        (folder / name).unlink()
        (folder / name).symlink_to(target)

    return change


BAD_MODELS = {
    "no manifest": lambda folder: (folder / "manifest.json").unlink(),
    "a manifest that is a folder": lambda folder: (
        (folder / "manifest.json").unlink(), (folder / "manifest.json").mkdir()),
    "a manifest without end": replaced_by_link("manifest.json", "/dev/zero"),
    "an empty manifest": manifest_text(b""),
    "a manifest that is not UTF-8": manifest_text(b"\xff\xfe{"),
    "a manifest that is a list": manifest_text(b"[]"),
    "a manifest that nests deeply": manifest_text(b"[" * 200_000),
    "a number of 10,000 digits": manifest_text(b'{"format_version": ' + b"9" * 10_000 + b"}"),
    "a newer format": manifest_with(format_version=10**6),
    "a version that is a text": manifest_with(format_version="1"),
    "a version that is true": manifest_with(format_version=True),
    "somebody else's format": manifest_with(format="pickle"),
    "no taxonomy": manifest_with(taxonomy=None),
    "a taxonomy with a cycle": manifest_with(taxonomy__parent=[1, 0, 0, 0, 0]),
    "a taxonomy of other labels": manifest_with(taxonomy__labels=["a"]),
    "removed nodes that are not there": manifest_with(removed=[10**6]),
    "a negative node to remove": manifest_with(removed=[-1]),
    "settings that nobody knows": manifest_with(settings__colour="red"),
    "features without number": manifest_with(fitted__n_features_in=10**9),
    "weights of an unknown kind": manifest_with(weights="pickled"),
    "an encoder of an unknown kind": manifest_with(encoder={"kind": "pickled"}),
    "an encoder without terms": manifest_with(encoder__terms=None),
    "notes that are a list": manifest_with(notes=[]),
    "notes on columns that are none": manifest_with(notes__source={"format": "table"}),
    "notes of a format unknown": manifest_with(notes__source__format="xlsx"),
    "column names that are numbers": manifest_with(notes__source__text=[1, 2]),
    "checksums that are missing": manifest_with(files={}),
    "a file named outside the folder": manifest_with(files={"../weights.safetensors": {}}),
    "no weights": lambda folder: (folder / "weights.safetensors").unlink(),
    "weights cut short": lambda folder: (folder / "weights.safetensors").write_bytes(
        (folder / "weights.safetensors").read_bytes()[:-7]),
    "a changed byte": lambda folder: (folder / "weights.safetensors").write_bytes(
        (folder / "weights.safetensors").read_bytes()[:-1] + b"\x77"),
    "weights without end": replaced_by_link("weights.safetensors", "/dev/zero"),
    "a header that lies about offsets": header_that_lies,
    "a header longer than the file": lambda folder: signed(
        folder, "weights.safetensors", struct.pack("<Q", 2**60) + b"{}"),
    "a header that is no JSON": lambda folder: signed(
        folder, "weights.safetensors", struct.pack("<Q", 4) + b"{{{{"),
    "nothing in the weights": lambda folder: signed(
        folder, "weights.safetensors", struct.pack("<Q", 2) + b"{}"),
    "an encoder's weights cut short": lambda folder: signed(
        folder, "encoder.safetensors", b"12345678"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_MODELS)
def test_a_model_that_was_tampered_with_is_refused(run, models, tmp_path, case):
    shutil.copytree(models / "text", tmp_path / "model")
    BAD_MODELS[case](tmp_path / "model")
    outcome = run("predict", "model", "a.csv", "-o", "o.csv", files={"a.csv": "title\nmug\n"})
    refused(outcome, "model")


def test_every_array_of_weights_is_checked_for_type_shape_and_range(run, models, tmp_path):
    arrays = load_file(models / "text" / "weights.safetensors")
    attacks = {
        "longer": lambda a: np.concatenate([a, a]),
        "shorter": lambda a: a[:-1],
        "of another type": lambda a: a.astype(np.float64 if a.dtype.kind != "f" else np.int32),
        "of another shape": lambda a: a.reshape(1, -1),
    }
    ranges = {
        "huge": lambda a: np.full_like(a, 2**30),
        "negative": lambda a: np.full_like(a, -5),
    }
    accepted = []
    for name, array in arrays.items():
        # Weights may be of any sign.
        is_index = array.dtype.kind in "iu" and name not in ("value", "trend")
        for attack, change in (attacks | (ranges if is_index else {})).items():
            try:
                same = np.array_equal(change(array), array) and change(array).dtype == array.dtype
            except (ValueError, OverflowError):
                continue
            if same:
                continue
            shutil.rmtree(tmp_path / "model", ignore_errors=True)
            shutil.copytree(models / "text", tmp_path / "model")
            weights_with(**{name: change})(tmp_path / "model")
            outcome = run(
                "predict", "model", "a.csv", "-o", "o.csv", files={"a.csv": "title\nmug\n"}
            )
            if outcome.code == 0:
                accepted.append((name, attack))
                Path("o.csv").unlink()
            else:
                refused(outcome, "model")
    assert accepted == []


def test_a_model_folder_that_is_a_file_or_absent_is_refused(run):
    refused(run("predict", "a.csv", "a.csv", files={"a.csv": SHOP}), "a.csv")
    refused(run("predict", "../../../no/such", "a.csv"), "is not a taxofit model")
