"""The work folder: what is put is found again, in full or not at all."""

import os
import resource
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from taxofit.bank.work_dir import SHARDS, WorkDir
from taxofit.errors import DataError

KEY = "ab" * 32


@pytest.fixture
def work_dir(tmp_path):
    return WorkDir(tmp_path / "work")


def some_arrays():
    rng = np.random.default_rng(0)
    return {
        "scores": np.asfortranarray(rng.normal(size=(7, 5)).astype(np.float32)),
        "empty": np.zeros((0, 3)),
        "scalar": np.array(4),
        "mask": np.array([True, False]),
    }


def shard_of(work_dir):
    return next((work_dir.folder / SHARDS).glob("*.safetensors"))


def test_what_is_put_is_found_bit_for_bit(work_dir):
    arrays = some_arrays()
    work_dir.put(KEY, arrays)
    found = WorkDir(work_dir.folder).find(KEY)
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype
        assert found[name].shape == array.shape
        np.testing.assert_array_equal(found[name], array)
    assert work_dir.find("cd" * 32) is None


def test_every_damaged_byte_is_noticed(work_dir):
    work_dir.put(KEY, some_arrays())
    shard = shard_of(work_dir)
    sound = shard.read_bytes()
    assert work_dir.find(KEY) is not None
    for position in range(len(sound)):
        damaged = bytearray(sound)
        damaged[position] ^= 0x11
        shard.write_bytes(damaged)
        with pytest.warns(UserWarning, match="is damaged"):
            assert work_dir.find(KEY) is None


@pytest.mark.parametrize("kept", [0, 7, 100, -1])
def test_a_shard_cut_short_is_not_used(work_dir, kept):
    work_dir.put(KEY, some_arrays())
    shard = shard_of(work_dir)
    shard.write_bytes(shard.read_bytes()[:kept])
    with pytest.warns(UserWarning, match="its block is solved again"):
        assert work_dir.find(KEY) is None


def test_a_shard_under_another_name_is_not_used(work_dir):
    work_dir.put(KEY, some_arrays())
    other = "cd" * 32
    shard_of(work_dir).rename(work_dir.folder / SHARDS / f"{other}.safetensors")
    with pytest.warns(UserWarning, match="does not match"):
        assert work_dir.find(other) is None


def test_a_write_that_fails_leaves_nothing_behind_and_says_what_to_do(work_dir):
    work_dir.put(KEY, some_arrays())
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        with pytest.raises(DataError, match="make room and start the same run again"):
            work_dir.put("cd" * 32, {"large": np.zeros(10_000)})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert [path.name for path in (work_dir.folder / SHARDS).iterdir()] == [f"{KEY}.safetensors"]
    assert work_dir.find(KEY) is not None


def test_writers_of_the_same_shard_and_its_readers_do_not_disturb_each_other(work_dir):
    arrays = {"scores": np.arange(50_000.0)}
    work_dir.put(KEY, arrays)
    found = []

    def write():
        for _ in range(20):
            WorkDir(work_dir.folder).put(KEY, arrays)

    def read():
        found.extend(WorkDir(work_dir.folder).find(KEY) for _ in range(40))

    threads = [threading.Thread(target=work) for work in (write, write, read, read)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 80
    assert all(np.array_equal(each["scores"], arrays["scores"]) for each in found)


def test_what_a_killed_run_was_writing_goes_after_an_hour(work_dir):
    shards = work_dir.folder / SHARDS
    old, recent = shards / ".a-1-x.part", shards / ".b-2-y.part"
    old.write_bytes(b"half")
    recent.write_bytes(b"half")
    an_age_ago = time.time() - 7200
    os.utime(old, (an_age_ago, an_age_ago))
    WorkDir(work_dir.folder)
    assert not old.exists()
    assert recent.exists()


def test_size_counts_finished_shards(work_dir):
    work_dir.put(KEY, some_arrays())
    size = work_dir.measure()
    assert size.n_shards == 1
    assert size.n_bytes == shard_of(work_dir).stat().st_size
    assert str(size).startswith("1 shards, ")


def test_a_folder_that_cannot_be_made_is_an_error_that_names_it(tmp_path):
    Path(tmp_path / "file").touch()
    with pytest.raises(DataError, match="file/work cannot be used: Not a directory"):
        WorkDir(tmp_path / "file" / "work")
