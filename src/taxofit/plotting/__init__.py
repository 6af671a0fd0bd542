"""Figures with plotly: of results.json, and of the study that a fit leaves behind.

Functions of scores take either, since the parts they draw have one shape in both; those of
taxonomies take a study (:func:`taxofit.study.study_fit`). plotly is an optional extra
(``pip install 'taxofit[report]'``) and is imported where it is used.
"""

from taxofit.plotting.confusion import plot_confused_leaves, plot_error_kinds
from taxofit.plotting.files import FIGURES, write_figures
from taxofit.plotting.scores import (
    plot_by_class_size,
    plot_class_sizes,
    plot_fan_out,
    plot_level_errors,
    plot_p_values,
    plot_runtimes,
    plot_threshold_curve,
)
from taxofit.plotting.taxonomy import plot_taxonomy

__all__ = [
    "FIGURES",
    "plot_by_class_size",
    "plot_class_sizes",
    "plot_confused_leaves",
    "plot_error_kinds",
    "plot_fan_out",
    "plot_level_errors",
    "plot_p_values",
    "plot_runtimes",
    "plot_taxonomy",
    "plot_threshold_curve",
    "write_figures",
]
