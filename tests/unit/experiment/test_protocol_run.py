"""The protocol on a small made-up problem: what is solved, what is kept, what comes out."""

import json
import sys

import numpy as np
import pytest

from taxofit import ecoc
from taxofit.bank import node_bank
from taxofit.bank.rows import Rows
from taxofit.datasets import make_taxonomy_classification
from taxofit.experiment import METHODS, Protocol, run_reproduction
from taxofit.experiment.problem import Problem
from taxofit.experiment.run import run_protocol

SMALL = Protocol(n_runs=2, Cs=(0.1, 1.0, 10.0), measures_time=False)
FLATTENINGS = tuple(method for method in METHODS if method != "ecoc")


@pytest.fixture(scope="module")
def problem():
    data = make_taxonomy_classification(
        900, fan_out=3, n_features=300, n_inconsistent=3, random_state=0
    )
    leaf = data.taxonomy.nodes_of(data.y)
    is_test = np.arange(len(data.y)) % 4 == 0
    return Problem(
        "toy", data.X[~is_test], leaf[~is_test], data.X[is_test], leaf[is_test], data.taxonomy
    )


@pytest.fixture
def solved(monkeypatch):
    """Count the calls of the solver, by the number of rows they were over."""
    calls = []

    def counting(module):
        original = module.solver_for

        def solver_for(rows, settings, device="cpu"):
            solver = original(rows, settings, device)
            solve = solver.solve

            def counted(*args):
                calls.append((module.__name__, rows.n_rows))
                return solve(*args)

            monkeypatch.setattr(solver, "solve", counted)
            return solver

        monkeypatch.setattr(module, "solver_for", solver_for)

    counting(node_bank)
    counting(ecoc)
    return calls


def n_blocks(problem) -> int:
    bank = node_bank.NodeBank(Rows.prepare(problem.X), problem.taxonomy, problem.row_leaf)
    return len(bank._blocks(np.arange(1, problem.taxonomy.n_nodes, dtype=np.int32)))


def test_no_method_threshold_or_level_is_ever_refitted(problem, solved):
    results = run_protocol(
        problem, Protocol(n_runs=2, Cs=SMALL.Cs, methods=FLATTENINGS, measures_time=False)
    )
    n_chosen = len({result["C"] for result in results["results"]})
    n_banks = SMALL.n_runs * len(SMALL.Cs) + n_chosen
    of_banks = [rows for module, rows in solved if module == "taxofit.bank.node_bank"]
    assert len(of_banks) == n_banks * n_blocks(problem)
    assert {r["method"] for r in results["results"]} >= {"td-lr", "global-inf", "level-inf", "lr"}


def test_one_method_costs_as_many_solves_as_all(problem, solved):
    run_protocol(problem, Protocol(n_runs=1, Cs=(1.0,), methods=("td-lr",), measures_time=False))
    alone = len(solved)
    solved.clear()
    run_protocol(problem, Protocol(n_runs=1, Cs=(1.0,), methods=FLATTENINGS, measures_time=False))
    assert len(solved) == alone


@pytest.fixture(scope="module")
def results(problem):
    return run_protocol(problem, SMALL)


def test_results_keep_the_contract(results):
    line = results["results"][0]
    assert {
        "method", "seed", "C", "psi", "n_removed", "micro_f1", "macro_f1", "hierarchical_f1",
        "tree_error", "hierarchical_f1_modified", "tree_error_modified", "train_seconds",
        "predict_seconds",
    } <= set(line)  # fmt: skip
    assert {
        "dataset", "results", "summary", "significance", "level_errors", "by_class_size",
        "threshold_curve", "fan_out", "class_sizes", "runtimes", "versions", "machine",
    } <= set(results)  # fmt: skip
    json.dumps(results, allow_nan=False)
    for line in results["results"]:
        assert 0 <= line["macro_f1"] <= 1
        assert line["train_seconds"] > 0


def test_summary_is_the_mean_over_runs(results):
    scores = [r["macro_f1"] for r in results["results"] if r["method"] == "global-inf"]
    summary = results["summary"]["global-inf"]["macro_f1"]
    assert len(scores) == 2
    assert summary["mean"] == pytest.approx(np.mean(scores))
    assert summary["std"] == pytest.approx(np.std(scores, ddof=1))


def test_nothing_removed_means_one_taxonomy(results):
    for line in results["results"]:
        if line["method"] == "td-lr":
            assert line["tree_error"] == line["tree_error_modified"]
            assert line["hierarchical_f1"] == line["hierarchical_f1_modified"]


