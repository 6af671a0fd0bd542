"""A fitted classifier in a notebook: what was removed and what was chosen, at a glance."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from sklearn import get_config

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["NotebookSummary"]

N_REMOVED_SHOWN = 12
STYLE = (
    "display:inline-block;max-width:60em;padding:10px 14px;border:1px solid #8884;"
    "border-radius:8px;font:14px/1.5 sans-serif"
)


class NotebookSummary:
    """Gives an estimator a compact HTML summary once it is fitted.

    It stands before scikit-learn's BaseEstimator among the bases. Before fitting, and where
    ``sklearn.set_config(display="text")`` asks for plain text, scikit-learn decides as ever.
    """

    @property
    def _repr_html_(self) -> Callable[[], str]:
        """As in scikit-learn a property, so that it can be absent."""
        usual: Callable[[], str] = super()._repr_html_  # type: ignore[misc]
        return (lambda: summary_html(self)) if hasattr(self, "taxonomy_") else usual

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        """Return what Jupyter asks for first."""
        bundle: dict[str, Any] = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        if hasattr(self, "taxonomy_") and get_config()["display"] == "diagram":
            bundle["text/html"] = summary_html(self)
        return bundle


def summary_html(classifier: Any) -> str:
    """Return a fitted classifier as a few lines of HTML; labels are escaped.

    Examples
    --------
    >>> from taxofit import TaxonomyClassifier
    >>> model = TaxonomyClassifier(flattening="td-lr", C=1.0)
    >>> "2 leaves" in summary_html(model.fit([[0.0], [1.0]], ["cat", "dog"]))
    True
    """
    original, repaired = classifier.original_taxonomy_, classifier.taxonomy_
    score = classifier.validation_score_
    facts = [
        f"C = {classifier.C_:g}",
        *([f"ψ = {classifier.psi_:g}"] if isinstance(classifier.psi_, float) else []),
        *([f"validation MF1 {score:.2%}"] if score == score else []),  # noqa: PLR0124  (not NaN)
    ]
    method = classifier.flattening
    shown = method if isinstance(method, str) else repr(method)
    return (
        f'<div style="{STYLE}"><b>TaxonomyClassifier</b> · {escape(shown)}<br>'
        f"{original.n_nodes:,} → {repaired.n_nodes:,} nodes, {original.n_leaves:,} leaves · "
        f"{' · '.join(facts)}<br>{_removed(classifier.removed_)}</div>"
    )


def _removed(labels: tuple[Any, ...]) -> str:
    if not labels:
        return "nothing removed"
    shown = ", ".join(escape(str(label)) for label in labels[:N_REMOVED_SHOWN])
    more = len(labels) - N_REMOVED_SHOWN
    return f"removed: {shown}" + (f" and {more:,} more" if more > 0 else "")
