"""What is fuzzed: every reader and `load_model`, each with valid files to begin with.

A target takes bytes. It may raise a TaxofitError, which says what is wrong; anything else that
comes out is a bug.
"""

from __future__ import annotations

import functools
import hashlib
import io
import json
import tempfile
import warnings
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from tests.fuzz.mutations import mutate_binary, mutate_json, mutate_safetensors, mutate_text

from taxofit import TaxonomyClassifier, load_model
from taxofit.datasets import (
    TextEncoder,
    iter_arff,
    iter_svmlight,
    iter_table,
    read_arff,
    read_hierarchy,
    read_svmlight,
    read_table,
)
from taxofit.datasets.label_paths import guess_path_separator, labels_of_paths, split_path
from taxofit.datasets.streams import CountedBytes, unpacked
from taxofit.errors import TaxofitError
from taxofit.model_store import save_model
from taxofit.workflow.describing import describe_file
from taxofit.workflow.inputs import open_rows
from taxofit.workflow.predict_options import PredictOptions
from taxofit.workflow.sources import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.fuzz.mutations import Mutation

MANIFEST, WEIGHTS, ENCODER = "manifest.json", "weights.safetensors", "encoder.safetensors"
TITLES = ["red mug", "blue mug", "steel kettle", "old kettle", "small fish", "large fish"]
PATHS = ["Home > Mugs", "Home > Mugs", "Home > Kettles", "Home > Kettles", "Pets", "Pets"]
SOURCE = Source(format="table", text=("title",), label_path="path", separator=" > ")


