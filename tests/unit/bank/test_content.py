"""Content keys: equal content has an equal name, any difference another."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from taxofit.bank.content import content_key
from taxofit.bank.harvest import pick_nothing, pick_weights


@dataclass(frozen=True)
class Pair:
    first: Any
    second: Any


@dataclass(frozen=True)
class Couple:
    first: Any
    second: Any


@dataclass(frozen=True)
class Work:
    what: Any
    n_threads: int = field(compare=False)


def csr(**changes):
    parts = {"data": [1.0, 2.0], "indices": [0, 2], "indptr": [0, 1, 2], **changes}
    arrays = tuple(np.array(parts[name]) for name in ("data", "indices", "indptr"))
    return sparse.csr_array(arrays, shape=(2, 3))


def test_equal_content_has_an_equal_key():
    one = Pair(np.arange(6).reshape(2, 3), {"b": csr(), "a": (1, None, "x", True)})
    other = Pair(
        np.asfortranarray(np.arange(6).reshape(2, 3)), {"a": (1, None, "x", True), "b": csr()}
    )
    assert content_key(one, 0.1) == content_key(other, 0.1)


def test_fields_that_are_not_compared_do_not_count():
    assert content_key(Work("x", 1)) == content_key(Work("x", 2))
    assert content_key(Work("x", 1)) != content_key(Work("y", 1))


def test_any_difference_changes_the_key():
    different = [
        np.arange(6),
        np.arange(6.0),
        np.arange(6).reshape(2, 3),
        np.arange(6).astype(np.int32),
        np.arange(7),
        csr(),
        csr(data=[1.0, 2.5]),
        csr(indices=[1, 2]),
        sparse.csc_array(csr()),
        Pair(1, 2),
        Pair(2, 1),
        Couple(1, 2),
        [1, 2],
        [12],
        [[1], 2],
        [[1, 2]],
        {"a": 1},
        {"b": 1},
        1,
        1.0,
        True,
        "1",
        None,
        np.nextafter(1.0, 2),
        pick_nothing,
        pick_weights,
    ]
    keys = [content_key(part) for part in different]
    assert len(set(keys)) == len(different)
    assert content_key("ab", "c") != content_key("a", "bc")


@pytest.mark.parametrize(
    "nameless",
    [lambda: None, object(), {1, 2}, np.array([object()]), open],
    ids=lambda value: type(value).__name__,
)
def test_what_has_no_content_is_refused(nameless):
    with pytest.raises(TypeError, match=r"content|made inside a function"):
        content_key(nameless)
