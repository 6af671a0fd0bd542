"""One HTML file: text and tables from here, figures and the explorer drawn by its own script.

Everything is inside the file, plotly included. A content security policy forbids all requests and
every script but those written here, which it knows by their hashes. Labels are never markup: HTML
is escaped, data travels as JSON, and the script only ever sets texts.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html import escape
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from taxofit._version import __version__
from taxofit.errors import DataError
from taxofit.report import sections
from taxofit.report.figures import page_figures
from taxofit.whole_file import check_target, whole_file

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["render_report", "write_report"]

STYLES = ("base.css", "cards.css", "explorer.css", "tables.css", "media.css")
SCRIPTS = (
    "data.js",
    "theme.js",
    "charts.js",
    "state.js",
    "details.js",
    "tree.js",
    "icicle.js",
    "threshold.js",
    "search.js",
    "main.js",
)
EARLY_SCRIPT = "early.js"
# What the script needs of a study; the rest is in the page already, as text or figures.
EXPLORED = ("method", "psi", "data", "nodes", "candidates", "features", "examples")
MISSING_PLOTLY = "a report is drawn with plotly, which is missing; pip install 'taxofit[report]'"


def write_report(content: Mapping[str, Any], file: str | Path) -> Path:
    """Write a study or results as a page, all of it or nothing; return the file.

    Parameters
    ----------
    content : mapping
        What :func:`taxofit.study.study_fit` returns, or what a ``results.json`` holds.
    file : path
        An earlier file is replaced.

    Examples
    --------
    >>> import tempfile
    >>> from taxofit import TaxonomyClassifier
    >>> from taxofit.datasets import make_shop_catalogue
    >>> from taxofit.study import study_fit
    >>> shop = make_shop_catalogue(500)
    >>> model = TaxonomyClassifier(shop.taxonomy, C=1.0, encoder="words").fit(shop.texts, shop.y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = write_report(study_fit(model, shop.texts), f"{folder}/report.html")
    ...     page.name, page.stat().st_size < 15e6
    ('report.html', True)
    """
    file = Path(file)
    check_target(file)
    page = render_report(content).encode("utf-8", errors="replace")  # labels may hold surrogates
    with whole_file(file) as stream:
        stream.write(page)
    return file


def render_report(content: Mapping[str, Any]) -> str:
    """Return the page of a study or of results as HTML."""
    plotly_script = _plotly_script()
    try:
        figures = page_figures(dict(content))
        is_study = content.get("kind") == "study"
        body = (sections.of_study if is_study else sections.of_results)(content, figures)
        data = {
            "figures": {name: figure["figure"] for name, figure in figures.items()},
            "study": _explored(content) if is_study else None,
        }
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        raise DataError(
            f"the results cannot be shown: {type(error).__name__} {error}; were they changed, or "
            f"written by another version?"
        ) from error
    early = _asset(EARLY_SCRIPT)
    script = "(() => {\n" + "\n".join(_asset(name) for name in SCRIPTS) + "\n})();\n"
    return _fill(
        _asset("page.html"),
        {
            "policy": _policy(early, script, plotly_script),
            "title": escape(body.title),
            "style": "\n".join(_asset(name) for name in STYLES),
            "early": early,
            "navigation": body.navigation,
            "main": body.main,
            "version": escape(__version__),
            "data": embeddable_json(data),
            "script": script,
            "plotly": plotly_script,
        },
    )


def embeddable_json(value: object) -> str:
    r"""Return JSON that can stand inside a script element: no character of it is markup.

    Examples
    --------
    >>> embeddable_json({"label": "</script><script>alert(1)"})
    '{"label":"\\u003c/script\\u003e\\u003cscript\\u003ealert(1)"}'
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _explored(study: Mapping[str, Any]) -> dict[str, Any]:
    confusion = {walk: study["confusion"][walk] for walk in ("before", "after")}
    lines = {line["method"]: line for line in study["results"]}
    return {
        **{part: study[part] for part in EXPLORED},
        "confusion": confusion,
        "original": lines["td-lr"],
        "fitted": lines[study["method"]],
    }


def _policy(*scripts: str) -> str:
    """Return the content security policy; plotly sets styles, so those are not restricted."""
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
        for text in scripts
    )
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; "
        f"img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


def _plotly_script() -> str:
    try:
        from plotly.offline import get_plotlyjs
    except ModuleNotFoundError:
        raise DataError(MISSING_PLOTLY) from None
    return get_plotlyjs().replace("\r\n", "\n").replace("</script", "<\\/script")


def _asset(name: str) -> str:
    return resources.files("taxofit.report").joinpath("assets", name).read_text(encoding="utf-8")


def _fill(template: str, values: Mapping[str, str]) -> str:
    """Return the template with each {{name}} replaced; what is put in is not looked at again."""
    return re.sub(r"\{\{(\w+)\}\}", lambda match: values[match[1]], template)
