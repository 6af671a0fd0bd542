"""The paper's results on its own data; five runs are slow, one is quick."""

import pytest
from tests.real_data import real_data

from taxofit.experiment import Protocol, run_reproduction


def mean(results, method, score):
    return 100 * results["summary"][method][score]["mean"]


@pytest.mark.parametrize("name", ["clef"])
def test_one_run_at_one_cost_repairs_the_taxonomy(name, tmp_path):
    folder = real_data(name.upper()).parent
    protocol = Protocol(n_runs=1, Cs=(1.0,), methods=("td-lr", "global-inf"), measures_time=False)
    results = run_reproduction(name, tmp_path, data=folder, protocol=protocol, draws_figures=False)
    assert results["data"]["n_nodes"] == 88
    assert mean(results, "global-inf", "micro_f1") > mean(results, "td-lr", "micro_f1") + 3
    assert mean(results, "global-inf", "macro_f1") > mean(results, "td-lr", "macro_f1") + 8
    against = results["significance"]["global_inf_against"]["td-lr"][0]
    assert against["sign_p_value"] < 0.05
    assert against["wilcoxon_p_value"] < 0.05


@pytest.mark.slow
def test_clef_in_five_runs(tmp_path):
    folder = real_data("CLEF").parent
    results = run_reproduction("clef", tmp_path, data=folder)
    assert set(results["summary"]) == {
        "td-lr", "tlf", "blf", "mta", "level-inf", "global-inf", "lr", "ecoc"
    }  # fmt: skip
    assert mean(results, "global-inf", "micro_f1") >= 76
    assert mean(results, "global-inf", "macro_f1") >= 46
    assert mean(results, "global-inf", "micro_f1") >= mean(results, "td-lr", "micro_f1") + 3
    assert mean(results, "global-inf", "macro_f1") >= mean(results, "td-lr", "macro_f1") + 8
    for run in results["significance"]["global_inf_against"]["td-lr"]:
        assert run["sign_p_value"] < 0.05
        assert run["wilcoxon_p_value"] < 0.05


@pytest.mark.slow
def test_diatoms_in_five_runs(tmp_path):
    folder = real_data("DIATOMS").parent
    protocol = Protocol(methods=("td-lr", "tlf", "blf", "global-inf", "lr"), measures_time=False)
    results = run_reproduction("diatoms", tmp_path, data=folder, protocol=protocol)
    assert mean(results, "global-inf", "micro_f1") >= 60
    assert mean(results, "global-inf", "macro_f1") >= 50
    assert mean(results, "td-lr", "micro_f1") == pytest.approx(54, abs=1)
    assert mean(results, "td-lr", "macro_f1") == pytest.approx(44, abs=1)