def test_flat_predictions_have_modified_tree_errors_of_zero_or_two(results):
    for line in results["results"]:
        if line["method"] == "lr":
            wrong = 1 - line["micro_f1"]
            assert line["tree_error_modified"] == pytest.approx(2 * wrong)


def test_curve_is_at_least_the_chosen_score_of_global_inf(results):
    curve = results["threshold_curve"]
    assert len(curve["psi"]) == 31
    for run in curve["runs"]:
        chosen = next(
            r
            for r in results["results"]
            if r["method"] == "global-inf" and r["seed"] == run["seed"]
        )
        at = curve["psi"].index(chosen["psi"])
        assert run["macro_f1"][at] == max(run["macro_f1"])


def test_every_level_has_as_many_children_as_nodes_below(results, problem):
    fan_out = results["fan_out"]
    assert sum(fan_out["before"]) == problem.taxonomy.n_nodes - 1
    for run, line in zip(
        fan_out["after_by_run"],
        (r for r in results["results"] if r["method"] == "global-inf"),
        strict=True,
    ):
        assert sum(run) == problem.taxonomy.n_nodes - 1 - line["n_removed"]


def test_last_level_counts_all_wrong_rows(results, problem):
    for method, levels in results["level_errors"].items():
        micro = results["summary"][method]["micro_f1"]["mean"]
        wrong = (1 - micro) * len(problem.test_leaf)
        assert levels[-1]["n_misclassified"]["mean"] == pytest.approx(wrong)


def test_class_sizes_cover_every_class(results, problem):
    sizes = results["class_sizes"]
    assert sum(sizes["bins"].values()) == len(problem.classes)
    table = results["by_class_size"]
    assert sum(cell["n_classes"] for name, cell in table.items() if name != "all") == len(
        problem.classes
    )
    assert table["all"]["lr"]["macro_f1"]["mean"] == pytest.approx(
        results["summary"]["lr"]["macro_f1"]["mean"]
    )


@pytest.fixture
def shop_folder(tmp_path):
    rng = np.random.default_rng(0)
    tree = {"3": (0, 1), "4": (0, 2), "5": (3, 1), "6": (3, 2)}
    for name, n in (("train", 120), ("test", 40)):
        lines = []
        for i in range(n):
            label = "3456"[i % 4]
            words = {1 + w: rng.integers(1, 4) for w in tree[label]}
            words[10 + rng.integers(5)] = 1
            lines.append(f"{label} " + " ".join(f"{w}:{c}" for w, c in sorted(words.items())))
        (tmp_path / f"{name}.svm").write_text("\n".join(lines) + "\n")
    (tmp_path / "hierarchy.txt").write_text("1 3\n1 4\n2 5\n2 6\n")
    return tmp_path


def test_a_folder_of_ones_own_is_reproduced_and_resumed(shop_folder, tmp_path, solved):
    out = tmp_path / "out"
    protocol = Protocol(n_runs=1, Cs=(1.0, 10.0))
    stages = []
    first = run_reproduction(
        shop_folder, out, protocol=protocol, progress=lambda *call: stages.append(call)
    )
    assert first["summary"]["lr"]["micro_f1"]["mean"] == 1.0
    assert stages
    for file in ("results.json", "tables.md", "figures/threshold-curve.html"):
        assert (out / file).stat().st_size > 0
    assert json.loads((out / "results.json").read_text())["dataset"] == shop_folder.name
    solved.clear()
    again = run_reproduction(shop_folder, out, protocol=protocol)
    assert not solved
    assert again["results"][0]["macro_f1"] == first["results"][0]["macro_f1"]


def test_without_plotly_tables_are_written_and_a_note_says_what_to_install(
    shop_folder, tmp_path, monkeypatch
):
    monkeypatch.setitem(sys.modules, "plotly", None)
    protocol = Protocol(n_runs=1, Cs=(1.0,), methods=("td-lr", "global-inf"), measures_time=False)
    results = run_reproduction(shop_folder, tmp_path / "out", protocol=protocol)
    assert any("taxofit[report]" in note for note in results["notes"])
    assert (tmp_path / "out" / "tables.md").exists()


def test_a_damaged_piece_is_made_again(shop_folder, tmp_path):
    out = tmp_path / "out"
    protocol = Protocol(n_runs=1, Cs=(1.0,), methods=("lr",), measures_time=False)
    first = run_reproduction(shop_folder, out, protocol=protocol, draws_figures=False)
    for piece in (out / "cache").iterdir():
        piece.write_bytes(b"PK\x03\x04 not any more")
    again = run_reproduction(shop_folder, out, protocol=protocol, draws_figures=False)
    assert again["results"][0]["micro_f1"] == first["results"][0]["micro_f1"]
