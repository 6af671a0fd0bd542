"""The page as text: what is in it, what can never be markup, and what it forbids."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import pytest
from tests.study_samples import (
    HOSTILE,
    N_LARGE,
    hostile_study,
    large_study,
    other_study,
    shop_study,
)

from taxofit import DataError
from taxofit.flattening import GlobalINF
from taxofit.report import render_report, write_report
from taxofit.report.headline import SCORES as SHOWN
from taxofit.report.headline import run_headline, study_headline
from taxofit.report.page import embeddable_json

pytest.importorskip("plotly")

SCORES = ("micro_f1", "macro_f1", "hierarchical_f1", "tree_error")


class Page(HTMLParser):
    """Collects scripts, elements and attributes as a browser would see them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self._script: dict[str, str | None] | None = None
        self._text = ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag == "script":
            self._script, self._text = dict(attrs), ""

    def handle_endtag(self, tag):
        if tag == "script":
            self.scripts.append((self._script or {}, self._text))
            self._script = None

    def handle_data(self, data):
        if self._script is not None:
            self._text += data

    def data(self):
        (text,) = (text for attrs, text in self.scripts if attrs.get("id") == "data")
        return json.loads(text)


@pytest.fixture(scope="module")
def study():
    return shop_study()[0]


@pytest.fixture(scope="module")
def page(study):
    return Page(render_report(study))


@pytest.fixture(scope="module")
def results():
    """Return the results of a reproduction, as small as they can be."""
    scores = {score: {"mean": 0.5, "std": 0.0} for score in SCORES}
    against = {"sign_p_value": 0.2, "wilcoxon_p_value": 0.01}
    return {
        "dataset": "toy",
        "results": [{"method": "td-lr", "seed": 0}],
        "summary": {"td-lr": scores, "global-inf": scores, "lr": scores},
        "significance": {
            "run": 0,
            "methods": ["td-lr", "lr"],
            "sign_p_values": [[1.0, 0.2], [0.2, 1.0]],
            "wilcoxon_p_values": [[1.0, 0.01], [0.01, 1.0]],
            "global_inf_against": {"td-lr": [against]},
        },
        "data": {"n_test": 7, "encoding": "<raw>"},
        "protocol": {"n_runs": 1, "seed": 0, "Cs": [0.1, 1.0]},
        "versions": {"taxofit": "0"},
        "notes": ["<i>a note</i>"],
    }


def test_the_policy_names_the_hash_of_every_script_and_no_other(page):
    (policy,) = (a["content"] for t, a in page.tags if t == "meta" and "http-equiv" in a)
    named = set(re.findall(r"'sha256-([^']+)'", policy))
    run = [text for attrs, text in page.scripts if "type" not in attrs]
    assert named == {base64.b64encode(hashlib.sha256(t.encode()).digest()).decode() for t in run}
    assert len(run) == 3
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe-eval" not in policy
    assert "http" not in policy


def test_the_page_points_to_nothing_outside_itself(page):
    for tag, attributes in page.tags:
        assert tag not in {"link", "iframe", "img", "object", "form"}
        assert "src" not in attributes
        assert str(attributes.get("href", "#")).startswith("#")
        assert not any(name.startswith("on") for name in attributes)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"flattening": "td-lr", "C": "auto"}, "walks down the taxonomy as it was given"),
        ({"flattening": "level-inf", "C": 1.0}, "fitted with Level-INF; the slider shows"),
        ({"flattening": GlobalINF(psi=0.33), "C": 1.0}, "fitted with ψ = 0.33"),
        ({"flattening": "tlf", "C": 1.0, "search": "beam"}, "Repaired, beam search"),
    ],
)
def test_every_way_to_fit_has_a_page(settings, said):
    assert said in render_report(other_study(**settings))


def test_labels_are_never_markup():
    text = render_report(hostile_study())
    page = Page(text)
    assert len(page.scripts) == 4
    assert [tag for tag, _ in page.tags].count("img") == 0
    assert [tag for tag, _ in page.tags].count("svg") == 0
    assert HOSTILE[0] not in text
    assert HOSTILE[1] not in text
    names = page.data()["study"]["nodes"]["name"]
    assert HOSTILE[0] in names  # shown as it is, as text


