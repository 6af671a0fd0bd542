"""Saved models come back as they were; damaged ones are refused with the reason."""

import json

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from taxofit import ModelError, Taxonomy, TaxonomyClassifier, load_model
from taxofit.datasets import make_taxonomy_classification
from taxofit.flattening import GlobalINF, LevelINF
from taxofit.model_store import _fingerprint


@pytest.fixture(scope="module")
def problem():
    return make_taxonomy_classification(
        400, depth=2, fan_out=3, n_features=150, n_inconsistent=0, random_state=2
    )


@pytest.fixture(params=["dense", "packed"])
def saved(request, problem, tmp_path):
    X = problem.X if request.param == "packed" else problem.X.toarray()
    clf = TaxonomyClassifier(problem.taxonomy, flattening=GlobalINF(psi=0.1), C=1.0)
    clf.fit(X, problem.y).save(tmp_path / "model")
    return clf, X, tmp_path / "model"


def test_model_comes_back_as_it_was(saved):
    clf, X, folder = saved
    again = load_model(folder)
    np.testing.assert_array_equal(again.predict(X), clf.predict(X))
    assert again.taxonomy_ == clf.taxonomy_
    assert again.original_taxonomy_ == clf.original_taxonomy_
    assert (again.C_, again.psi_, again.removed_) == (clf.C_, clf.psi_, clf.removed_)
    assert again.flattening == clf.flattening
    assert again.classes_.tolist() == clf.classes_.tolist()
    assert again.evidence_.label.tolist() == clf.evidence_.label.tolist()
    np.testing.assert_allclose(again.evidence_.objective, clf.evidence_.objective)
    label = clf.taxonomy_.leaves[3]
    np.testing.assert_array_equal(again.node_coef(label)[0], clf.node_coef(label)[0])


def test_text_model_predicts_from_texts_after_loading(tmp_path):
    texts, y = ["red apple", "green pear", "old oak", "tall elm"] * 4, ["a", "b", "c", "d"] * 4
    clf = TaxonomyClassifier(encoder="chars", C=10.0, flattening="lr").fit(texts, y)
    clf.save(tmp_path / "m")
    assert load_model(tmp_path / "m").predict(["an apple", "elms"]).tolist() == ["a", "d"]


def test_infinite_psi_of_a_level_survives(problem, tmp_path):
    clf = TaxonomyClassifier(problem.taxonomy, flattening=LevelINF(), C=1.0)
    clf.fit(problem.X, problem.y)
    clf.psi_ = (np.inf, 0.5)
    clf.save(tmp_path / "m")
    assert load_model(tmp_path / "m").psi_ == (np.inf, 0.5)


def test_saving_again_replaces_the_model_and_leaves_nothing_behind(saved):
    clf, _, folder = saved
    clf.save(folder)
    assert [path.name for path in folder.parent.iterdir()] == ["model"]


def test_folder_with_other_things_in_it_is_not_touched(saved, tmp_path):
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "dear.txt").write_text("Dear")
    with pytest.raises(ModelError, match="exists and is not a taxofit model"):
        saved[0].save(tmp_path / "letters")
    assert (tmp_path / "letters" / "dear.txt").read_text() == "Dear"


def test_labels_that_json_cannot_hold_are_refused_before_anything_is_written(tmp_path):
    y = np.empty(4, dtype=object)
    y[:] = [("a",), ("b",), ("a",), ("b",)]
    taxonomy = Taxonomy.from_labels([("a",), ("b",)])
    clf = TaxonomyClassifier(taxonomy, flattening="lr", C=1.0).fit(np.eye(4), y)
    with pytest.raises(ModelError, match=r"the label \('a',\) is a tuple and cannot be saved"):
        clf.save(tmp_path / "m")
    assert not list(tmp_path.iterdir())


def edit_manifest(folder, change):
    manifest = json.loads((folder / "manifest.json").read_text())
    change(manifest)
    (folder / "manifest.json").write_text(json.dumps(manifest))


def test_newer_format_says_to_upgrade(saved):
    edit_manifest(saved[2], lambda m: m.update(format_version=99))
    with pytest.raises(ModelError, match=r"in format 99; .* upgrade"):
        load_model(saved[2])


def test_foreign_and_missing_folders_are_named(tmp_path):
    with pytest.raises(ModelError, match=r"has no manifest\.json"):
        load_model(tmp_path / "nowhere")
    (tmp_path / "manifest.json").write_text('{"name": "a web app"}')
    with pytest.raises(ModelError, match="is not a taxofit manifest"):
        load_model(tmp_path)
    (tmp_path / "manifest.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ModelError, match="is damaged"):
        load_model(tmp_path)


def test_truncated_weights_are_noticed(saved):
    weights = saved[2] / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(ModelError, match="bytes, but was written with"):
        load_model(saved[2])


def test_missing_weights_are_noticed(saved):
    (saved[2] / "weights.safetensors").unlink()
    with pytest.raises(ModelError, match=r"weights\.safetensors is missing"):
        load_model(saved[2])


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m.pop("taxonomy"),
        lambda m: m.update(removed=[0]),
        lambda m: m.update(removed=[10**9]),
        lambda m: m["taxonomy"].update(parent=[1, 0]),
        lambda m: m["settings"].update(colour="red"),
        lambda m: m.update(weights="pickle"),
        lambda m: m["fitted"].update(n_features_in=7),
        lambda m: m.update(evidence=3),
    ],
)
def test_manifest_that_does_not_fit_is_a_model_error(saved, change):
    edit_manifest(saved[2], change)
    with pytest.raises(ModelError):
        load_model(saved[2])


def with_changed_array(problem, folder, name):
    """Save a model in which one array was changed and its checksum made right again."""
    clf = TaxonomyClassifier(problem.taxonomy, flattening="td-lr", C=1.0)
    clf.fit(problem.X, problem.y).save(folder)
    arrays = load_file(folder / "weights.safetensors")
    arrays[name] = arrays[name].copy()
    is_float = arrays[name].dtype.kind == "f"
    largest = np.inf if is_float else np.iinfo(arrays[name].dtype).max
    arrays[name][len(arrays[name]) // 2 :] = largest
    save_file(arrays, folder / "weights.safetensors")
    fingerprint = _fingerprint(folder / "weights.safetensors")
    edit_manifest(folder, lambda m: m["files"].update({"weights.safetensors": fingerprint}))


@pytest.mark.parametrize("name", ["start", "scale", "slope", "intercept"])
def test_arrays_that_point_outside_are_refused_even_with_a_right_checksum(problem, tmp_path, name):
    with_changed_array(problem, tmp_path / "m", name)
    with pytest.raises(ModelError, match="is damaged"):
        load_model(tmp_path / "m")


@pytest.mark.parametrize("name", ["code", "trend"])
def test_arrays_too_large_to_check_at_once_never_lead_outside(problem, tmp_path, name):
    with_changed_array(problem, tmp_path / "m", name)
    clf = load_model(tmp_path / "m")
    assert set(clf.predict(problem.X)) <= set(clf.classes_)
    assert clf.predict_proba(problem.X).shape == (len(problem.y), len(clf.classes_))
