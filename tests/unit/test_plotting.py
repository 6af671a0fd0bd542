"""Figures from results; plotly is imported only where a figure is drawn."""

import subprocess
import sys

import pytest

from taxofit import plotting


def test_importing_plotting_does_not_import_plotly():
    code = "import sys, taxofit.plotting, taxofit.experiment; assert 'plotly' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_curve_has_a_line_for_each_run_one_for_the_mean_and_one_for_flat():
    pytest.importorskip("plotly")
    results = {
        "dataset": "toy",
        "threshold_curve": {
            "psi": [0.0, 0.1],
            "runs": [{"seed": 0, "C": 1.0, "macro_f1": [0.4, 0.3]}],
            "macro_f1": [0.4, 0.3],
            "flat_macro_f1": 0.5,
        },
    }
    figure = plotting.plot_threshold_curve(results)
    assert [line.name for line in figure.data] == ["seed 0, C=1", "Global-INF, mean", "flat LR"]
    assert list(figure.data[1].y) == [40.0, 30.0]
    assert set(figure.data[2].y) == {50.0}


def test_every_figure_has_a_part_of_the_results_to_draw():
    assert len(plotting.FIGURES) == 9
    assert {part for part, _ in plotting.FIGURES.values()} == {
        "by_class_size", "class_sizes", "fan_out", "level_errors", "runtimes", "significance",
        "threshold_curve",
    }  # fmt: skip
