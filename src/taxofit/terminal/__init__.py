"""What people see: tables of reports, progress bars, and errors in one line."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

# Resolved on first use: a command draws one or two of these.
_HOME = {
    "clean": "elements",
    "data_output": "streams",
    "log_to_stderr": "streams",
    "prepare_streams": "streams",
    "progress_bars": "progress",
    "row_bar": "progress",
    "show_comparison": "scores",
    "show_demo": "experiments",
    "show_description": "description",
    "show_error": "messages",
    "show_estimate": "messages",
    "show_evaluation": "scores",
    "show_explanation": "explanation",
    "show_fit": "training",
    "show_flatten": "training",
    "show_json": "streams",
    "show_prediction": "messages",
    "show_report": "messages",
    "show_reproduction": "experiments",
    "show_service": "messages",
    "show_warning": "messages",
}

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


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'taxofit.terminal' has no attribute {name!r}")
    return getattr(import_module(f"taxofit.terminal.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__
