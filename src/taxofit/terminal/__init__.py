"""What people see: tables of reports, progress bars, and errors in one line."""

from taxofit.terminal.description import show_description
from taxofit.terminal.elements import clean
from taxofit.terminal.experiments import show_demo, show_reproduction
from taxofit.terminal.explanation import show_explanation
from taxofit.terminal.messages import (
    show_error,
    show_estimate,
    show_prediction,
    show_report,
    show_service,
    show_warning,
)
from taxofit.terminal.progress import progress_bars, row_bar
from taxofit.terminal.scores import show_comparison, show_evaluation
from taxofit.terminal.streams import data_output, log_to_stderr, prepare_streams, show_json
from taxofit.terminal.training import show_fit, show_flatten

__all__ = [
    "clean",
    "data_output",
    "log_to_stderr",
    "prepare_streams",
    "progress_bars",
    "row_bar",
    "show_comparison",
    "show_demo",
    "show_description",
    "show_error",
    "show_estimate",
    "show_evaluation",
    "show_explanation",
    "show_fit",
    "show_flatten",
    "show_json",
    "show_prediction",
    "show_report",
    "show_reproduction",
    "show_service",
    "show_warning",
]
