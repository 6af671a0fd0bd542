"""The study of a fit against definitions written out row by row."""

from __future__ import annotations

import json

import numpy as np
import pytest

from taxofit import ModelError, Taxonomy, TaxonomyClassifier
from taxofit.datasets import make_shop_catalogue
from taxofit.flattening import PSI_GRID, GlobalINF
from taxofit.metrics import evaluate
from taxofit.study import STUDY_FILE, pack_study, read_study, study_fit, unpack_study


@pytest.fixture(scope="module")
def shop():
    return make_shop_catalogue(1200)


@pytest.fixture(scope="module")
def model(shop):
    return TaxonomyClassifier(shop.taxonomy, C=10.0, encoder="words").fit(shop.texts, shop.y)


@pytest.fixture(scope="module")
def study(model, shop):
    return study_fit(model, shop.texts, name="shop")


def walk(model, removed_labels):
    """Walk every validation row down the flattened taxonomy, one child at a time."""
    original = model.original_taxonomy_
    taxonomy = original.flatten(removed_labels)
    reached = []
    for scores in model.validation_.evidence.scores:
        label = taxonomy.root
        while taxonomy.children_of(label):
            label = max(taxonomy.children_of(label), key=lambda c: scores[original.node_of(c)])
        reached.append(label)
    return reached


def truth(model):
    return [model.original_taxonomy_.labels[leaf] for leaf in model.validation_.evidence.row_leaf]


@pytest.mark.parametrize("step", [0, 4, 15, 30])
def test_scores_of_a_threshold_are_those_of_walking_without_the_nodes_above_it(model, study, step):
    taxonomy, candidates = model.original_taxonomy_, study["candidates"]
    mean, deviation = candidates["mean"], candidates["deviation"]
    threshold = mean + PSI_GRID[step] * deviation
    gone = [
        taxonomy.labels[node]
        for node in np.flatnonzero(taxonomy.is_internal)
        if study["nodes"]["objective"][node] > threshold
    ]
    classes = [taxonomy.labels[leaf] for leaf in model.validation_.classes]
    expected = evaluate(truth(model), walk(model, gone), taxonomy, classes=classes)
    assert candidates["n_removed"][step] == len(gone)
    for score, value in expected.items():
        assert candidates[score][step] == pytest.approx(value), score


def test_the_fitted_choice_is_one_of_the_candidates_and_the_best(model, study):
    step = PSI_GRID.index(study["psi"])
    fitted = study["results"][-1]
    assert fitted["method"] == "global-inf"
    assert fitted["macro_f1"] == study["candidates"]["macro_f1"][step]
    assert fitted["macro_f1"] == max(study["candidates"]["macro_f1"])
    assert fitted["macro_f1"] == pytest.approx(model.validation_score_)
    assert [model.original_taxonomy_.labels[node] for node in study["nodes"]["removed"]] == list(
        model.removed_
    )


def test_a_confused_node_lists_where_its_rows_went(model, study):
    taxonomy = model.original_taxonomy_
    counts: dict[int, dict[int, int]] = {}
    for true, given in zip(truth(model), walk(model, []), strict=True):
        path, other = taxonomy.path_of(true), taxonomy.path_of(given)
        for level in range(len(path)):
            a = taxonomy.node_of(path[: level + 1])
            b = taxonomy.node_of(other[: min(level + 1, len(other))])
            if a != b:
                counts.setdefault(a, {}).setdefault(b, 0)
                counts[a][b] += 1
    listed = study["confusion"]["before"]
    assert set(listed) == {str(node) for node in counts}
    for node, rivals in listed.items():
        assert [n for _, n in rivals] == sorted(counts[int(node)].values(), reverse=True)[:4]
        assert all(counts[int(node)][other] == n for other, n in rivals)


def test_rows_found_under_a_node_are_counted_from_their_paths(model, study):
    taxonomy = model.original_taxonomy_
    found = dict.fromkeys(range(taxonomy.n_nodes), 0)
    for true, given in zip(truth(model), walk(model, model.removed_), strict=True):
        for node in range(1, taxonomy.n_nodes):
            under = taxonomy.leaves_under(taxonomy.labels[node])
            found[node] += true in under and given in under
    assert study["nodes"]["found_after"][1:] == [found[n] for n in range(1, taxonomy.n_nodes)]


def test_examples_are_validation_rows_with_their_texts(model, study, shop):
    walks = {"before": walk(model, []), "after": walk(model, model.removed_)}
    place = {int(row): i for i, row in enumerate(model.validation_.rows)}
    assert study["examples"]
    for text, row, leaf, before, after in study["examples"]:
        labels = model.original_taxonomy_.labels
        assert " ".join(shop.texts[row].split()).startswith(text.rstrip("…"))
        assert labels[leaf] == shop.y[row]
        assert labels[before] == walks["before"][place[row]]
        assert labels[after] == walks["after"][place[row]]