@dataclass(frozen=True)
class Target:
    """Something that reads bytes.

    Attributes
    ----------
    read : callable
        From bytes to whatever; all but a TaxofitError is a bug.
    corpus : callable
        Gives valid files, made on the spot.
    mutate : callable
        Changes one of them.
    """

    read: Callable[[bytes], object]
    corpus: Callable[[], Sequence[bytes]]
    mutate: Mutation = mutate_text

    def __call__(self, data: bytes) -> None:
        """Read bytes that may be anything."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with suppress(TaxofitError):
                self.read(data)


@functools.cache
def _folder() -> Path:
    folder = tempfile.TemporaryDirectory(prefix="taxofit-fuzz-")
    _KEPT.append(folder)
    return Path(folder.name)


_KEPT: list[Any] = []


def _file(data: bytes, suffix: str) -> Path:
    file = _folder() / f"input{suffix}"
    file.write_bytes(data)
    return file


# ---------------------------------------------------------------------- readers


def _svmlight(data: bytes) -> None:
    file = _file(data, ".svm")
    for options in ({"compact": True}, {"multilabel": True, "compact": True}):
        with suppress(TaxofitError):
            read_svmlight(file, **options)
    with suppress(TaxofitError):
        list(iter_svmlight(file, feature_ids=[1, 3, 7], ignore_features=[0]))
    describe_file(str(file))


def _svmlight_files() -> list[bytes]:
    return [
        b"4 1:2 7:1\n5 2:1 7:3\n3 3:4\n",
        b"12,13 0:202 127003:1.5 719094:2e-3 # a comment\n33\n\n-7 qid:1 5:-0.25\n",
        b"Home/Mugs 1:1\nPets 2:+3.5e+2\n",
    ]


def _arff(data: bytes) -> None:
    file = _file(data, ".arff")
    for choice in ("error", "drop"):
        with suppress(TaxofitError):
            read_arff(file, internal_labels=choice)
    list(iter_arff(file, chunk_rows=2))


def _arff_files() -> list[bytes]:
    head = "@RELATION x\n@ATTRIBUTE a NUMERIC\n@ATTRIBUTE 'b c' real % note\n"
    classes = "@ATTRIBUTE class hierarchical 1,1/1,1/2,2,2/1/3\n@DATA\n"
    return [
        f"{head}{classes}1,2.5,1@1/1\n-3,4e2,1/2\n0,0,2/1/3\n".encode(),
        f"{head}{classes}{{0 1.5, 2 1/1}}\n{{1 -2, 2 2@2/1/3}}\n".encode(),
    ]


def _table(data: bytes) -> None:
    file = _file(data, ".csv")
    for options in (
        {"text": ["title"], "label_path": "path"},
        {"numeric": ["size"], "label_path": "path", "separator": ">"},
        {"text": ["title", "size"], "levels": ["path", "size"], "internal_labels": "drop"},
    ):
        with suppress(TaxofitError):
            read_table(file, **options)
    describe_file(str(file))


def _csv_files() -> list[bytes]:
    rows = list(zip(TITLES, range(6), PATHS, strict=True))
    lines = ["title,size,path", *(f'"{title}, new",{size}.5,{path}' for title, size, path in rows)]
    quoted = 'title,size,path\n"a ""quoted""\nkettle",1,Home > Mugs\nünï 👩,-2,Pets\n'
    return [
        "\n".join(lines).encode(),
        quoted.encode(),
        quoted.encode("utf-16"),
        quoted.encode("cp1252", "replace"),
    ]


def _tsv_files() -> list[bytes]:
    rows = zip(TITLES, range(6), PATHS, strict=True)
    lines = ["title\tsize\tpath", *(f"{title}\t{size}\t{path}" for title, size, path in rows)]
    return ["\r\n".join(lines).encode(), "\n".join(lines).replace("\t", ";").encode()]


def _parquet(data: bytes) -> None:
    file = _file(data, ".parquet")
    with suppress(TaxofitError):
        read_table(file, text=["title"], label_path="path")
    read_table(file, numeric=["size"], label_path="path")


def _parquet_files() -> list[bytes]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    files = []
    for sizes in (
        [1.5, None, 2, 3, 4, 5],
        [[1], [], None, [2], [3], [4]],
        list(map(str, range(6))),
    ):
        for codec in ("none", "snappy"):
            buffer = io.BytesIO()
            table = pa.table({"title": TITLES, "size": sizes, "path": PATHS})
            pq.write_table(table, buffer, compression=codec, row_group_size=4)
            files.append(buffer.getvalue())
    return files


def _hierarchy(data: bytes) -> None:
    file = _file(data, ".txt")
    for options in ({}, {"layout": "edges"}, {"layout": "paths", "separator": ">"}):
        with suppress(TaxofitError):
            read_hierarchy(file, **options)
    describe_file(str(file))


def _hierarchy_files() -> list[bytes]:
    return [
        b"1 2\n1 3\n2 4\n2 5\n",
        b'parent,child\nHome,Mugs\nHome,"Kettles, steel"\n# note\nPets,Fish\n',
        b"Home > Kitchen > Mugs\nHome > Kitchen\nPets > Fish\n",
        b"1 2 20\n1 2 33\n4 5\n",
        b"/Home/Mugs\n/Pets\n",
    ]  # fmt: skip


def _label_paths(data: bytes) -> None:
    values = data.decode("utf-8", "replace").split("\n")
    for separator in (guess_path_separator(values), ">", "/", None):
        with suppress(TaxofitError):
            labels_of_paths([split_path(v, separator) for v in values], None, locate=str)


def _stream(data: bytes) -> None:
    """Read rows to predict as from a pipe, whatever they are."""
    file = str(_file(data, ".csv"))
    for options in (
        PredictOptions(chunk_rows=2, all_columns=True),
        PredictOptions(chunk_rows=2, format="lines"),
        PredictOptions(keep=("size",), encoding="utf-8"),
    ):
        with suppress(TaxofitError), open_rows(file, SOURCE, options) as rows:
            list(rows)
    stream = unpacked(CountedBytes(io.BytesIO(data), "standard input"))
    list(iter_table(stream, chunk_rows=2))


# ---------------------------------------------------------------------- models


@functools.cache
def _models() -> tuple[dict[str, bytes], ...]:
    """Return the files of a model of texts and of one of numbers."""
    text = TaxonomyClassifier(encoder=TextEncoder(), flattening="td-lr", C=1.0)
    paths = [tuple(path.split(" > ")) for path in PATHS]
    text.fit(TITLES, paths)
    X = np.arange(18.0).reshape(6, 3) % 5
    numbers = TaxonomyClassifier(flattening="td-lr", C=1.0).fit(X, paths)
    models = []
    for name, classifier in (("text", text), ("numbers", numbers)):
        folder = _folder() / name
        save_model(classifier, folder, notes={"source": SOURCE.to_notes()})
        models.append({file.name: file.read_bytes() for file in folder.iterdir()})
    return tuple(models)


def _load(files: dict[str, bytes]) -> None:
    folder = _folder() / "mutated"
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    classifier = load_model(folder)
    if classifier.encoder_ is None:
        classifier.predict(np.zeros((2, min(classifier.n_features_in_, 1000))))
    else:
        classifier.predict(["red mug", ""])


def _manifest(data: bytes) -> None:
    for model in _models():
        with suppress(TaxofitError):
            _load(model | {MANIFEST: data})
    try:
        notes = json.loads(data)["notes"]
    except (ValueError, RecursionError, KeyError, TypeError):
        return
    if isinstance(notes, dict):
        Source.from_notes(notes, "model")


def _signed(model: dict[str, bytes], name: str, content: bytes) -> dict[str, bytes]:
    """Return a model with another file in it, and a manifest that vouches for it."""
    manifest = json.loads(model[MANIFEST])
    digest = hashlib.sha256(content).hexdigest()
    manifest["files"][name] = {"bytes": len(content), "sha256": digest}
    return model | {name: content, MANIFEST: json.dumps(manifest).encode()}


def _weights(data: bytes) -> None:
    for model in _models():
        with suppress(TaxofitError):
            _load(_signed(model, WEIGHTS, data))


def _encoder(data: bytes) -> None:
    _load(_signed(_models()[0], ENCODER, data))


TARGETS = {
    "svmlight": Target(_svmlight, _svmlight_files),
    "arff": Target(_arff, _arff_files),
    "csv": Target(_table, _csv_files),
    "tsv": Target(_table, _tsv_files),
    "parquet": Target(_parquet, _parquet_files, mutate_binary),
    "hierarchy": Target(_hierarchy, _hierarchy_files),
    "label-paths": Target(_label_paths, lambda: ["\n".join(PATHS).encode(), *_hierarchy_files()]),
    "stream": Target(_stream, lambda: [*_csv_files(), *_tsv_files()]),
    "manifest": Target(_manifest, lambda: [model[MANIFEST] for model in _models()], mutate_json),
    "weights": Target(
        _weights, lambda: [model[WEIGHTS] for model in _models()], mutate_safetensors
    ),
    "encoder": Target(_encoder, lambda: [_models()[0][ENCODER]], mutate_safetensors),
}
