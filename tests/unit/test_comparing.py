from __future__ import annotations

import csv
import io
import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from taxofit import TaxonomyClassifier, load_model
from taxofit.datasets import make_shop_catalogue, read_hierarchy
from taxofit.errors import DataError, ModelError
from taxofit.metrics import evaluate
from taxofit.workflow.comparing import compare_models, compare_taxonomies
from taxofit.workflow.flattening_file import flatten_file, taxonomy_text
from taxofit.workflow.options import FitOptions
from taxofit.workflow.scoring import Predictions, difference
from taxofit.workflow.three_ways import ways_on_test_rows, ways_on_validation_rows
from taxofit.workflow.training import fit_file

OPTIONS = FitOptions(features="words", C="10")


@pytest.fixture(scope="module")
def shop():
    return make_shop_catalogue(n_rows=900, random_state=1)


@pytest.fixture(scope="module")
def folder(shop, tmp_path_factory):
    """Keep the catalogue as CSV with two models: repaired, and as it is."""
    folder = tmp_path_factory.mktemp("shop")
    shop.to_csv(folder / "shop.csv")
    file = str(folder / "shop.csv")
    fit_file(file, str(folder / "repaired"), OPTIONS)
    fit_file(file, str(folder / "td"), replace(OPTIONS, method="td-lr"))
    return folder


@pytest.fixture(scope="module")
def fitted(shop):
    train = shop.dataset.subset(np.arange(600))
    return TaxonomyClassifier(train.taxonomy, encoder="words", C=10.0).fit(train.X, train.y)


class TestThreeWays:
    def test_validation_scores_are_those_of_walking_row_by_row(self, fitted):
        ways = ways_on_validation_rows(fitted)
        taxonomy, evidence = fitted.original_taxonomy_, fitted.validation_.evidence
        shapes = {
            "flat": taxonomy.flatten(taxonomy.internal_nodes),
            "original": taxonomy,
            "repaired": fitted.taxonomy_,
        }
        assert [way.name for way in ways.ways] == list(shapes)
        for way in ways.ways:
            shape = shapes[way.name]
            predicted = []
            for scores in evidence.scores:
                label = shape.root
                while shape.children_of(label):
                    label = max(shape.children_of(label), key=lambda c: scores[taxonomy.node_of(c)])
                predicted.append(label)
            true = [taxonomy.labels[leaf] for leaf in evidence.row_leaf]
            classes = [taxonomy.labels[leaf] for leaf in fitted.validation_.classes]
            assert way.scores == pytest.approx(evaluate(true, predicted, taxonomy, classes=classes))
            assert way.n_nodes == shape.n_nodes
        repaired = ways.ways[-1].scores["macro_f1"]
        assert repaired == pytest.approx(fitted.validation_score_)

    def test_test_scores_are_those_of_the_methods_fitted_on_their_own(self, shop, fitted):
        train, test = (shop.dataset.subset(s) for s in (slice(0, 600), slice(600, 900)))
        ways = ways_on_test_rows(fitted, train, test)
        for way, method in zip(ways.ways, ("lr", "td-lr", "global-inf"), strict=True):
            alone = TaxonomyClassifier(
                train.taxonomy, flattening=method, encoder="words", C=10.0
            ).fit(train.X, train.y)
            expected = evaluate(
                test.y, alone.predict(test.X), train.taxonomy, classes=alone.classes_
            )
            assert way.scores == pytest.approx(expected)

    def test_a_way_that_is_another_is_shown_once(self, shop):
        data = shop.dataset.subset(np.arange(200))
        kept = TaxonomyClassifier(data.taxonomy, flattening="td-lr", encoder="words")
        names = [way.name for way in ways_on_validation_rows(kept.fit(data.X, data.y)).ways]
        assert names == ["flat", "original"]


