"""What the service answers is what the classifier says."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from taxofit import Taxonomy, TaxonomyClassifier, load_model
from taxofit.service.schemas import Prediction
from taxofit.workflow.options import FitOptions
from taxofit.workflow.training import fit_file


def predict(client, rows, **asked):
    answer = client.post("/v1/predict", json={"rows": rows, **asked})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_predictions_are_those_of_the_classifier_in_order(client, shop_model):
    rows = [{"title": f"{word} {kind}", "Made of": "steel"} for word in ("old", "blue")
            for kind in ("kettle", "dog", "tank", "mug")]  # fmt: skip
    answer = predict(client, rows)
    model = load_model(shop_model)
    labels, scores = model.predict_with_score([f"{row['title']} steel" for row in rows])
    told = answer["predictions"]
    assert [each["label"] for each in told] == labels.tolist()
    assert [each["probability"] for each in told] == pytest.approx(scores.tolist())
    assert [tuple(each["path"]) for each in told] == [
        model.original_taxonomy_.path_of(label) for label in labels
    ]
    assert answer["model_version"] == client.get("/v1/model").json()["version"]


def test_an_unsure_row_gets_a_category_above_the_leaf_or_none(client, shop_model):
    rows = ["kettle mug", "kettle dog", "steel kettle"]
    model = load_model(shop_model)
    proba = dict(zip(model.classes_, model.predict_proba(rows)[0], strict=True))
    leaf, home = max(proba["Kettles"], proba["Mugs"]), proba["Kettles"] + proba["Mugs"]
    unsure, *_ = predict(client, rows, min_confidence=(leaf + home) / 2)["predictions"]
    assert (unsure["label"], unsure["path"]) == ("Home", ["Home"])
    assert unsure["probability"] == pytest.approx(home)
    _, nothing, _ = predict(client, rows, min_confidence=1)["predictions"]
    assert nothing == {"label": None, "path": [], "probability": 1}
    leaves = predict(client, rows, min_confidence=0)["predictions"]
    assert [each["label"] for each in leaves] == model.predict(rows).tolist()
    plain = predict(client, rows)
    assert plain == predict(client, rows, min_confidence=None)


def test_a_plain_text_is_a_row_of_a_model_of_texts(client):
    rows = ["steel kettle blue", {"title": "steel kettle", "Made of": "blue"}]
    first, second = predict(client, rows)["predictions"]
    assert first == second


def test_null_is_an_empty_cell_of_text(client):
    rows = [{"title": "steel kettle", "Made of": None}, {"title": "steel kettle", "Made of": ""}]
    first, second = predict(client, rows)["predictions"]
    assert first == second


def test_columns_that_the_model_does_not_read_are_ignored(client):
    row = {"title": "steel kettle", "Made of": "blue"}
    plain, extended = predict(client, [row, {**row, "id": 7, "stock": None}])["predictions"]
    assert plain == extended


def test_rows_of_numbers_are_lists_or_objects_as_the_model_reads_them(client_of, tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 3)), np.repeat([10, 11, 20], 10)
    X[np.arange(30), y % 3] += 4
    taxonomy = Taxonomy.from_paths([(1, 10), (1, 11), (2, 20)])
    model = TaxonomyClassifier(taxonomy, flattening="td-lr", C=1.0).fit(X, y)
    model.save(tmp_path / "numbers")
    client = client_of(tmp_path / "numbers")
    told = predict(client, X.tolist())["predictions"]
    assert [each["label"] for each in told] == model.predict(X).tolist()
    assert told[0]["path"] == [1, 10]
    assert client.post("/v1/predict", json={"rows": [[1.0, 2.0]]}).status_code == 422


def test_columns_of_numbers_are_read_by_name(client_of, tmp_path):
    file = tmp_path / "rows.csv"
    lines = [f"{x},{9 - x},{'a > low' if x < 5 else 'b > high'}" for x in range(10)] * 4
    file.write_text("\n".join(["width,height,path", *lines]))
    options = FitOptions(numeric=("width", "height"), label_path="path", method="td-lr", C="10")
    fit_file(str(file), str(tmp_path / "model"), options)
    client = client_of(tmp_path / "model")
    rows = [{"height": 1, "width": 8.5}, {"width": 0.0, "height": 9}]
    assert [each["label"] for each in predict(client, rows)["predictions"]] == ["high", "low"]
    wrong = client.post("/v1/predict", json={"rows": [{"width": "wide", "height": 1}]})
    assert wrong.status_code == 422
    assert wrong.json()["errors"][0]["pointer"] == "#/rows/0/width"


def test_svmlight_rows_are_objects_of_feature_ids(client_of, tmp_path):
    rng = np.random.default_rng(0)
    lines = []
    for row in range(60):
        leaf = 1 + row % 3
        ids = sorted({leaf * 10, 40 + int(rng.integers(5)), leaf * 10 + 1 + int(rng.integers(2))})
        lines.append(f"{leaf} " + " ".join(f"{i}:{1 + int(rng.integers(3))}" for i in ids))
    (tmp_path / "rows.svm").write_text("\n".join(lines) + "\n")
    (tmp_path / "tree.txt").write_text("0 7\n0 8\n7 1\n7 2\n8 3\n")
    options = FitOptions(hierarchy=str(tmp_path / "tree.txt"), method="td-lr", C="10")
    fit_file(str(tmp_path / "rows.svm"), str(tmp_path / "model"), options)
    client = client_of(tmp_path / "model")
    features = [{"10": 2, "41": 1}, {"20": 1.0, "999999": 3}, {"31": 2}, {}]
    told = predict(client, features)["predictions"]
    model = client.holder.current
    dense = np.zeros((4, len(model.rows.source.feature_ids)))
    for row, pairs in enumerate(features):
        for place, feature in enumerate(model.rows.source.feature_ids):
            dense[row, place] = pairs.get(str(feature), 0)
    expected = model.classifier.predict(sparse.csr_matrix(dense))
    assert [each["label"] for each in told] == expected.tolist()
    assert [each["label"] for each in told][:3] == [1, 2, 3]
    assert client.post("/v1/predict", json={"rows": [{"10": -1}]}).status_code == 422


def test_a_sum_of_probabilities_that_is_a_little_off_is_one():
    prediction = Prediction(label="a", path=["a"], probability=1 + 2**-52)
    assert prediction.probability == 1


def test_the_model_is_described(client):
    told = client.get("/v1/model").json()
    assert told["name"] == "shop"
    assert told["columns"] == ["title", "Made of"]
    assert (told["leaves"], told["nodes"], told["method"], told["C"]) == (4, 7, "td-lr", 10)


def test_the_model_is_ready_and_the_process_live(client):
    assert client.get("/v1/health/live").json() == {"status": "live"}
    ready = client.get("/v1/health/ready").json()
    assert (ready["status"], ready["reload_error"]) == ("ready", None)


def test_metrics_count_requests_errors_rows_and_name_the_model(client):
    predict(client, ["kettle", "mug", "dog"])
    client.post("/v1/predict", json={"rows": []})
    client.get("/nowhere/42")
    answer = client.get("/v1/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = answer.text.splitlines()
    assert 'taxofit_requests_total{route="/v1/predict",status="200"} 1.0' in lines
    assert 'taxofit_requests_total{route="/v1/predict",status="422"} 1.0' in lines
    assert 'taxofit_requests_total{route="other",status="404"} 1.0' in lines
    assert "taxofit_batch_rows_sum 3.0" in lines
    assert 'taxofit_request_seconds_count{route="/v1/predict"} 2.0' in lines
    version = client.get("/v1/model").json()["version"]
    assert f'taxofit_model_info{{name="shop",version="{version}"}} 1.0' in lines
