"""Fits on clusters of separate processes: the model is the one that threads give, bit for bit."""

import os
import signal
import subprocess
import sys
import tempfile
from contextlib import ExitStack

import joblib
import numpy as np
import pytest

from taxofit import DataError, TaxonomyClassifier
from taxofit.bank import dask_tasks, distribution, lanes
from taxofit.bank.parcel import Parcel
from taxofit.datasets import make_taxonomy_classification
from taxofit.datasets.web_directory import make_web_directory

# What a library of another team warns of is not for us to fail on.
pytestmark = pytest.mark.filterwarnings("default")


@pytest.fixture(scope="module")
def rows():
    return make_web_directory("dmoz-small", scale=0.1)[0]


def fitted(rows, progress=None, **settings):
    """Return a model fitted in many small tasks."""
    block_size, lanes.BLOCK_SIZE = lanes.BLOCK_SIZE, 16
    try:
        classifier = TaxonomyClassifier(rows.taxonomy, device="cpu", **settings)
        return classifier.fit(rows.X, rows.y, progress=progress)
    finally:
        lanes.BLOCK_SIZE = block_size


@pytest.fixture(scope="module")
def at_home(rows):
    return fitted(rows)


def assert_identical(one, other):
    arrays, others = one.weights_.to_arrays(), other.weights_.to_arrays()
    assert arrays.keys() == others.keys()
    for name, array in arrays.items():
        assert array.tobytes() == others[name].tobytes(), name
    assert (one.C_, one.psi_, one.removed_, one.n_iter_) == (
        other.C_,
        other.psi_,
        other.removed_,
        other.n_iter_,
    )
    scores = one.validation_.evidence.scores
    assert scores.tobytes() == other.validation_.evidence.scores.tobytes()


def test_backends_that_return_all_at_once_work_in_waves(rows, at_home, monkeypatch):
    # The first test: what it forks should not have the threads of the clusters of others.
    monkeypatch.setattr(distribution, "TASKS_PER_WAVE", 8)  # several waves of the sixty tasks
    with joblib.parallel_config(backend="multiprocessing", n_jobs=2):
        assert_identical(fitted(rows), at_home)


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def count_arrivals():
    """Have this process count the parcels that are unpickled in it."""
    distribution.arrived = []

    def arrive(parcel, state):
        distribution.arrived.append(state["key"])
        parcel.__dict__.update(state)

    Parcel.__setstate__ = arrive


def arrivals():
    return distribution.arrived


def test_rows_reach_every_dask_worker_once_and_the_model_is_identical(cluster, rows, at_home):
    cluster.run(count_arrivals)
    with joblib.parallel_config(backend="dask", client=cluster):
        assert_identical(fitted(rows), at_home)
    # One parcel of the training rows and one of all rows, for more than sixty tasks.
    arrived, opened = cluster.run(arrivals), cluster.run(distribution.opened_parcels)
    assert [len(keys) for keys in arrived.values()] == [2, 2]
    assert all(len(set(keys)) == 2 for keys in arrived.values())
    # A worker that was late for the second opens it when it needs it.
    assert all(len(set(keys)) == len(keys) <= 2 for keys in opened.values())


def test_a_dask_worker_killed_in_mid_fit_changes_nothing(cluster, rows, at_home):
    workers = cluster.run(os.getpid)
    victims = []

    def kill(stage, done, total):
        if not victims and stage == "Validating nodes" and done > total / 4:
            victims.append(min(workers))
            os.kill(workers[victims[0]], signal.SIGKILL)

    with joblib.parallel_config(backend="dask", client=cluster):
        assert_identical(fitted(rows, kill), at_home)
    assert len(victims) == 1
    assert victims[0] not in cluster.run(os.getpid)


@pytest.fixture
def empty_cluster():
    """Start a scheduler without workers."""
    distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address=None) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


