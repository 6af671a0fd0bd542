"""What a model, a data file or a hierarchy file holds, without training or predicting anything."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from taxofit.datasets import BadRows, iter_table, read_arff, read_hierarchy, read_svmlight
from taxofit.datasets.hierarchy import HEADERS
from taxofit.errors import DataError, TaxofitError
from taxofit.methods import flattening_from_json
from taxofit.model_store import MANIFEST, load_model, read_manifest
from taxofit.workflow.file_formats import SUFFIXES, format_of, suffix_of

if TYPE_CHECKING:
    from taxofit.taxonomy import Taxonomy

__all__ = ["describe", "describe_file", "describe_model"]

N_EXAMPLES = 3
N_CHARACTERS = 60


def describe(path: str) -> dict[str, Any]:
    """Return what a model folder, a file or a folder of texts holds, as JSON values.

    ``kind`` comes first.
    """
    is_texts = Path(path).is_dir() and not (Path(path) / MANIFEST).exists()
    if not Path(path).is_dir() or (is_texts and any(Path(path).iterdir())):
        return describe_file(path)
    return describe_model(path)


def describe_model(folder: str) -> dict[str, Any]:
    """Return what a model was trained on and what became of its taxonomy."""
    manifest = read_manifest(folder)
    classifier = load_model(folder)
    notes = manifest.get("notes", {})
    method = flattening_from_json(manifest["settings"]["flattening"])
    source = {key: value for key, value in notes.get("source", {}).items() if key != "feature_ids"}
    original = classifier.original_taxonomy_
    score = classifier.validation_score_
    psi = manifest["fitted"]["psi"]
    return {
        "kind": "model",
        "method": method if isinstance(method, str) else repr(method),
        "C": classifier.C_,
        "psi": psi,
        "validation_macro_f1": None if np.isnan(score) else score,
        "validation": _shown_ways(notes.get("validation")),
        "file": notes.get("file"),
        "rows": notes.get("rows"),
        "features": int(classifier.n_features_in_),
        "encoder": None if classifier.encoder_ is None else repr(classifier.encoder_),
        "reads": source or None,
        "leaves": original.n_leaves,
        "predictable_leaves": len(classifier.classes_),
        "nodes": original.n_nodes,
        "nodes_kept": classifier.taxonomy_.n_nodes,
        "depth": original.depth,
        "removed": list(classifier.removed_),
        "bytes": sum(file.stat().st_size for file in Path(folder).iterdir()),
        "taxofit_version": manifest.get("taxofit_version"),
    }


def _shown_ways(ways: dict[str, Any] | None) -> dict[str, float] | None:
    """Return the macro-F1 of flat, original and repaired on the held-out rows."""
    return None if ways is None else {way["name"]: way["macro_f1"] for way in ways["ways"]}


def describe_file(file: str) -> dict[str, Any]:
    """Return what a table, svmlight, ARFF or hierarchy file holds."""
    kind = format_of(file)
    if kind == "svmlight":
        return _describe_svmlight(file)
    if kind == "arff":
        data = read_arff(file, internal_labels="keep")
        return {
            "kind": "arff",
            "rows": data.n_rows,
            "features": data.n_features,
            "labels_seen": len(set(data.y.tolist())),
            **_describe_taxonomy(data.taxonomy),
        }
    if suffix_of(file) not in SUFFIXES:
        with suppress(TaxofitError):  # what is no hierarchy may still be a table
            return {"kind": "hierarchy", **_describe_taxonomy(read_hierarchy(file))}
    return _describe_table(file)


def _describe_svmlight(file: str) -> dict[str, Any]:
    rows = read_svmlight(file, multilabel=True, compact=True)
    labels = rows.y.tolist()
    return {
        "kind": "svmlight",
        "rows": len(labels),
        "features": rows.X.shape[1],
        "entries": int(rows.X.nnz),
        "labels_seen": len({label for row in labels for label in row}),
        "rows_with_several_labels": sum(len(row) > 1 for row in labels),
        "feature_0_in_rows": (
            int(np.count_nonzero(rows.X.indices == 0)) if 0 in rows.feature_ids[:1] else 0
        ),
    }


def _describe_table(file: str) -> dict[str, Any]:
    columns: list[dict[str, Any]] = []
    values: dict[str, set[Any]] = {}
    n_rows = 0
    notes: tuple[str, ...] = ()
    bad_rows = BadRows()
    for chunk in iter_table(file, bad_rows=bad_rows):
        if not n_rows:
            notes = chunk.notes
            columns = [
                {"name": name, "examples": [_short(value) for value in cells[:N_EXAMPLES]]}
                for name, cells in chunk.columns.items()
            ]
            values = {name: set() for name in chunk.columns}
        for name, cells in chunk.columns.items():
            values[name].update(map(str, cells))
        n_rows += chunk.n_rows
    for column in columns:
        column["distinct"] = len(values[column["name"]])
    if {str(column["name"]).lower() for column in columns} in HEADERS:
        return {"kind": "hierarchy", **_describe_taxonomy(read_hierarchy(file))}
    if not columns:
        raise DataError(f"{file}: the table has no columns")
    said = [*notes, *map(str, bad_rows.left_out)]
    return {"kind": "table", "rows": n_rows, "columns": columns, "notes": said}


def _describe_taxonomy(taxonomy: Taxonomy) -> dict[str, Any]:
    return {
        "nodes": taxonomy.n_nodes,
        "leaves": taxonomy.n_leaves,
        "internal_nodes": len(taxonomy.internal_nodes),
        "depth": taxonomy.depth,
        "nodes_per_level": [len(nodes) for nodes in taxonomy.nodes_by_level()],
        "single_child_nodes": int(
            np.count_nonzero(taxonomy.is_internal & (np.diff(taxonomy.first_child) == 1))
        ),
    }


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= N_CHARACTERS else f"{text[: N_CHARACTERS - 1]}…"
