"""A hook of MkDocs: Sphinx's roles in docstrings, such as ``:func:`name```, become links."""

from __future__ import annotations

import re
from typing import Any

ROLE = re.compile(r":(?:attr|class|data|exc|func|meth|mod):<code>(~?)([\w.]+)</code>")


def on_page_content(html: str, **_: Any) -> str:
    """Return a page whose roles are links where their target is on some page, else plain code."""
    return ROLE.sub(_link, html)


def _link(role: re.Match[str]) -> str:
    is_short, target = role.groups()
    shown = target.rpartition(".")[2] if is_short else target
    return f'<autoref optional identifier="{target}"><code>{shown}</code></autoref>'
