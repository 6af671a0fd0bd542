"""Tables and facts of a page, as HTML with every value escaped."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from taxofit.methods import TITLES
from taxofit.report.headline import SCORES, show_p

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ["facts", "methods_of_runs", "methods_of_study", "significance_of_study", "table"]

PLAIN_NAMES = {"lr": "Flat, no taxonomy", "td-lr": "Original taxonomy"}


def table(head: Sequence[str], rows: Iterable[Sequence[str]], caption: str) -> str:
    """Return a table; the cells are HTML already.

    Examples
    --------
    >>> table(["a", "b"], [["1", "2"]], "Two numbers")
    '<div class="card table-card"><h3>Two numbers</h3>...'
    """
    heading = "".join(f'<th scope="col">{cell}</th>' if cell else "<td></td>" for cell in head)
    body = "".join(
        f'<tr><th scope="row">{first}</th>{"".join(f"<td>{cell}</td>" for cell in rest)}</tr>'
        for first, *rest in rows
    )
    return (
        f'<div class="card table-card"><h3>{escape(caption)}</h3>'
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption)}">'
        f"<table><thead><tr>{heading}</tr></thead><tbody>{body}</tbody></table></div></div>"
    )


def facts(values: Mapping[str, object]) -> str:
    """Return names and values as a description list."""
    return "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(_shown(value))}</dd></div>"
        for name, value in values.items()
    )


def methods_of_study(study: Mapping[str, Any]) -> str:
    """Return the scores of flat, original and repaired taxonomy."""
    lines = study["results"]
    rows = []
    for line in lines:
        name = PLAIN_NAMES.get(line["method"], study["titles"][line["method"]].capitalize())
        title = f"{escape(name)} <small>{escape(_title(line['method']))}</small>"
        cells = [_best(line[score], [x[score] for x in lines], score) for score in SCORES]
        rows.append([title, f"{line['n_nodes']:,}", f"{line['n_removed']:,}", *cells])
    head = ["", "nodes", "removed", *(_heading(score) for score in SCORES)]
    n_rows = study["data"]["n_validation"]
    return table(head, rows, f"Scores on {n_rows:,} held-out rows, all at C = {study['C']:g}")


def significance_of_study(study: Mapping[str, Any]) -> str:
    """Return the two tests of the repaired taxonomy against its rivals."""
    rows = [
        [
            f"against {escape(PLAIN_NAMES.get(rival, rival).lower())}",
            f"{found['n_rows_better']:,}",
            f"{found['n_rows_worse']:,}",
            show_p(found["sign_p_value"]).removeprefix("= "),
            f"{found['n_classes_better']:,}",
            f"{found['n_classes_worse']:,}",
            show_p(found["wilcoxon_p_value"]).removeprefix("= "),
        ]
        for rival, found in study["against"].items()
    ]
    if not rows:
        return ""
    head = ["", "rows it alone gets right", "rows it alone gets wrong", "sign test p"]
    head += ["classes better", "classes worse", "Wilcoxon p"]
    return table(head, rows, "Is the repaired taxonomy better by more than chance?")


def methods_of_runs(results: Mapping[str, Any]) -> str:
    """Return mean and standard deviation of every method over the runs."""
    summary = results["summary"]
    rows = []
    for method, scores in summary.items():
        cells = [
            _best(
                scores[score]["mean"],
                [other[score]["mean"] for other in summary.values()],
                score,
                spread=scores[score]["std"] or 0.0,
            )
            for score in SCORES
        ]
        rows.append([escape(_title(method)), *cells])
    n_test = results["data"]["n_test"]
    caption = f"Scores on {n_test:,} test rows, mean and standard deviation over runs"
    return table(["", *(_heading(score) for score in SCORES)], rows, caption)


def _heading(score: str) -> str:
    sign, meaning, _ = SCORES[score]
    return f"{escape(sign)} <small>{escape(meaning)}</small>"


def _best(value: float, among: Sequence[float], name: str, *, spread: float | None = None) -> str:
    """Return a score, in bold where it is the best of its column."""
    score = SCORES[name]
    best = min(among) if score.is_error else max(among)
    shown = score.show(value)
    shown = f'<strong title="best of the column">{shown}</strong>' if value == best else shown
    if spread is None:
        return shown
    scale = 1 if score.is_error else 100
    return f"{shown} <small>± {scale * spread:.{3 if score.is_error else 2}f}</small>"


def _title(method: str) -> str:
    return TITLES.get(method, method)


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_shown, value)) or "none"
    return "none" if value is None else str(value)
