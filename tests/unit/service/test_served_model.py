"""Models are exchanged whole, or not at all."""

from __future__ import annotations

import logging
import shutil

import pytest
from tests.unit.service.conftest import fit_shop

from taxofit import ModelError
from taxofit.service.served_model import ModelHolder


@pytest.fixture(scope="module")
def newer_model(tmp_path_factory):
    return fit_shop(tmp_path_factory.mktemp("newer") / "shop", C="1")


@pytest.fixture
def folder(shop_model, tmp_path):
    return shutil.copytree(shop_model, tmp_path / "live")


def replace(folder, model):
    shutil.rmtree(folder)
    shutil.copytree(model, folder)


def test_a_new_model_in_the_folder_is_taken_on(folder, newer_model):
    holder = ModelHolder(str(folder))
    old = holder.current
    holder.reload_if_changed()
    assert holder.current is old
    replace(folder, newer_model)
    holder.reload_if_changed()
    assert holder.current.version != old.version
    assert holder.current.classifier.C_ == 1
    assert (holder.n_reloads, holder.n_failures, holder.reload_error) == (1, 0, None)
    assert old.classifier.predict(["steel kettle"]).tolist() == ["Kettles"]


def test_equal_models_have_equal_versions_wherever_they_are(shop_model, folder):
    assert ModelHolder(str(folder)).current.version == ModelHolder(str(shop_model)).current.version


@pytest.mark.parametrize("harm", ["weights", "manifest", "gone", "cannot predict"])
def test_a_damaged_model_leaves_the_old_one_and_is_told_once(
    folder, newer_model, harm, caplog, monkeypatch
):
    caplog.set_level(logging.INFO, "taxofit.service")
    holder = ModelHolder(str(folder))
    old = holder.current
    replace(folder, newer_model)
    if harm == "weights":
        (folder / "weights.safetensors").write_bytes(b"no weights")
    elif harm == "manifest":
        (folder / "manifest.json").write_text("{")
    elif harm == "gone":
        shutil.rmtree(folder)
    else:
        monkeypatch.setattr(
            "taxofit.service.served_model.load_model", lambda *_, **__: old.manifest
        )
    for _ in range(3):
        holder.reload_if_changed()
    assert holder.current is old
    assert holder.reload_error
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    monkeypatch.undo()
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(newer_model, folder)
    holder.reload_if_changed()
    assert holder.current is not old
    assert holder.reload_error is None
    assert holder.n_failures == 3


def test_a_file_that_is_cut_short_under_the_service_does_no_harm(folder):
    holder = ModelHolder(str(folder))
    before = holder.current.classifier.predict(["steel kettle", "blue dog"]).tolist()
    for file in folder.glob("*.safetensors"):
        with file.open("r+b") as handle:
            handle.truncate(0)
    assert holder.current.classifier.predict(["steel kettle", "blue dog"]).tolist() == before
    holder.reload()
    assert str(folder) in holder.reload_error


def test_a_model_that_was_broken_and_came_back_is_no_longer_an_error(folder, shop_model):
    holder = ModelHolder(str(folder))
    shutil.rmtree(folder)
    holder.reload_if_changed()
    assert holder.reload_error
    shutil.copytree(shop_model, folder)
    holder.reload_if_changed()
    assert holder.reload_error is None


def test_a_model_that_reads_other_columns_is_not_taken_on(folder, tmp_path):
    holder = ModelHolder(str(folder))
    old = holder.current
    replace(folder, fit_shop(tmp_path / "other", text=("title",)))
    holder.reload()
    assert holder.current is old
    assert "reads other rows" in holder.reload_error


def test_how_the_training_file_was_read_is_no_concern_of_clients(folder, tmp_path):
    holder = ModelHolder(str(folder))
    replace(folder, fit_shop(tmp_path / "other", text=("Made of", "title"), separator=">"))
    holder.reload()
    assert holder.reload_error is None
    assert holder.n_reloads == 1


def test_a_link_may_be_moved_to_the_next_model(shop_model, newer_model, tmp_path):
    link = tmp_path / "current"
    link.symlink_to(shop_model)
    holder = ModelHolder(str(link))
    (tmp_path / "next").symlink_to(newer_model)
    (tmp_path / "next").replace(link)
    holder.reload_if_changed()
    assert holder.current.classifier.C_ == 1


def test_the_folder_may_be_this_one(folder, monkeypatch):
    monkeypatch.chdir(folder)
    assert ModelHolder(".").current.name == "live"


def test_a_folder_without_a_model_is_a_model_error(tmp_path):
    with pytest.raises(ModelError, match="is not a taxofit model"):
        ModelHolder(str(tmp_path))
