"""The command that explains: which row it asks about, and how the answer looks."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest

from taxofit import cli, load_model
from taxofit.predictions import Candidate, Explanation, FeatureShare, Step
from taxofit.terminal import show_explanation
from taxofit.workflow.options import FitOptions
from taxofit.workflow.training import fit_file


@pytest.fixture(autouse=True)
def _warnings_are_shown_as_before(monkeypatch):
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shop")
    rows = [f"{c} {word},1,{word}" for word in ("kettle", "fish") for c in ("red", "blue", "green")]
    (folder / "shop.csv").write_text("\n".join(["title,size,kind", *rows]))
    for name, option in (("texts", "text"), ("numbers", "numeric")):
        column = ("title" if option == "text" else "size",)
        options = FitOptions(**{option: column}, label_path="kind", method="lr", C="1")
        fit_file(str(folder / "shop.csv"), str(folder / name), options)
    return folder


def explained(*arguments, capsys):
    assert cli.main(["explain", *map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_steps_candidates_and_words_are_shown(shop, capsys):
    told = load_model(shop / "texts").explain("electric kettle")
    assert cli.main(["explain", str(shop / "texts"), "electric kettle"]) == 0
    shown = capsys.readouterr().out
    assert "electric kettle" in shown
    assert f"→ {' > '.join(told.path)}  {told.probability:.1%}" in shown
    for step in told.steps:
        assert f"▶ {step.label}" in shown
        for candidate in step.candidates:
            (share,) = candidate.features  # "electric" was in no row of training
            sign = "−" if share.contribution < 0 else "+"
            assert f"kettle {sign}{abs(share.contribution):.2f}" in shown
            assert f"{candidate.score:+.2f}" in shown
            assert f"{candidate.probability:.1%}" in shown


def test_names_do_not_steer_the_terminal(capsys):
    share = FeatureShare("[red]\x1b[2J", value=1.0, weight=1.0, contribution=1.0)
    candidate = Candidate("Kettles", score=3.0, probability=1.0, features=(share,))
    path = ("Home", "Kettles")
    show_explanation(Explanation("Kettles", path, 1.0, (Step("Kettles", (candidate,)),)), "kettle")
    assert "[red]�[2J +1.00" in capsys.readouterr().out


def test_json_is_what_the_classifier_says(shop, capsys):
    arguments = ("electric kettle", "--candidates", "1", "--features", "3")
    found = explained(shop / "texts", *arguments, capsys=capsys)
    told = load_model(shop / "texts").explain("electric kettle", n_candidates=1, n_features=3)
    assert found == json.loads(json.dumps(told.to_json()))
    assert all(len(step["candidates"]) == 1 for step in found["steps"])


def test_a_row_of_a_file_is_found_by_its_number(shop, capsys):
    row = ("--row", "5", shop / "shop.csv")
    found = explained(shop / "texts", *row, capsys=capsys)
    assert found == explained(shop / "texts", "blue fish", capsys=capsys)
    assert found["label"] == "fish"
    row = ("--row", "6", shop / "shop.csv")
    found = explained(shop / "numbers", *row, capsys=capsys)
    told = load_model(shop / "numbers").explain(np.array([1.0]))
    assert found == json.loads(json.dumps(told.to_json()))


@pytest.mark.parametrize(
    ("model", "arguments", "said"),
    [
        ("texts", ["--row", "7", "shop.csv"], "has 6 rows; there is no row 7"),
        ("texts", [" "], "there is no text"),
        ("numbers", ["electric kettle"], "reads rows of numbers"),
    ],
)
def test_what_cannot_be_explained_is_one_line(shop, capsys, monkeypatch, model, arguments, said):
    monkeypatch.chdir(shop)
    assert cli.main(["explain", model, *arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line
