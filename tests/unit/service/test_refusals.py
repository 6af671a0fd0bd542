"""What the service refuses, and how it says so: RFC 9457 problems, never a traceback."""

from __future__ import annotations

import json

import pytest

JSON = {"content-type": "application/json"}


def problem(answer, status):
    """Assert a problem of this status; return it."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    told = answer.json()
    assert told["status"] == status
    assert told["title"]
    assert told["detail"]
    assert "Traceback" not in answer.text
    return told


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 422),
        (b"{", 400),
        (b"\xff\xfe", 400),
        (b"[" * 100_000, 400),
        (b"1" * 5000, 400),
        (b"null", 422),
        (b"[]", 422),
        (b"{}", 422),
        (b'{"rows": []}', 422),
        (b'{"rows": [null]}', 422),
        (b'{"rows": [{"title": "kettle"}]}', 422),
        (b'{"rows": [{"title": "kettle", "Made of": 3}]}', 422),
        (rb'{"rows": ["\ud800"]}', 422),
    ],
)
def test_a_body_that_is_not_as_the_schema_says_is_a_problem(client, body, status):
    problem(client.post("/v1/predict", content=body, headers=JSON), status)


def test_a_problem_points_to_what_is_wrong(client):
    rows = ["fine", {"title": "kettle"}]
    told = problem(client.post("/v1/predict", json={"rows": rows}), 422)
    assert {"detail": "Field required", "pointer": "#/rows/1/Made of"} in told["errors"]


def test_what_was_sent_is_not_sent_back(client):
    told = client.post("/v1/predict", json={"rows": [{"title": "<script>secret"}]})
    assert "secret" not in told.text


def test_numbers_that_are_not_finite_are_a_problem(client_of, tmp_path):
    from taxofit import TaxonomyClassifier

    X, y = [[0.0], [0.1], [3.0], [3.1]], ["a", "a", "b", "b"]
    TaxonomyClassifier(flattening="lr", C=1.0).fit(X, y).save(tmp_path / "model")
    client = client_of(tmp_path / "model")
    for number in ("NaN", "Infinity", "1e999", "1e300"):
        body = f'{{"rows": [[{number}]]}}'.encode()
        problem(client.post("/v1/predict", content=body, headers=JSON), 422)
    assert client.post("/v1/predict", json={"rows": [[1e15]]}).json()["predictions"]


def test_too_many_rows_and_too_long_bodies_are_413(client_of, shop_model):
    client = client_of(shop_model, max_rows=3, max_body_bytes=300)
    assert client.post("/v1/predict", json={"rows": ["mug"] * 3}).status_code == 200
    assert (
        "too many rows"
        in problem(client.post("/v1/predict", json={"rows": ["mug"] * 4}), 413)["detail"]
    )
    body = json.dumps({"rows": ["mug" * 200]}).encode()
    problem(client.post("/v1/predict", content=body, headers=JSON), 413)

    async def pieces():
        for start in range(0, len(body), 100):
            yield body[start : start + 100]

    problem(client.post("/v1/predict", content=pieces(), headers=JSON), 413)


def test_a_text_that_is_too_long_is_422(client_of, shop_model):
    client = client_of(shop_model, max_text_length=10)
    problem(client.post("/v1/predict", json={"rows": ["kettle" * 2]}), 422)


def test_another_type_of_body_is_415(client):
    problem(client.post("/v1/predict", content=b"rows=kettle"), 415)
    headers = {"content-type": "application/x-www-form-urlencoded"}
    problem(client.post("/v1/predict", content=b"rows=kettle", headers=headers), 415)
    charset = {"content-type": "application/json; charset=utf-8"}
    assert client.post("/v1/predict", content=b'{"rows":["mug"]}', headers=charset).is_success


def test_an_unknown_path_and_a_wrong_method_are_problems(client):
    problem(client.get("/v1/predictions"), 404)
    answer = client.request("DELETE", "/v1/predict")
    problem(answer, 405)
    assert answer.headers["allow"] == "POST"


def test_a_surprise_is_500_and_keeps_its_reason_to_itself(client, monkeypatch):
    def fail(*_):
        raise RuntimeError("secret")

    monkeypatch.setattr(client.holder.current.classifier, "predict_with_score", fail)
    answer = client.post("/v1/predict", json={"rows": ["mug"]})
    problem(answer, 500)
    assert "secret" not in answer.text
    problem(client.get("/v1/health/ready"), 500)
    assert client.get("/v1/health/live").is_success


def test_other_sites_are_not_invited(client):
    headers = {"origin": "https://elsewhere.example", "access-control-request-method": "POST"}
    answer = client.request("OPTIONS", "/v1/predict", headers=headers)
    assert not [name for name in answer.headers if name.startswith("access-control")]


def test_a_token_opens_everything_and_its_absence_only_liveness(client_of, shop_model):
    client = client_of(shop_model, token="open sesame")  # noqa: S106  (no secret)
    paths = ["/v1/health/ready", "/v1/metrics", "/v1/model", "/v1/openapi.json", "/nowhere"]
    for headers in ({}, {"authorization": "Bearer wrong"}, {"authorization": "open sesame"}):
        for path in paths:
            answer = client.get(path, headers=headers)
            problem(answer, 401)
            assert answer.headers["www-authenticate"] == "Bearer"
        problem(client.post("/v1/predict", json={"rows": ["mug"]}, headers=headers), 401)
        assert client.get("/v1/health/live", headers=headers).is_success
    right = {"authorization": "Bearer open sesame"}
    assert client.post("/v1/predict", json={"rows": ["mug"]}, headers=right).is_success
    schema = client.get("/v1/openapi.json", headers=right).json()
    assert "HTTPBearer" in schema["components"]["securitySchemes"]
    assert schema["paths"]["/v1/predict"]["post"]["security"] == [{"HTTPBearer": []}]
