"""The k best leaves and explanations, as the classifier gives them."""

from __future__ import annotations

import pytest

from taxofit import load_model

ROWS = ["steel kettle", "blue dog tank", ""]


def ask(client, path, **body):
    answer = client.post(path, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_the_k_best_leaves_are_those_of_the_classifier(client, shop_model):
    told = ask(client, "/v1/topk", rows=ROWS, k=3)
    model = load_model(shop_model)
    best = model.predict_topk(ROWS, k=3)
    assert told["model_version"] == client.holder.current.version
    for row, candidates in enumerate(told["predictions"]):
        assert [each["label"] for each in candidates] == best.labels[row].tolist()
        assert [each["probability"] for each in candidates] == pytest.approx(
            best.probabilities[row].tolist()
        )
        assert [tuple(each["path"]) for each in candidates] == list(best.paths[row])


def test_more_leaves_than_there_are_is_all_of_them(client):
    (candidates,) = ask(client, "/v1/topk", rows=["kettle"], k=100)["predictions"]
    assert sorted(each["label"] for each in candidates) == ["Dogs", "Fish", "Kettles", "Mugs"]
    probabilities = [each["probability"] for each in candidates]
    assert probabilities == sorted(probabilities, reverse=True)
    assert sum(probabilities) == pytest.approx(1)


def test_an_integer_may_be_written_as_json_allows(client):
    assert ask(client, "/v1/topk", rows=["mug"], k=2.0) == ask(
        client, "/v1/topk", rows=["mug"], k=2
    )


def test_an_explanation_is_that_of_the_classifier(client, shop_model):
    told = ask(client, "/v1/explain", row="steel kettle", n_candidates=2, n_features=3)
    assert told.pop("model_version") == client.holder.current.version
    explained = load_model(shop_model).explain("steel kettle", n_candidates=2, n_features=3)
    assert told == explained.to_json()
    assert told["label"] == "Kettles"
    assert told["path"] == ["Home", "Kettles"]
    assert all(len(step["candidates"]) == 2 for step in told["steps"])


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/predict", {"rows": ["mug"], "min_confidence": -0.1}),
        ("/v1/predict", {"rows": ["mug"], "min_confidence": 1.1}),
        ("/v1/predict", {"rows": ["mug"], "min_confidence": "0.5"}),
        ("/v1/topk", {"rows": ["mug"], "k": 0}),
        ("/v1/topk", {"rows": ["mug"], "k": 101}),
        ("/v1/topk", {"rows": ["mug"], "k": "3"}),
        ("/v1/topk", {"rows": ["mug"], "k": 2.5}),
        ("/v1/explain", {"row": ["mug"]}),
        ("/v1/explain", {"row": "mug", "n_features": -1}),
        ("/v1/explain", {"row": "mug", "n_candidates": True}),
    ],
)
def test_what_makes_no_sense_is_422(client, path, body):
    assert client.post(path, json=body).status_code == 422
