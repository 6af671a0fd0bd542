"""What processes of one machine exchange as files."""

import pickle
import tempfile

import joblib
import numpy as np
import pytest

from taxofit.bank.block_work import SolvedBlock
from taxofit.bank.distribution import workers_backend
from taxofit.bank.parcel import Parcel
from taxofit.bank.process_files import FileParcel, filed_parcel, is_on_this_machine
from taxofit.errors import DataError

WHOLE_BYTES = 512  # POSIX: what is written to a pipe in one piece, whoever is killed meanwhile


@pytest.fixture
def parcel():
    return Parcel("key", np.arange(100_000, dtype=np.uint8), 2)


@pytest.fixture
def solved():
    rng = np.random.default_rng(0)
    return [
        SolvedBlock(
            C, {"a.b": rng.normal(size=(50, 1000))[:, ::2]}, np.array([True]), np.array([4])
        )
        for C in (0.1, 1.0, 10.0, 100.0, 1000.0)
    ]


def test_names_are_all_that_goes_through_pipes(parcel, solved, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with filed_parcel(parcel) as filed:
        sent = pickle.loads(pickle.dumps(filed))  # noqa: S301  (just made)
        answer = pickle.dumps((3, sent.leave(3, solved)))
        assert len(pickle.dumps(filed)) < WHOLE_BYTES
        assert len(answer) < WHOLE_BYTES
        opened = sent.opened()
        np.testing.assert_array_equal(opened.payload, parcel.payload)
        assert (opened.key, opened.n_blas_threads) == ("key", 2)
        number, left = pickle.loads(answer)  # noqa: S301  (just made)
        collected = left.collect()
    assert number == 3
    assert [block.C for block in collected] == [0.1, 1.0, 10.0, 100.0, 1000.0]
    for one, other in zip(solved, collected, strict=True):
        np.testing.assert_array_equal(one.arrays["a.b"], other.arrays["a.b"])
        np.testing.assert_array_equal(one.converged, other.converged)
        np.testing.assert_array_equal(one.n_iterations, other.n_iterations)
    assert not list(tmp_path.iterdir())


def test_a_folder_without_room_is_named_with_the_remedy(solved, tmp_path):
    with pytest.raises(DataError, match=r"gone: .*TMPDIR"):
        FileParcel("key", str(tmp_path / "gone"), 1).leave(0, solved)


@pytest.mark.parametrize("backend", ["loky", "multiprocessing"])
def test_backends_of_this_machine_are_known(backend):
    with joblib.parallel_config(backend=backend, n_jobs=2):
        assert is_on_this_machine(workers_backend())
