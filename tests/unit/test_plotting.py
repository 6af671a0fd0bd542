"""Figures from results; plotly is imported only where a figure is drawn."""

import subprocess
import sys

import pytest

from taxofit import TaxonomyError, plotting


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


@pytest.fixture(scope="module")
def study():
    """Return what figures need of a study: a root with two tops, one removed, and many leaves."""
    return {
        "dataset": "toy",
        "nodes": {
            "parent": [-1, 0, 0, 1, 1, 2, *[2] * 30],
            "name": ["all", "Home", "<i>Gifts</i>", "Mugs", "Kettles", "Bowls"]
            + [f"Rare {k}" for k in range(30)],
            "rows": [20_030, 10_000, 10_030, 4000, 6000, 10_000, *[1] * 30],
            "objective": [None, 2.0, 9.0, 1.0, 1.5, 1.2, *[1.0] * 30],
            "percentile": [None, 90, 97, 0, 60, 50, *[0] * 30],
            "removed": [2],
        },
        "candidates": {"mean": 1.5, "deviation": 1.5},
        "confusion": {"leaves": [[3, 4, 5, 1], [4, 5, 2, 0], [5, 3, 1, 1]]},
    }


def test_the_icicle_marks_removed_nodes_by_more_than_colour_and_shows_names_as_text(study):
    pytest.importorskip("plotly")
    (trace,) = plotting.plot_taxonomy(study).data
    labels = dict(zip(trace.ids, trace.labels, strict=True))
    shapes = dict(zip(trace.ids, trace.marker.pattern.shape, strict=True))
    assert (labels["2"], shapes["2"]) == ("✕ &lt;i&gt;Gifts&lt;/i&gt;", "/")
    assert (labels["1"], shapes["1"]) == ("Home", "")
    assert dict(zip(trace.ids, trace.parents, strict=True))["3"] == "1"


def test_small_siblings_share_one_sector_of_all_their_rows(study):
    pytest.importorskip("plotly")
    (trace,) = plotting.plot_taxonomy(study).data
    assert dict(zip(trace.ids, trace.labels, strict=True))["2-more"] == "30 more"
    assert dict(zip(trace.ids, trace.values, strict=True))["2-more"] == 30
    assert len(trace.ids) == 7
    (from_top,) = plotting.plot_taxonomy(study, root="Home").data
    assert list(from_top.ids) == ["1", "3", "4"]


def test_harder_nodes_are_darker(study):
    pytest.importorskip("plotly")
    from plotly.colors import unlabel_rgb

    (trace,) = plotting.plot_taxonomy(study).data
    colour = dict(zip(trace.ids, trace.marker.colors, strict=True))
    lightness = {node: sum(unlabel_rgb(colour[node])) for node in ("1", "2", "3")}
    assert lightness["2"] < lightness["1"] < lightness["3"]


def test_a_node_that_is_not_there_is_a_taxonomy_error(study):
    pytest.importorskip("plotly")
    with pytest.raises(TaxonomyError, match="no node 'Hoem'"):
        plotting.plot_taxonomy(study, root="Hoem")


def test_confused_leaves_stand_in_the_taxonomys_order_in_both_maps(study):
    pytest.importorskip("plotly")
    before = plotting.plot_confused_leaves(study)
    after = plotting.plot_confused_leaves(study, walk="after")
    assert list(before.layout.xaxis.ticktext) == ["Mugs", "Kettles", "Bowls"]
    assert [list(line) for line in before.data[0].z] == [[0, 5, 0], [0, 0, 2], [1, 0, 0]]
    assert [list(line) for line in after.data[0].z] == [[0, 1, 0], [0, 0, 0], [1, 0, 0]]
    assert before.data[0].zmax == after.data[0].zmax == 5
