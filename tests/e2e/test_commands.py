"""The commands as a person types them, each in a process of its own."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys

import pytest
from tests.e2e.conftest import SOURCE

SCORES = {"micro_f1", "macro_f1", "hierarchical_f1", "tree_error"}


def rows_of(file):
    with file.open(encoding="utf-8", newline="") as handle:
        return list(csv.DictReader(handle))


def refused(done):
    """Assert exit code 2 and one line on stderr; return the line."""
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: ")
    return line


def test_fit_ends_with_a_table_its_guesses_and_the_next_command(taxofit, shop_csv, tmp_path):
    done = taxofit(
        "fit", shop_csv, "--text", "title", "--path", "category", "--model", "model",
        "--test", shop_csv, folder=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "guessed  paths in 'category' are split at ' > '" in done.stdout
    assert "On 60 test rows" in done.stdout
    assert all(way in done.stdout for way in ("flat ", "original ", "µF1", "p MF1"))
    assert "taxofit predict model" in done.stdout
    assert (tmp_path / "model" / "manifest.json").is_file()
    assert done.stderr == ""


def test_fit_as_json_prints_nothing_else(taxofit, shop_csv, tmp_path):
    done = taxofit(
        "fit", shop_csv, "--text", "title", "--path", "category", "--model", tmp_path / "model",
        "--method", "td-lr", "--C", "10", "--test", shop_csv, "--json",
    )  # fmt: skip
    report = json.loads(done.stdout)
    assert (report["rows"], report["leaves"], report["nodes"]) == (60, 5, 9)
    assert report["nodes_kept"] == report["nodes"]
    assert report["C"] == 10
    assert set(report["test"]) >= SCORES
    assert done.stderr == ""


def test_predict_writes_one_row_per_input_row_in_order(taxofit, shop_csv, shop_model, tmp_path):
    out = tmp_path / "predictions.csv"
    done = taxofit("predict", shop_model, shop_csv, "-o", out)
    assert done.returncode == 0, done.stderr
    predictions, truth = rows_of(out), rows_of(shop_csv)
    assert list(predictions[0]) == ["label", "path", "score"]
    assert len(predictions) == len(truth)
    n_right = sum(p["path"] == t["category"] for p, t in zip(predictions, truth, strict=True))
    assert n_right > 50
    assert all(p["path"].endswith(p["label"]) for p in predictions)
    assert all(0 < float(p["score"]) < 1 for p in predictions)
    assert [file.name for file in tmp_path.iterdir()] == ["predictions.csv"]


def test_predict_without_a_file_to_write_prints_csv_and_nothing_else(taxofit, shop_model, tmp_path):
    file = tmp_path / "two.csv"
    file.write_text("id,title\n1,copper kettle\n2,\n", encoding="utf-8")
    done = taxofit("predict", shop_model, file)
    assert done.returncode == 0, done.stderr
    header, kettle, empty = done.stdout.splitlines()
    assert header == "label,path,score"
    assert kettle.startswith("Kettles,Home > Kitchen > Kettles,0.")
    assert empty
    assert done.stderr == ""


def test_a_text_through_a_pipe_is_answered_at_once(taxofit, shop_model):
    done = taxofit("predict", shop_model, "-", "--out-format", "jsonl", given="electric kettle\n")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["path"] == ["Home", "Kitchen", "Kettles"]
    assert done.stderr == ""


def test_a_reader_that_leaves_early_ends_the_work_without_a_word(shop_model, tmp_path):
    file = tmp_path / "many.txt"
    file.write_text("electric kettle\n" * 50_000)
    command = [sys.executable, "-m", "taxofit", "predict", shop_model, file, "--format", "lines"]
    environment = os.environ | {"PYTHONPATH": str(SOURCE)}
    with subprocess.Popen(
        [*map(str, command)], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout.readline() == b"label,path,score\n"
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1


def test_evaluate_scores_as_fractions_in_json_and_percentages_for_people(
    taxofit, shop_csv, shop_model
):
    done = taxofit("evaluate", shop_model, shop_csv, "--json")
    report = json.loads(done.stdout)
    assert set(report) >= SCORES | {"rows", "levels"}
    assert 0.9 < report["micro_f1"] <= 1
    assert [level["level"] for level in report["levels"]] == [1, 2, 3]
    shown = taxofit("evaluate", shop_model, shop_csv).stdout
    assert f"{report['micro_f1']:.2%}" in shown


def test_labels_unknown_to_the_model_count_as_errors(taxofit, shop_model, tmp_path):
    file = tmp_path / "new.csv"
    file.write_text("title,category\nsteel kettle,Home > Kitchen > Kettles\nowl,Wild > Owls\n")
    report = json.loads(taxofit("evaluate", shop_model, file, "--json").stdout)
    assert report["micro_f1"] == 0.5
    assert report["notes"] == [
        "1 labels are unknown to the model and count as errors: 'Wild > Owls'"
    ]


def test_info_tells_a_model_from_a_table(taxofit, shop_csv, shop_model):
    model = json.loads(taxofit("info", shop_model, "--json").stdout)
    assert model["kind"] == "model"
    assert model["reads"]["text"] == ["title"]
    for name, score in model["validation"].items():
        assert f"{name} {score:.2%}" in taxofit("info", shop_model).stdout
    table = json.loads(taxofit("info", shop_csv, "--json").stdout)
    assert table["kind"] == "table"
    assert [column["name"] for column in table["columns"]] == ["title", "category"]


def test_demo_compares_three_methods_and_its_own_commands_work(taxofit, tmp_path):
    done = taxofit("demo", "--rows", "1500", "--json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert [result["method"] for result in report["results"]] == ["lr", "td-lr", "global-inf"]
    assert set(report["found"]) <= set(report["planted"])
    again = taxofit("evaluate", report["model"], report["test"], "--json", folder=tmp_path)
    repaired = report["results"][2]
    assert json.loads(again.stdout)["micro_f1"] == repaired["micro_f1"]
    assert json.loads(again.stdout)["tree_error"] == repaired["tree_error"]


def test_a_column_that_is_not_there_is_one_line_that_lists_those_that_are(
    taxofit, shop_csv, tmp_path
):
    model = tmp_path / "model"
    done = taxofit("fit", shop_csv, "--text", "titel", "--path", "category", "--model", model)
    line = refused(done)
    assert "no column 'titel'; the columns are 'title', 'category'" in line
    assert not model.exists()


def test_a_damaged_model_is_one_line_and_leaves_no_output(taxofit, shop_csv, shop_model, tmp_path):
    broken = tmp_path / "model"
    shutil.copytree(shop_model, broken)
    weights = broken / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:-7])
    line = refused(taxofit("predict", broken, shop_csv, "-o", tmp_path / "out.csv"))
    assert "damaged" in line
    assert [file.name for file in tmp_path.iterdir()] == ["model"]


def test_a_bad_row_late_in_a_file_leaves_the_earlier_output_alone(taxofit, shop_model, tmp_path):
    out = tmp_path / "out.csv"
    out.write_text("what was there before")
    file = tmp_path / "rows.csv"
    lines = ["id,title", *(f"{row},kettle" for row in range(12_000)), "1,2,3,4"]
    file.write_text("\n".join(lines))
    line = refused(taxofit("predict", shop_model, file, "-o", out))
    assert "rows.csv:12002: 4 fields where the heading has 2" in line
    assert out.read_text() == "what was there before"
    assert {file.name for file in tmp_path.iterdir()} == {"out.csv", "rows.csv"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("fit", "--modle", "x"), "No such option: --modle"),
        (("train",), "No such command 'train'"),
        (("fit", "a.csv", "--text", "t", "--path", "p", "--model", "m", "--method", "best"),
         "method must be one of td-lr"),
    ],
)  # fmt: skip
def test_what_the_command_line_does_not_know_is_one_line(taxofit, tmp_path, arguments, said):
    assert said in refused(taxofit(*arguments, folder=tmp_path))
    assert not list(tmp_path.iterdir())
