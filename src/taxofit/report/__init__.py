"""Reports: a study, or the results of a reproduction, as one HTML page that needs no network."""

from taxofit.report.page import render_report, write_report

__all__ = ["render_report", "write_report"]