class TestModels:
    def test_both_are_scored_and_tested_on_the_same_rows(self, folder):
        report = compare_models(
            str(folder / "repaired"), str(folder / "td"), str(folder / "shop.csv")
        )
        assert report.systems[0].n_nodes < report.systems[1].n_nodes
        with (folder / "shop.csv").open(encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        right = []
        for name in ("repaired", "td"):
            model = load_model(folder / name)
            texts = [f"{row['title']} {row['description']}" for row in rows]
            paths = [
                " > ".join(model.original_taxonomy_.path_of(label))
                for label in model.predict(texts)
            ]
            right.append(
                np.array([p == row["category"] for p, row in zip(paths, rows, strict=True)])
            )
        first, second = right
        (found,) = report.differences
        assert found.n_only_second == int((first & ~second).sum())
        assert found.n_only_first == int((second & ~first).sum())
        n = found.n_only_first + found.n_only_second
        p = stats.binomtest(found.n_only_first, n).pvalue if n else 1.0
        assert found.sign_p == pytest.approx(p)
        assert report.systems[0].scores["micro_f1"] == pytest.approx(first.mean())
        json.dumps(report.to_json())

    def test_labels_of_different_taxonomies_are_matched_by_the_rows(self, shop):
        taxonomy = shop.dataset.taxonomy
        truth = taxonomy.leaves[:4]
        flat = taxonomy.flatten(taxonomy.internal_nodes)
        said = [truth[0], truth[1], truth[2], taxonomy.leaves[9]]
        one = Predictions(truth, said, (), taxonomy)
        other = Predictions(truth, [truth[0], *said[1:3], flat.leaves[8]], (), flat)
        assert difference(one, other).sign_p == 1.0
        assert difference(one, other).wilcoxon_p == 1.0

    def test_models_that_read_other_rows_are_not_compared(self, shop):
        taxonomy = shop.dataset.taxonomy
        labels = taxonomy.leaves
        few = Predictions(labels[:2], labels[:2], (), taxonomy)
        with pytest.raises(DataError, match="one reads 3 rows of this file and the other 2"):
            difference(Predictions(labels[:3], labels[:3], (), taxonomy), few)
        merged = Predictions((labels[0],) * 2, labels[:2], (), taxonomy)
        with pytest.raises(DataError, match="do not have the same leaves"):
            difference(few, merged)


class TestTaxonomies:
    def test_each_is_fitted_to_the_same_rows_and_tested_on_the_others(self, folder, shop):
        file, out = str(folder / "shop.csv"), str(folder / "mine.tsv")
        report = flatten_file(file, out, OPTIONS)
        assert read_hierarchy(out) == load_model(folder / "repaired").taxonomy_
        assert report.fit.n_nodes_kept < report.fit.n_nodes
        found = compare_taxonomies(
            str(folder / "repaired"), file, ["original", out, "repaired", "flat"], train=file
        )
        assert "a random quarter" in found.notes[0]
        scores = {system.name: system.scores for system in found.systems}
        assert scores[out] == scores["repaired"]
        assert found.n_rows == round(0.25 * shop.dataset.n_rows)
        order = np.random.default_rng(0).permutation(shop.dataset.n_rows)
        test, train = (shop.dataset.subset(np.sort(o)) for o in np.split(order, [found.n_rows]))
        for name, method in (("original", "td-lr"), ("flat", "lr")):
            alone = TaxonomyClassifier(
                train.taxonomy, flattening=method, encoder="words", C=10.0
            ).fit(train.X, train.y)
            expected = evaluate(
                test.y, alone.predict(test.X), train.taxonomy, classes=train.y.tolist()
            )
            assert scores[name] == pytest.approx(expected)

    def test_a_single_one_is_compared_with_the_original(self, folder):
        file = str(folder / "shop.csv")
        found = compare_taxonomies(str(folder / "td"), file, ["flat"])
        assert [system.name for system in found.systems] == ["original", "flat"]

    def test_a_taxonomy_without_a_label_of_the_rows_is_refused(self, folder):
        (folder / "other.txt").write_text("a b\na c\n")
        file = str(folder / "shop.csv")
        with pytest.raises(DataError, match="is not one of its leaves, but rows have it"):
            compare_taxonomies(str(folder / "td"), file, [str(folder / "other.txt")])
        with pytest.raises(DataError, match=r"or a file, but there is no 'absent\.txt'"):
            compare_taxonomies(str(folder / "td"), file, ["absent.txt"])

    def test_training_rows_that_are_gone_are_asked_for(self, folder):
        with pytest.raises(ModelError, match="name their file with --train"):
            compare_taxonomies(
                str(folder / "td"), str(folder / "shop.csv"), ["flat"], train="absent.csv"
            )


def test_every_form_of_a_taxonomy_holds_all_of_it(shop):
    original = shop.dataset.taxonomy
    repaired = original.flatten(shop.inconsistent)
    rows = list(csv.DictReader(io.StringIO(taxonomy_text(repaired, original, (), "paths"))))
    assert [tuple(row["path"].split(" > ")) for row in rows] == repaired.to_paths()
    before = {path[-1]: " > ".join(path) for path in original.to_paths()}
    assert all(row["original_path"] == before[row["path"].split(" > ")[-1]] for row in rows)
    nodes = json.loads(taxonomy_text(repaired, original, (), "json"))["nodes"]
    parents = {node["label"]: node["parent"] for node in nodes}
    assert {(parents[child], child) for child in parents if parents[child]} == set(
        repaired.to_edges()
    )


def test_edges_with_odd_names_come_back(tmp_path):
    from taxofit import Taxonomy

    odd = Taxonomy.from_edges([("#1", 'say "hi"'), ("#1", "a\tb"), ('say "hi"', "x > y")])
    file = tmp_path / "odd.tsv"
    file.write_text(taxonomy_text(odd, odd, (), "edges"), encoding="utf-8")
    assert read_hierarchy(file) == odd


@pytest.mark.parametrize(
    ("out", "said"),
    [("", "is a folder"), ("shop.csv", "is the file to read"), ("no/where.csv", "does not exist")],
)
def test_a_place_that_cannot_be_written_is_refused_before_any_work(folder, out, said):
    with pytest.raises(DataError, match=said):
        flatten_file(str(folder / "shop.csv"), str(folder / out), OPTIONS, form="paths")
