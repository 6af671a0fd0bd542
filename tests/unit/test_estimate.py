import math
from dataclasses import replace

import numpy as np
import pytest

from taxofit import Taxonomy, memory, terminal
from taxofit.bank.cost import FitCost
from taxofit.datasets import Dataset, TextEncoder
from taxofit.errors import DataError
from taxofit.workflow import estimate
from taxofit.workflow.options import FitOptions
from taxofit.workflow.sources import Source

MINUTE = FitCost(cpu_seconds=100.0, seconds=59.0, memory_bytes=2.0**30, disk_bytes=2.0**20)


@pytest.fixture
def system(tmp_path, monkeypatch):
    """Stand in for a machine of 8 GiB, no groups and no limits."""
    monkeypatch.setattr(memory, "PROC", tmp_path / "proc")
    monkeypatch.setattr(memory, "CGROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(memory, "_of_the_limits", lambda: math.inf)

    def write(name, text):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    write("proc/meminfo", f"MemTotal: 1 kB\nMemAvailable:   {8 * 2**20} kB\n")
    return write


def test_without_groups_the_machine_decides(system):
    system("proc/self/cgroup", "0::/\n")
    assert memory.available_memory() == 8 * 2**30


def test_the_tightest_group_above_decides(system):
    system("proc/self/cgroup", "0::/jobs/mine\n")
    system("cgroup/jobs/mine/memory.max", "max\n")
    system("cgroup/jobs/memory.max", f"{3 * 2**30}\n")
    system("cgroup/jobs/memory.current", f"{2 * 2**30}\n")
    system("cgroup/jobs/memory.stat", f"anon 5\ninactive_file {2**30}\n")
    assert memory.available_memory() == 2 * 2**30


def test_groups_of_version_one_are_read_too(system):
    system("proc/self/cgroup", "5:devices:/\n4:cpu,memory:/mine\n")
    system("cgroup/memory/mine/memory.limit_in_bytes", f"{2**30}\n")
    system("cgroup/memory/mine/memory.usage_in_bytes", f"{2**29}\n")
    system("cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n")
    assert memory.available_memory() == 2**29


def test_nothing_known_means_no_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "PROC", tmp_path)
    monkeypatch.setattr(memory, "_of_the_limits", lambda: math.inf)
    assert memory.available_memory() == math.inf


def test_file_too_large_to_read_is_refused_with_a_remedy(tmp_path, monkeypatch):
    monkeypatch.setattr(estimate, "available_memory", lambda: 10.0 * 2**20)
    file = tmp_path / "rows.svm"
    file.write_text("1 1:1 2:1 3:1\n" * 200_000, encoding="utf-8")
    with pytest.raises(DataError, match=r"reading it needs about \d+ MiB .* 10 MiB .*--store"):
        estimate.check_reading(str(file), Source(format="svmlight"))


def test_fit_that_cannot_fit_is_refused_with_a_remedy(monkeypatch):
    monkeypatch.setattr(estimate, "available_memory", lambda: 2.0**29)
    with pytest.raises(DataError, match=r"needs about 1\.0 GiB .* 512 MiB .*--store"):
        estimate.check_memory("rows.svm", MINUTE, is_stored=False)
    with pytest.raises(DataError, match="fewer features") as refused:
        estimate.check_memory("rows.svm", MINUTE, is_stored=True)
    assert "--store" not in str(refused.value)


def test_terms_of_texts_are_foreseen_from_a_sample():
    rng = np.random.default_rng(0)
    words = np.array([f"word{k}" for k in range(3000)])
    texts = np.array([" ".join(rng.choice(words, size=8)) for _ in range(6000)], dtype=object)
    n_entries, n_features = estimate._terms_in(texts, TextEncoder())
    encoded = TextEncoder().fit_transform(texts)
    assert n_entries == pytest.approx(encoded.nnz, rel=0.05)
    assert 0.5 < n_features / encoded.shape[1] < 2.5


def test_dense_rows_have_no_estimate():
    data = Dataset(np.eye(2), np.array(["a", "b"], object), Taxonomy.from_labels(["a", "b"]))
    assert estimate.estimate_for(data, FitOptions(device="cpu"), None) is None


def test_only_long_runs_are_announced(capsys):
    terminal.show_estimate(MINUTE)
    assert not capsys.readouterr().err
    terminal.show_estimate(replace(MINUTE, seconds=600.0))
    assert "about 10 minutes, 1.0 GiB of memory and 1 MiB of disk" in capsys.readouterr().err
    terminal.show_estimate(replace(MINUTE, seconds=9000.0))
    assert "2.5 hours" in capsys.readouterr().err
