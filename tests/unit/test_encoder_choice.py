from __future__ import annotations

import numpy as np
import pytest

from taxofit import DataError, TaxonomyClassifier, encoder_choice
from taxofit.bank.node_bank import NodeBank
from taxofit.datasets import FrameEncoder, TextEncoder

STEMS = {"Fish": "guppy", "Cats": "kitten", "Mugs": "teacup", "Pans": "skillet"}
PATHS = {"Fish": ("Pets", "Fish"), "Cats": ("Pets", "Cats"), "Mugs": ("Home", "Mugs")}
PATHS["Pans"] = ("Home", "Pans")


def endings(n_rows: int = 160) -> tuple[np.ndarray, list[tuple[str, str]]]:
    """Words that never come twice, so that only their beginnings tell the category."""
    random = np.random.default_rng(0)
    kinds = [list(STEMS)[k] for k in random.integers(0, len(STEMS), n_rows)]
    texts = [STEMS[kind] + "".join(random.choice(list("bcdfghjklmnp"), 6)) for kind in kinds]
    return np.array(texts, dtype=object), [PATHS[kind] for kind in kinds]


@pytest.fixture
def solver_calls(monkeypatch):
    calls = []
    solve = NodeBank.solve

    def counted(self, Cs, consume, **options):
        nodes = options.get("nodes")
        calls.append((tuple(Cs), self.taxonomy.n_nodes - 1 if nodes is None else len(nodes)))
        return solve(self, Cs, consume, **options)

    monkeypatch.setattr(NodeBank, "solve", counted)
    return calls


def test_what_only_parts_of_words_tell_is_found_out():
    texts, paths = endings()
    fitted = TaxonomyClassifier(encoder="auto", flattening="td-lr", C=10.0).fit(texts, paths)
    assert fitted.encoder_.features == "chars"
    scores = fitted.encoder_choice_.scores
    assert scores["chars"] > 0.9
    assert scores["words"] < 0.5
    assert fitted.encoder_choice_.n_features["words"] == len(texts)
    assert fitted.predict(["guppyxyz"]).tolist() == ["Fish"]


def test_the_choice_solves_the_leaves_once_for_each_candidate(solver_calls):
    texts, paths = endings()
    TaxonomyClassifier(encoder="auto", flattening="td-lr", C=10.0).fit(texts, paths)
    assert solver_calls == [((10.0,), 4)] * 3 + [((10.0,), 6)]


def test_the_score_is_the_macro_f1_of_flat_predictions():
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import f1_score

    texts, paths = endings()
    texts = np.array([f"{t} {t[:3]} toy" for t in texts], dtype=object)
    fitted = TaxonomyClassifier(encoder="auto", flattening="td-lr", C=10.0).fit(texts, paths)
    leaf = fitted.original_taxonomy_.nodes_of(paths)
    X = TextEncoder().fit_transform(texts)
    training, held_out = encoder_choice.split_rows(
        X, leaf, np.ones(len(leaf)), fraction=0.1, seed=0
    )
    X = np.hstack([X.toarray(), np.ones((len(leaf), 1))])
    classes = np.unique(leaf)
    scores = np.stack(
        [
            LogisticRegression(C=10.0, fit_intercept=False, tol=1e-8)
            .fit(X[training], leaf[training] == k)
            .decision_function(X[held_out])
            for k in classes
        ]
    )
    expected = f1_score(
        leaf[held_out],
        classes[scores.argmax(axis=0)],
        labels=classes,
        average="macro",
        zero_division=0.0,
    )
    assert fitted.encoder_choice_.scores["words"] == pytest.approx(expected)


def test_of_equals_the_simpler_features_win():
    texts = np.array(["red mug", "red mug", "fish", "fish"] * 10, dtype=object)
    fitted = TaxonomyClassifier(encoder="auto", C=1.0).fit(texts, ["m", "m", "f", "f"] * 10)
    assert fitted.encoder_.features == "words"


@pytest.mark.parametrize(
    ("scores", "chosen"),
    [((0.5, 0.504, 0.504), "words"), ((0.5, 0.506, 0.51), "pairs"), ((0.5, 0.4, 0.6), "chars")],
)
def test_more_features_must_be_better_by_half_a_point(scores, chosen):
    named = dict(zip(("words", "pairs", "chars"), scores, strict=True))
    assert encoder_choice._chosen(named) == chosen


def test_frames_have_their_texts_chosen_as_well():
    texts, paths = endings()
    frame = np.stack([texts, np.arange(len(texts), dtype=object)], axis=1)
    encoder = FrameEncoder(text=["title"], numeric=["cm"], features="auto")
    fitted = TaxonomyClassifier(encoder=encoder, flattening="td-lr", C=10.0).fit(frame, paths)
    assert fitted.encoder_.features == "chars"
    assert encoder.features == "auto"


def test_large_data_is_sampled_by_leaves_then_rows(monkeypatch):
    monkeypatch.setattr(encoder_choice, "MAX_LEAVES", 2)
    monkeypatch.setattr(encoder_choice, "MAX_ROWS", 50)
    texts, paths = endings()
    fitted = TaxonomyClassifier(encoder="auto", flattening="td-lr", C=10.0).fit(texts, paths)
    choice = fitted.encoder_choice_
    assert (choice.n_leaves, choice.n_rows) == (2, 50)
    assert len(fitted.classes_) == 4


def test_long_texts_are_sampled_by_their_length(monkeypatch):
    texts, paths = endings()
    monkeypatch.setattr(encoder_choice, "MAX_CHARACTERS", sum(map(len, texts)) // 2)
    fitted = TaxonomyClassifier(encoder="auto", flattening="td-lr", C=10.0).fit(texts, paths)
    assert len(texts) * 0.45 < fitted.encoder_choice_.n_rows < len(texts) * 0.55


def test_an_encoder_alone_cannot_choose():
    with pytest.raises(DataError, match="only a classifier can choose them"):
        TextEncoder(features="auto").fit(["a text"])
