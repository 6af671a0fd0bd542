"""Buffers: memory is used again, and never while anything refers to it."""

import threading

import numpy as np
import pytest

from taxofit.bank.buffers import Buffers


def address(array):
    return array.ctypes.data


def test_memory_is_used_again_when_it_is_free():
    buffers = Buffers()
    array = buffers.empty(10, 100)
    assert array.shape == (10, 100)
    assert array.dtype == np.float32
    first = address(array)
    del array
    assert address(buffers.empty(9, 100)) == first


def test_memory_is_not_used_while_a_view_is_left():
    buffers = Buffers()
    view = buffers.empty(10, 100).T[:, 3:5].reshape(-1)
    view[:] = 1
    other = buffers.zeros(10, 100)
    assert not np.shares_memory(view, other)
    assert (view == 1).all()


def test_zeros_are_zeros_in_memory_that_was_used():
    buffers = Buffers()
    array = buffers.empty(500)
    first = address(array)
    array.fill(np.nan)
    del array
    again = buffers.zeros(400)
    assert address(again) == first
    assert not again.any()


@pytest.mark.parametrize("size", [101, 49])
def test_memory_that_is_too_small_or_much_too_large_goes(size):
    buffers = Buffers()
    buffers.empty(100)
    assert [buffer.size for buffer in buffers._free] == [100]
    buffers.empty(size)
    assert [buffer.size for buffer in buffers._free] == [size]


def test_there_are_no_more_buffers_than_were_used_at_a_time():
    buffers, rng = Buffers(), np.random.default_rng(0)
    for _ in range(50):
        arrays = [buffers.empty(int(size)) for size in rng.integers(1, 1000, size=4)]
        assert len(buffers._free) + len(arrays) == 4
        del arrays


def test_every_thread_has_its_own_and_leaves_none():
    buffers, found = Buffers(), []

    def use():
        found.append(buffers.empty(100))
        found.append(len(buffers._free))

    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
    assert buffers._free == []
    del found[0]  # in this thread, for which it is not
    assert buffers._free == []
    assert found == [0]
