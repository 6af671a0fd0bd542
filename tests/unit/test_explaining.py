"""The command that explains: which row it asks about, and how the answer looks."""

from __future__ import annotations

import json
import warnings
from dataclasses import asdict, dataclass

import numpy as np
import pytest

from taxofit import cli, load_model
from taxofit.terminal import show_explanation
from taxofit.workflow import explaining
from taxofit.workflow.options import FitOptions
from taxofit.workflow.training import fit_file


@dataclass
class Share:
    name: str
    value: float
    weight: float
    contribution: float


@dataclass
class Candidate:
    label: str
    score: float
    probability: float
    features: tuple[Share, ...]


@dataclass
class Step:
    label: str
    candidates: tuple[Candidate, ...]


@dataclass
class Explanation:
    label: str
    path: tuple[str, ...]
    probability: float
    steps: tuple[Step, ...]

    def to_json(self):
        return asdict(self)


KETTLE = Explanation(
    "Kettles",
    ("Home", "Kettles"),
    0.97,
    (
        Step("Home", (
            Candidate("Home", 2.31, 0.92, (Share("kettle", 0.7, 1.7, 1.2),)),
            Candidate("Pets", -1.1, 0.08, (Share("kettle", 0.7, -0.9, -0.6),)),
        )),
        Step("Kettles", (Candidate("Kettles", 3.0, 1.0, (Share("[red]\x1b[2J", 1.0, 1.0, 1.0),)),)),
    ),
)  # fmt: skip


@pytest.fixture(autouse=True)
def _warnings_are_shown_as_before(monkeypatch):
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)


@pytest.fixture
def asked(monkeypatch):
    """Return what the classifier is asked to explain; the answer is always the kettle."""
    questions = []

    class Explaining:
        def __init__(self, folder):
            self.n_features_in_ = load_model(folder).n_features_in_

        def explain(self, x, *, n_candidates, n_features):
            questions.append((x, n_candidates, n_features))
            return KETTLE

    monkeypatch.setattr(explaining, "load_model", Explaining)
    return questions


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


def test_steps_candidates_and_words_are_shown(capsys):
    show_explanation(KETTLE, "electric kettle")
    shown = capsys.readouterr().out
    assert "→ Home > Kettles  97.0%" in shown
    for said in ("▶ Home", "+2.31", "92.0%", "kettle +1.20", "Pets", "-1.10", "kettle −0.60"):
        assert said in shown
    assert "[red]�[2J +1.00" in shown


def test_a_text_is_explained_as_it_is(shop, asked, capsys):
    assert cli.main(["explain", str(shop / "texts"), "electric kettle", "--candidates", "3"]) == 0
    assert asked == [("electric kettle", 3, 10)]
    assert "electric kettle" in capsys.readouterr().out


def test_json_is_what_the_explanation_says_of_itself(shop, asked, capsys):
    assert cli.main(["explain", str(shop / "texts"), "electric kettle", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["steps"][1]["candidates"][0]["label"] == "Kettles"
    assert len(asked) == 1


def test_a_row_of_a_file_is_found_by_its_number(shop, asked):
    arguments = ["explain", str(shop / "texts"), "--row", "5", str(shop / "shop.csv")]
    assert cli.main(arguments) == 0
    assert asked[0][0] == "blue fish"
    arguments = ["explain", str(shop / "numbers"), "--row", "6", str(shop / "shop.csv")]
    assert cli.main(arguments) == 0
    np.testing.assert_array_equal(asked[1][0], [1.0])


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
