"""2,200 mutated files on every submission; `make fuzz` tries many more, led by coverage."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.fuzz.targets import TARGETS

N_EXAMPLES = 200


@pytest.mark.parametrize("name", TARGETS)
def test_valid_files_are_read(name):
    target = TARGETS[name]
    for data in target.corpus():
        target(data)


@pytest.mark.parametrize("name", TARGETS)
@settings(max_examples=N_EXAMPLES, suppress_health_check=list(HealthCheck), database=None)
@given(data=st.data())
def test_whatever_a_file_holds_only_our_errors_come_out(name, data):
    target = TARGETS[name]
    seed = data.draw(st.sampled_from(target.corpus()))
    target(target.mutate(seed, data.draw(st.randoms(use_true_random=False))))
