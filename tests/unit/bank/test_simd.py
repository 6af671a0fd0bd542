"""Vector operations against NumPy, lane by lane."""

import os
import platform
import subprocess
import sys

import numba
import numpy as np
import pytest

from taxofit.bank import simd


def lanes(values):
    array = simd.line_aligned(1, 1)[0]
    array[0] = values
    return array


@numba.njit
def arithmetic(x, y, z, out):
    a, b, c = simd.load(x, 0), simd.load(y, 0), simd.load(z, 0)
    simd.store(out, 0, a + b)
    simd.store(out, 1, a - b)
    simd.store(out, 2, a * b)
    simd.store(out, 3, a / b)
    simd.store(out, 4, simd.fma(a, b, c))
    simd.store(out, 5, simd.pick(c, a, b))
    simd.store(out, 6, simd.clip(a, simd.lanes_of(-1), simd.lanes_of(1.0)))
    simd.store(out, 7, simd.maximum(a, b))
    simd.store(out, 8, simd.minimum(a, b))
    simd.store(out, 9, simd.with_sign(a, b))
    simd.store(out, 10, simd.square_root(simd.absolute(a)))
    simd.store(out, 11, -a)
    return simd.any_true(c)


@numba.njit
def wide_arithmetic(x, y, out):
    a, b = simd.widen(simd.load(x, 0)), simd.load(y, 0)
    simd.store(out, 0, a + b)
    simd.store(out, 1, a - b)
    simd.store(out, 2, simd.fma(a, b, simd.splat(3.0)))
    return simd.sum_of(a * b)


@numba.njit
def functions(x, out):
    e = simd.exp_of(-simd.load(x, 0))
    simd.store(out, 0, e)
    simd.store(out, 1, simd.log1p_of_quotient(e / (e + simd.lanes_of(2))))
    simd.store(out, 2, simd.rough_exp_of_negative(simd.load(x, 0)))
    simd.store(out, 3, simd.exp_of(simd.load(x, 0)))


@numba.njit
def bits_and_totals(bits, totals):
    simd.accumulate(totals, 1, simd.from_bits(bits))
    simd.accumulate(totals, 1, simd.from_bits(bits))


def test_arithmetic_is_that_of_numpy():
    rng = np.random.default_rng(0)
    x, y, z = (lanes(rng.standard_normal(simd.LANES)) for _ in range(3))
    out = simd.line_aligned(1, 12)[0]
    assert arithmetic(x, y, z, out)
    a, b, c = x[0], y[0], z[0]
    expected = [a + b, a - b, a * b, a / b, a * b + c, np.where(c > 0, a, b), np.clip(a, -1, 1)]
    expected += [np.maximum(a, b), np.minimum(a, b), np.copysign(a, b), np.sqrt(np.abs(a)), -a]
    np.testing.assert_allclose(out, expected, rtol=1e-6, atol=1e-6)


def test_arithmetic_of_wide_lanes_is_that_of_float64():
    rng = np.random.default_rng(0)
    x, y, out = (
        lanes(rng.standard_normal(simd.LANES)),
        rng.standard_normal((1, 16)),
        np.ones((3, 16)),
    )
    found = wide_arithmetic(x, y, out)
    a, b = x[0].astype(np.float64), y[0]
    np.testing.assert_allclose(out, [a + b, a - b, a * b + 3.0], rtol=1e-14)
    assert found == pytest.approx(a @ b, rel=1e-12)


@pytest.mark.parametrize("value", [0.0, -1.0, np.nan])
def test_only_lanes_above_zero_are_true(value):
    one = lanes(1.0)
    assert not arithmetic(one, one, lanes(value), simd.line_aligned(1, 12)[0])


def test_exponential_and_logarithm_are_exact_to_float32():
    x = np.concatenate([np.linspace(0, 1, 32), np.linspace(1, 80, 64)]).astype(np.float32)
    for part in x.reshape(-1, simd.LANES):
        out = simd.line_aligned(1, 4)[0]
        functions(lanes(part), out)
        e = np.exp(-part.astype(np.float64))
        np.testing.assert_allclose(out[:2], [e, np.log1p(e)], rtol=4e-7)
        np.testing.assert_allclose(out[2], e, rtol=7e-5)
        np.testing.assert_allclose(out[3], 1 / e, rtol=4e-7)


def test_exponential_of_something_huge_is_tiny_and_finite():
    out = simd.line_aligned(1, 4)[0]
    functions(lanes(1e30), out)
    assert (out[:3] < 1e-30).all()
    assert np.isfinite(out[:3]).all()


def test_bits_become_lanes_and_totals_are_added_up():
    totals = np.ones((3, simd.LANES))
    bits_and_totals(np.uint16(0b1000000000000101), totals)
    expected = np.ones(simd.LANES)
    expected[[0, 2, 15]] = 3
    np.testing.assert_array_equal(totals, [np.ones(simd.LANES), expected, np.ones(simd.LANES)])


def test_every_row_of_lanes_is_a_cache_line():
    arrays = simd.line_aligned(3, 5)
    assert arrays.shape == (3, 5, simd.LANES)
    assert arrays.ctypes.data % simd.CACHE_LINE_BYTES == 0
    assert not arrays.any()


STORE_SOME_LANES = """
import numba, numpy as np
from taxofit.bank.simd import load, pick, store

@numba.njit
def keep_others(A, condition, x):
    for j in range(A.shape[0]):
        store(A, j, pick(load(condition, 0), load(x, 0), load(A, j)))

keep_others(*(np.zeros((n, 16), dtype=np.float32) for n in (5, 1, 1)))
(code,) = keep_others.inspect_asm().values()
print(code)
"""


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="code for x86")
def test_rows_are_stored_whole_without_avx512():
    """Storing some of the lanes by a mask took seven times as long on AMD's processors."""
    avx2 = {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": "+avx,+avx2,+fma"}
    run = subprocess.run(
        [sys.executable, "-c", STORE_SOME_LANES],
        env=os.environ | avx2,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "ymm" in run.stdout
    assert "vmaskmov" not in run.stdout