def test_figures_show_labels_as_text():
    drawn = json.dumps(Page(render_report(hostile_study())).data()["figures"])
    assert "<img" not in drawn
    assert "<script" not in drawn
    assert "<a " not in drawn


def test_embedded_json_has_no_character_of_markup_and_means_the_same():
    value = {"label": "".join(HOSTILE[:5]), "n": [1, 2.5, None, True]}
    text = embeddable_json(value)
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text) == value


def test_the_same_study_gives_the_same_page(study):
    assert render_report(study) == render_report(json.loads(json.dumps(study)))


def test_the_headline_says_what_went_and_what_it_brought(study):
    removed, brought, chance = study_headline(study)
    fitted, original = study["results"][-1], study["results"][1]
    assert removed.startswith(f"{fitted['n_removed']} of {study['data']['n_internal']} inner")
    assert f"{100 * original['macro_f1']:.2f} %" in brought
    assert f"{100 * fitted['macro_f1']:.2f} %" in brought
    assert "sign test over rows p" in chance


def test_scores_are_rounded_as_scripts_round_them():
    share, steps = SHOWN["micro_f1"], SHOWN["tree_error"]
    assert (share.show(1146 / 1600), share.show(0.5), share.show(0)) == (
        "71.63 %",
        "50.00 %",
        "0.00 %",
    )
    assert (share.show_change(-0.00125), share.show_change(0.00125)) == ("−0.13", "+0.13")
    assert (steps.show(1.0625), steps.show_change(-0.0625)) == ("1.063", "−0.063")


def test_the_headline_owns_up_where_flat_is_better(study):
    flat, *others = study["results"]
    better = {**study, "results": [{**flat, "macro_f1": 0.999}, *others]}
    assert "it would be higher still: 99.90 %" in study_headline(better)[1]
    worse = {**study, "results": [{**flat, "macro_f1": 0.001}, *others]}
    assert "it would be 0.10 %" in study_headline(worse)[1]


@pytest.mark.parametrize(
    ("sign", "wilcoxon", "said"),
    [
        (0.3, 0.2, "Chance alone could explain"),
        (0.3, 0.01, "One of two tests"),
        (0.01, 0.0001, "The difference is larger than chance"),
    ],
)
def test_significance_is_told_in_words(study, sign, wilcoxon, said):
    rival = {**study["against"]["td-lr"], "sign_p_value": sign, "wilcoxon_p_value": wilcoxon}
    assert said in study_headline({**study, "against": {"td-lr": rival}})[2]


def test_a_directory_of_seventeen_thousand_nodes_stays_below_fifteen_megabytes(tmp_path):
    study = large_study()
    assert study["data"]["n_nodes"] == N_LARGE
    assert write_report(study, tmp_path / "report.html").stat().st_size < 15e6


def test_a_reproduction_has_tables_and_p_values_but_no_explorer(results):
    page = Page(render_report(results))
    ids = {attributes.get("id") for _, attributes in page.tags}
    assert {"chart-p-values-rows", "chart-p-values-classes"} <= ids
    assert "tree" not in ids
    assert page.data()["study"] is None
    assert "i" not in {tag for tag, _ in page.tags}
    assert run_headline(results)[0] == "Repair changes macro-F1 by +0.00 points."


def test_results_that_were_changed_are_a_data_error(results):
    broken = {**results, "summary": {"td-lr": {"micro_f1": 1}}}
    with pytest.raises(DataError, match="the results cannot be shown: "):
        render_report(broken)


def test_a_folder_or_a_missing_folder_is_one_clear_error(study, tmp_path):
    with pytest.raises(DataError, match="is a folder"):
        write_report(study, tmp_path)
    with pytest.raises(DataError, match="does not exist"):
        write_report(study, tmp_path / "nowhere" / "report.html")


def test_without_plotly_the_error_names_the_extra(study, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    with pytest.raises(DataError, match=r"pip install 'taxofit\[report\]'"):
        render_report(study)
