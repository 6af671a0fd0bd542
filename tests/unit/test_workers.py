"""The options of long runs: what goes together, and what is said when it does not work."""

import sys

import pytest

from taxofit import TaxonomyClassifier, load_model
from taxofit.cli import main
from taxofit.errors import DataError, Interrupted
from taxofit.workflow.options import FitOptions
from taxofit.workflow.training import fit_file
from taxofit.workflow.workers import spread_over


@pytest.fixture
def table(tmp_path):
    lines = ["title,category"]
    for number in range(12):
        lines += [f"steel kettle {number},Home > Kettles", f"guppy food {number},Pets > Fish"]
    path = tmp_path / "shop.csv"
    path.write_text("\n".join(lines))
    return path


def options(**changes):
    return FitOptions(text=("title",), label_path="category", C="1", **changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"workers": 0}, "workers must be a positive number, but is 0"),
        ({"workers": 2, "dask": "tcp://127.0.0.1:1"}, "name one"),
    ],
)
def test_options_that_make_no_sense_are_refused(changes, message):
    with pytest.raises(DataError, match=message):
        options(**changes).check()


def test_without_dask_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with (
        pytest.raises(DataError, match=r"pip install 'taxofit\[cluster\]'"),
        spread_over(dask="tcp://127.0.0.1:1"),
    ):
        pass


def test_a_wrong_address_is_an_error_that_names_it():
    pytest.importorskip("distributed", reason="dask.distributed is not installed")
    with (
        pytest.raises(DataError, match="no dask scheduler answers at nonsense://there"),
        spread_over(dask="nonsense://there"),
    ):
        pass


def test_a_fit_tells_what_its_work_folder_holds_and_the_model_does_not(table, tmp_path):
    work_dir = tmp_path / "work"
    report = fit_file(str(table), str(tmp_path / "model"), options(work_dir=str(work_dir)))
    assert any(f"{work_dir} holds 2 shards, " in note for note in report.notes)
    assert load_model(tmp_path / "model").work_dir is None


@pytest.mark.parametrize("has_folder", [True, False])
def test_an_interruption_says_what_is_kept(table, tmp_path, monkeypatch, capsys, has_folder):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(TaxonomyClassifier, "fit", interrupt)
    work_dir = str(tmp_path / "work") if has_folder else None
    expected = "run the same command again" if has_folder else "with --work-dir DIR a run can"
    with pytest.raises(Interrupted, match=expected):
        fit_file(str(table), str(tmp_path / "model"), options(work_dir=work_dir))
    arguments = ["fit", str(table), "--text", "title", "--path", "category"]
    arguments += ["--model", str(tmp_path / "model"), "-q"]
    assert main(arguments + (["--work-dir", work_dir] if has_folder else [])) == 130
    assert expected in " ".join(capsys.readouterr().err.split())
