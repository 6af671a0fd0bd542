"""What every view is put together from: tables, and texts that stay on their line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

__all__ = ["clean", "fact_table", "shown_labels", "titled_table"]

N_LABELS_SHOWN = 10


def clean(value: object) -> str:
    r"""Return a text on one line without characters that would steer a terminal.

    Examples
    --------
    >>> clean("two\nlines")
    'two lines'
    """
    return "".join(
        character if character.isprintable() else " " if character.isspace() else "�"
        for character in str(value)
    )


def shown_labels(labels: Sequence[Hashable]) -> str:
    """Return the first labels, and how many more there are.

    Examples
    --------
    >>> shown_labels(["Kettles", "Cups"]), shown_labels(range(12))
    ('Kettles, Cups', '0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more')
    """
    more = f" and {len(labels) - N_LABELS_SHOWN:,} more" * (len(labels) > N_LABELS_SHOWN)
    return ", ".join(clean(label) for label in labels[:N_LABELS_SHOWN]) + more


def titled_table(title: str | None) -> Table:
    """Return an empty table with a line under its headings."""
    return Table(
        title=None if title is None else Text(title, style="bold"),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
    )


def fact_table() -> Table:
    """Return an empty table of names and what is said of them."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="cyan", no_wrap=True)
    table.add_column(overflow="fold")
    return table