def test_deciding_features_have_the_largest_weights_of_their_node(model, study):
    names = model.encoder_.get_feature_names_out()
    for node, found in list(study["features"].items())[:10]:
        weights = model.node_coef(model.original_taxonomy_.labels[int(node)])[0]
        assert found["for"][0][0] == names[np.argmax(weights)]
        assert found["for"][0][1] == pytest.approx(weights.max(), rel=0.01)
        assert found["against"][0][0] == names[np.argmin(weights)]
    removed = {str(model.original_taxonomy_.node_of(label)) for label in model.removed_}
    assert not removed & study["features"].keys()


def test_a_study_is_plain_json_and_packs_to_the_same_bytes_twice(study):
    assert json.loads(json.dumps(study, allow_nan=False)) == unpack_study(pack_study(study))
    assert pack_study(study) == pack_study(study)


def test_numbers_and_other_strategies_can_be_studied_too():
    rng = np.random.default_rng(0)
    taxonomy = Taxonomy.from_paths([(top, f"{top}{k}") for top in "abc" for k in range(3)])
    y = np.array(taxonomy.leaves * 20)
    X = rng.normal(size=(len(y), 6)) + np.repeat(np.eye(9, 6) * 3, 1, axis=0)[np.arange(len(y)) % 9]
    for flattening in ("lr", "td-lr", "level-inf", "tlf", GlobalINF(psi=0.33)):
        model = TaxonomyClassifier(taxonomy, flattening=flattening).fit(X, y)
        study = study_fit(model, X)
        assert study["examples"][0][0] is None
        assert study["features"]["4"]["for"][0][0].startswith("x")
        assert study["method"] in study["titles"]
        assert json.dumps(study, allow_nan=False)


def test_a_model_that_searches_is_judged_by_its_search(shop):
    model = TaxonomyClassifier(
        shop.taxonomy, flattening="td-lr", C=1.0, search="beam", gamma=0.5, encoder="words"
    )
    model.fit(shop.texts, shop.y)
    study = study_fit(model, shop.texts)
    flat, original, fitted = study["results"]
    assert (study["method"], fitted["method"]) == ("td-lr+beam", "td-lr+beam")
    assert study["titles"]["td-lr+beam"] == "beam search"
    assert fitted["macro_f1"] == pytest.approx(model.validation_score_)
    assert fitted["macro_f1"] != original["macro_f1"]
    assert flat["n_removed"] == study["data"]["n_internal"]


def test_without_validation_rows_there_is_nothing_to_study(shop):
    model = TaxonomyClassifier(shop.taxonomy, flattening="td-lr", C=1.0, encoder="words")
    model.fit(shop.texts[:600], shop.y[:600])
    with pytest.raises(ModelError, match="no rows were held out"):
        study_fit(model)


def test_a_model_without_a_study_says_why(model, shop, tmp_path):
    model.save(tmp_path / "model")
    with pytest.raises(ModelError, match="saved from Python or by an older version"):
        read_study(tmp_path / "model")
    fixed = TaxonomyClassifier(shop.taxonomy, flattening="td-lr", C=1.0, encoder="words")
    fixed.fit(shop.texts[:600], shop.y[:600]).save(tmp_path / "fixed")
    with pytest.raises(ModelError, match="fit with --C auto or --method global-inf"):
        read_study(tmp_path / "fixed")


@pytest.mark.parametrize("damage", ["cut", "missing", "bytes"])
def test_a_damaged_study_is_said_to_be_damaged(model, study, tmp_path, damage):
    from taxofit.model_store import load_model, save_model

    folder = tmp_path / "model"
    save_model(model, folder, attachments={STUDY_FILE: pack_study(study)})
    assert read_study(folder) == unpack_study(pack_study(study))
    file = folder / STUDY_FILE
    if damage == "missing":
        file.unlink()
    else:
        content = file.read_bytes()
        file.write_bytes(content[:-9] if damage == "cut" else content[:50] + b"?" + content[51:])
    with pytest.raises(ModelError, match=r"missing|damaged"):
        read_study(folder)
    assert load_model(folder).removed_ == model.removed_  # the model itself is whole


@pytest.mark.parametrize(
    "packed", [b"", b"no gzip", pack_study({"kind": "other"}), pack_study({"kind": "study"})]
)
def test_what_is_no_study_is_a_model_error(packed):
    with pytest.raises(ModelError):
        unpack_study(packed)
