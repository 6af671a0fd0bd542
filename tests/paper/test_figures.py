"""Scores on the paper's data at a fixed C, against figures found independently with NumPy."""

import pytest
from tests.real_data import real_data

from taxofit import TaxonomyClassifier
from taxofit.datasets import ColumnScaler, load_benchmark
from taxofit.metrics import evaluate


def percentages(train, test, **settings):
    model = TaxonomyClassifier(train.taxonomy, **settings).fit(train.X, train.y)
    scores = evaluate(test.y, model.predict(test.X), train.taxonomy, classes=train.y)
    return 100 * scores["micro_f1"], 100 * scores["macro_f1"]


@pytest.fixture(scope="module")
def clef():
    return load_benchmark("clef", real_data("CLEF").parent)


def test_top_down_on_clef(clef):
    micro, macro = percentages(*clef, flattening="td-lr", C=10.0)
    assert micro == pytest.approx(73.1, abs=1)
    assert macro == pytest.approx(36.9, abs=1.5)


def test_flat_on_clef(clef):
    _, macro = percentages(*clef, flattening="lr", C=10.0)
    assert macro == pytest.approx(52, abs=1.5)


def test_top_down_on_diatoms_with_columns_divided_by_their_maximum():
    train, test = load_benchmark("diatoms", real_data("DIATOMS").parent)
    micro, macro = percentages(train, test, flattening="td-lr", C=100.0, encoder=ColumnScaler())
    assert micro == pytest.approx(53.9, abs=1)
    assert macro == pytest.approx(43.5, abs=1)
