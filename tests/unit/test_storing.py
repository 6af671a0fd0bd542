import numpy as np
import pytest

from taxofit import load_model
from taxofit.errors import DataError
from taxofit.workflow.options import FitOptions
from taxofit.workflow.storing import read_through_store
from taxofit.workflow.training import fit_file

SHOP = FitOptions(text=("title",), label_path="category", C="1", device="cpu", method="td-lr")
LINES = ["steel kettle,Home > Kettles", "guppy,Pets > Fish", "red kettle,Home > Kettles"]


@pytest.fixture
def shop(tmp_path):
    file = tmp_path / "shop.csv"
    write(file, LINES * 5)
    return file


def write(file, lines):
    file.write_text("\n".join(["title,category", *lines]) + "\n", encoding="utf-8")


def stored(options, folder):
    return FitOptions(**{**vars(options), "store": str(folder)})


def test_model_through_a_store_is_the_model_without(shop, tmp_path):
    direct, through = tmp_path / "direct", tmp_path / "through"
    fit_file(str(shop), str(direct), SHOP)
    report = fit_file(str(shop), str(through), stored(SHOP, tmp_path / "store"), test=str(shop))
    assert report.test is not None
    assert report.estimate is not None
    titles = ["a steel kettle", "guppy", "nothing known"]
    ours, theirs = load_model(through), load_model(direct)
    np.testing.assert_array_equal(
        ours.predict_with_score(titles)[1], theirs.predict_with_score(titles)[1]
    )
    assert ours.predict(titles).tolist() == theirs.predict(titles).tolist()


def test_store_is_made_once_and_again_when_the_file_changes(shop, tmp_path):
    stages = []

    def read(options=SHOP):
        stages.clear()
        folder = str(tmp_path / "store")
        data, *_ = read_through_store(
            str(shop), options, folder, tell=lambda stage, *_: stages.append(stage)
        )
        return data

    assert read().n_rows == 15
    assert "Converting" in stages
    assert read().n_rows == 15
    assert "Converting" not in stages
    write(shop, LINES * 6)
    assert read().n_rows == 18
    assert "Converting" in stages
    pairs = FitOptions(**{**vars(SHOP), "features": "pairs"})
    n_features = read().X.shape[1]
    assert read(pairs).X.shape[1] > n_features


def test_arff_is_refused(tmp_path):
    file = tmp_path / "a.arff"
    file.write_text("@relation a\n", encoding="utf-8")
    with pytest.raises(DataError, match="cannot go through a store"):
        read_through_store(str(file), FitOptions(), str(tmp_path / "s"), tell=lambda *_: None)
