"""What `taxofit report` reads, and what a fit leaves behind for it."""

from __future__ import annotations

import json
import shlex
from itertools import pairwise

import pytest

from taxofit import DataError, ModelError
from taxofit.study import read_study
from taxofit.workflow.options import FitOptions
from taxofit.workflow.reporting import fit_command, report_folder
from taxofit.workflow.training import fit_file

pytest.importorskip("plotly")

TITLES = {
    "Home > Kettles": ("steel kettle", "copper kettle", "whistling kettle"),
    "Home > Mugs": ("stone mug", "travel mug", "enamel mug"),
    "Pets > Fish": ("fish tank", "guppy food", "aquarium pump"),
}


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    file = tmp_path_factory.mktemp("table") / "shop.csv"
    lines = [f"{word} {title},{path}" for path, ts in TITLES.items() for title in ts
             for word in ("small", "large", "red", "blue")]  # fmt: skip
    file.write_text("\n".join(["title,category", *lines]), encoding="utf-8")
    return str(file)


OPTIONS = FitOptions(text=("title",), label_path="category")


def test_a_fit_leaves_a_study_that_a_report_is_made_of(table, tmp_path):
    model = str(tmp_path / "model")
    fitted = fit_file(table, model, OPTIONS)
    study = read_study(model)
    assert study["data"]["n_rows"] == fitted.n_rows
    assert study["C"] == fitted.C
    assert [study["nodes"]["name"][n] for n in study["nodes"]["removed"]] == list(fitted.removed)
    assert study["how"]["On the command line"] == fit_command(table, model, OPTIONS)
    written = report_folder(model, str(tmp_path / "report.html"))
    assert (written.kind, written.n_bytes) == ("model", (tmp_path / "report.html").stat().st_size)
    assert [file.name for file in tmp_path.iterdir() if file.is_file()] == ["report.html"]


def test_a_model_of_fixed_choices_has_nothing_to_report(table, tmp_path):
    model = str(tmp_path / "model")
    options = FitOptions(
        text=("title",), label_path="category", method="tlf", C="1", search="greedy"
    )
    fit_file(table, model, options)
    with pytest.raises(ModelError, match="no rows were held out to measure them"):
        report_folder(model, str(tmp_path / "report.html"))


@pytest.mark.parametrize("content", ["not json", "[]", '{"summary": {}}'])
def test_another_results_file_is_said_to_be_another(tmp_path, content):
    (tmp_path / "results.json").write_text(content)
    with pytest.raises(DataError, match="is not a results file"):
        report_folder(str(tmp_path), str(tmp_path / "report.html"))
    assert not (tmp_path / "report.html").exists()


def test_results_of_a_run_are_found_in_its_folder_or_by_name(tmp_path):
    from taxofit.report.headline import SCORES

    scores = {score: {"mean": 0.5, "std": 0.0} for score in SCORES}
    results = {
        "dataset": "toy", "results": [], "summary": {"lr": scores}, "significance": {},
        "data": {"n_test": 1}, "protocol": {"n_runs": 1, "seed": 0}, "versions": {},
    }  # fmt: skip
    (tmp_path / "results.json").write_text(json.dumps(results))
    for source in (tmp_path, tmp_path / "results.json"):
        assert report_folder(str(source), str(tmp_path / "report.html")).kind == "run"


def test_the_command_of_a_fit_means_the_same_options_to_the_command_line():
    options = FitOptions(
        text=("title", "the text"), label_path="category", separator=" / ", C="10", seed=3, raw=True
    )
    words = shlex.split(fit_command("my shop.csv", "shop", options))
    assert words[:3] == ["taxofit", "fit", "my shop.csv"]
    pairs = set(pairwise(words))
    assert {("--text", "title"), ("--text", "the text"), ("--path", "category")} <= pairs
    assert {("--sep", " / "), ("--C", "10"), ("--seed", "3"), ("--model", "shop")} <= pairs
    assert "--raw" in words
    assert "--method" not in words
