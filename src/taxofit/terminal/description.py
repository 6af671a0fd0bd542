"""What `info` tells of a model or a file: facts, and the columns of a table."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.text import Text

from taxofit.terminal.elements import clean, fact_table, shown_labels, titled_table
from taxofit.terminal.messages import show_notes

__all__ = ["show_description"]

FRACTIONS = {"validation_macro_f1", "validation"}


def show_description(description: dict[str, Any], path: str) -> None:
    """Print what a model or a file holds."""
    console = Console()
    facts = dict(description)
    columns = facts.pop("columns", None)
    show_notes(console, facts.pop("notes", ()))
    console.print(Text(f"{clean(path)}: {facts.pop('kind')}", style="bold"), soft_wrap=True)
    table = fact_table()
    for name, value in facts.items():
        if value is not None and value != []:
            table.add_row(name.replace("_", " "), _shown_value(name, value))
    console.print(table)
    if columns is not None:
        listed = titled_table("Columns")
        listed.add_column("name", style="cyan")
        listed.add_column("distinct", justify="right")
        listed.add_column("first values")
        for column in columns:
            examples = " · ".join(clean(value) for value in column["examples"])
            listed.add_row(Text(clean(column["name"])), f"{column['distinct']:,}", Text(examples))
        console.print()
        console.print(listed)


def _shown_value(name: str, value: Any) -> Text:
    if isinstance(value, dict):
        shown = _shown_fraction if name in FRACTIONS else _shown_option
        return Text(" · ".join(f"{key} {shown(part)}" for key, part in value.items()))
    if isinstance(value, (list, tuple)):
        return Text(shown_labels(value))
    if name in FRACTIONS:
        return Text(_shown_fraction(value))
    if isinstance(value, int) and not isinstance(value, bool):
        return Text(f"{value:,}")
    return Text(f"{value:g}" if isinstance(value, float) else clean(value))


def _shown_fraction(value: object) -> str:
    return f"{value:.2%}" if isinstance(value, (int, float)) else _shown_option(value)


def _shown_option(value: object) -> str:
    values = value if isinstance(value, (list, tuple)) else (value,)
    return ", ".join(clean(repr(part)) for part in values)