def test_the_only_dask_worker_may_be_replaced_in_mid_fit(empty_cluster, rows, at_home):
    address = empty_cluster.scheduler.address
    command = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--nthreads", "1"]
    with ExitStack() as processes:

        def start_worker():
            process = subprocess.Popen([*command, "--no-nanny", "--no-dashboard"])
            processes.callback(process.wait)
            processes.callback(process.kill)
            return process

        first = start_worker()

        def replace(stage, done, total):
            if first.returncode is None and stage == "Validating nodes" and done > total / 4:
                first.kill()
                first.wait()
                start_worker()

        with joblib.parallel_config(backend="dask", client=empty_cluster):
            model = fitted(rows, replace)
        assert first.returncode == -signal.SIGKILL
        assert_identical(model, at_home)


def test_a_cluster_without_workers_is_an_error_that_says_so(empty_cluster, rows, monkeypatch):
    monkeypatch.setattr(dask_tasks, "RESTART_SECONDS", 0.1)
    settings = {"client": empty_cluster, "wait_for_workers_timeout": 0.2}
    with (
        joblib.parallel_config(backend="dask", **settings),
        pytest.raises(DataError, match=r"has had no worker for 0\.2 seconds; start one"),
    ):
        fitted(rows)


def test_a_fit_on_workers_resumes_what_threads_began(rows, at_home, tmp_path, monkeypatch):
    work_dir = tmp_path / "work"
    calls = []

    def interrupt(_stage, done, _total):
        calls.append(done)
        if len(calls) == 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fitted(rows, interrupt, work_dir=work_dir)
    sent = []
    solve = distribution._solve_in_worker
    monkeypatch.setattr(distribution, "_solve_in_worker", solve)
    monkeypatch.setattr(
        distribution.joblib,
        "delayed",
        lambda function: lambda *args: sent.append(args[1]) or (function, args, {}),
    )
    with joblib.parallel_config(backend="loky", n_jobs=2):
        assert_identical(fitted(rows, work_dir=work_dir), at_home)
    n_first = len(sent)
    assert n_first > 0
    with joblib.parallel_config(backend="loky", n_jobs=2):
        assert_identical(fitted(rows, work_dir=work_dir), at_home)
    assert len(sent) == n_first


def test_dense_rows_give_the_same_bits_in_processes():
    made = make_taxonomy_classification(
        600, depth=2, fan_out=5, n_features=30, n_inconsistent=0, sparse=False, random_state=3
    )
    at_home = fitted(made)
    with joblib.parallel_config(backend="loky", n_jobs=2):
        assert_identical(fitted(made), at_home)


def test_a_lost_process_of_joblib_is_made_good(rows, at_home, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    psutil = pytest.importorskip("psutil", reason="psutil is not installed")
    lost = []

    def kill(_stage, done, _total):
        if not lost and done > 50:
            children = psutil.Process().children(recursive=True)
            lost.append(next(c for c in children if "LokyProcess" in " ".join(c.cmdline())))
            lost[0].kill()

    with joblib.parallel_config(backend="loky", n_jobs=2):
        assert_identical(fitted(rows, kill), at_home)
    assert lost
    assert not list(tmp_path.glob("taxofit-*"))


def test_ray_gives_the_same_model(rows, at_home):
    ray = pytest.importorskip("ray", reason="ray is not installed")
    from ray.util.joblib import register_ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    register_ray()
    try:
        with joblib.parallel_config(backend="ray"):
            assert_identical(fitted(rows), at_home)
    finally:
        ray.shutdown()


def test_no_result_is_as_large_as_the_weights_it_comes_from(rows, tmp_path):
    fitted(rows, work_dir=tmp_path)
    sizes = [path.stat().st_size for path in (tmp_path / "blocks").iterdir()]
    dense = rows.X.shape[1] * 16 * np.dtype(np.float64).itemsize
    assert max(sizes) < 4 * dense  # of the chain of four values of C
    assert np.mean(sizes) < dense
