"""Fits that are killed, run out of disk or are interrupted, and go on."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from sklearn.datasets import dump_svmlight_file

from taxofit.datasets.web_directory import make_web_directory

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parents[1] / "src"
PROGRAM = HERE / "fit_that_is_killed.py"
TIMEOUT_SECONDS = 240


def environment():
    return os.environ | {
        "PYTHONPATH": os.pathsep.join(filter(None, [str(SOURCE), os.getenv("PYTHONPATH")])),
        "PYTHONUTF8": "1",
    }


def start(model, *options):
    """Return the program, about to fit."""
    process = subprocess.Popen(
        [sys.executable, str(PROGRAM), str(model), *map(str, options)],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "fitting\n", process.communicate()[1]
    return process


def finish(process):
    """Return how many blocks it solved."""
    out, err = process.communicate(timeout=TIMEOUT_SECONDS)
    assert process.returncode == 0, err
    return int(out)


def files_of(folder):
    return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def n_shards(work_dir):
    return len(list(Path(work_dir).glob("blocks/*.safetensors")))


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    """Return the model's files, how many blocks were solved, seconds, and sizes of shards."""
    folder = tmp_path_factory.mktemp("uninterrupted")
    finish(start(folder / "without"))
    process, began = start(folder / "model", "--work-dir", folder / "work"), time.monotonic()
    n_solved, seconds = finish(process), time.monotonic() - began
    files = files_of(folder / "model")
    assert files == files_of(folder / "without")
    sizes = sorted(path.stat().st_size for path in (folder / "work").rglob("*.safetensors"))
    return files, n_solved, seconds, sizes


@pytest.mark.parametrize("n_kills", [4, pytest.param(30, marks=pytest.mark.slow)])
def test_a_fit_killed_at_random_moments_ends_with_the_identical_model(
    tmp_path, uninterrupted, n_kills
):
    files, n_solved, seconds, _ = uninterrupted
    rng = random.Random(n_kills)
    work_dir, model = tmp_path / "work", tmp_path / "model"
    killed_with, n_completed = [], 0
    while True:
        process = start(model, "--work-dir", work_dir)
        if len(killed_with) == n_kills:
            n_solved_last = finish(process)
            break
        while not killed_with and not n_shards(work_dir):
            time.sleep(0.01)  # the first kill is not to be in vain
        time.sleep(rng.uniform(0, 0.5 * seconds))
        process.kill()
        process.communicate()
        if process.returncode == 0:  # it was done before: begin anew
            assert files_of(model) == files
            n_completed += 1
            shutil.rmtree(work_dir)
            shutil.rmtree(model)
        else:
            assert process.returncode == -signal.SIGKILL
            killed_with.append(n_shards(work_dir))
    print(f"killed with {killed_with} shards, completed {n_completed} times on the way")  # noqa: T201  (with -s)
    assert files_of(model) == files
    assert max(killed_with) > 0
    assert n_solved_last < n_solved or killed_with[-1] == 0


def test_a_full_disk_stops_a_fit_that_then_goes_on(tmp_path, uninterrupted):
    files, n_solved, _, sizes = uninterrupted
    work_dir, model = tmp_path / "work", tmp_path / "model"
    process = start(model, "--work-dir", work_dir, "--largest-file", sizes[len(sizes) // 2])
    _, err = process.communicate(timeout=TIMEOUT_SECONDS)
    assert process.returncode == 1
    assert "File too large; what is in it is sound: make room" in err
    assert not model.exists()
    assert not list(work_dir.rglob("*.part"))
    kept = n_shards(work_dir)
    assert finish(start(model, "--work-dir", work_dir)) < n_solved or kept == 0
    assert files_of(model) == files


@pytest.mark.slow
def test_a_disk_that_fills_up_loses_nothing(tmp_path, uninterrupted):
    files, n_solved, _, _ = uninterrupted
    disk, model = tmp_path / "disk", tmp_path / "model"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)]
    if (
        shutil.which("mount") is None
        or subprocess.run(mount, capture_output=True, check=False).returncode
    ):
        pytest.skip("a small file system cannot be mounted here; only root may")
    try:
        process = start(model, "--work-dir", disk / "work")
        _, err = process.communicate(timeout=TIMEOUT_SECONDS)
        assert process.returncode == 1
        assert "No space left on device; what is in it is sound: make room" in err
        kept = n_shards(disk / "work")
        assert kept > 0
        assert not model.exists()
        subprocess.run(["mount", "-o", "remount,size=100m", str(disk)], check=True)  # noqa: S607
        assert finish(start(model, "--work-dir", disk / "work")) < n_solved
        assert files_of(model) == files
    finally:
        subprocess.run(["umount", str(disk)], check=True)  # noqa: S607  (the system's own)


def test_ctrl_c_keeps_what_is_done_and_says_how_to_go_on(tmp_path):
    train, _ = make_web_directory("dmoz-small", scale=0.5)
    table, tree = tmp_path / "rows.svm", tmp_path / "tree.txt"
    nodes = train.taxonomy.nodes_of(train.y)
    dump_svmlight_file(train.X, nodes, str(table), zero_based=False)
    edges = enumerate(train.taxonomy.parent[1:].tolist(), start=1)
    tree.write_text("".join(f"{parent} {node}\n" for node, parent in edges))
    work_dir, model = tmp_path / "work", tmp_path / "model"
    options = ["--hierarchy", tree, "--raw", "--model", model, "--work-dir", work_dir, "--C", "1"]
    process = subprocess.Popen(
        [sys.executable, "-m", "taxofit", "fit", table, *options],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not n_shards(work_dir) and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    began = time.monotonic()
    out, err = process.communicate(timeout=TIMEOUT_SECONDS)
    print(f"stopped {time.monotonic() - began:.2f} s after Ctrl-C: {err}")  # noqa: T201  (with -s)
    assert process.returncode == 130, err
    assert out == ""
    assert err.startswith(f"error: interrupted; {work_dir} keeps what is solved (")
    assert "run the same command again to go on" in err.replace("\n", " ")
    assert "Traceback" not in err
    assert not model.exists()
    assert n_shards(work_dir) > 0


def test_two_runs_in_one_folder_both_end_with_the_model(tmp_path, uninterrupted):
    models = [tmp_path / "one", tmp_path / "two"]
    processes = [start(model, "--work-dir", tmp_path / "work") for model in models]
    for process in processes:
        finish(process)
    assert files_of(models[0]) == files_of(models[1]) == uninterrupted[0]
