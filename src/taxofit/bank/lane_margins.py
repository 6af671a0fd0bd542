r"""The margin of a row with private features, and the loss and its derivatives there.

In the notation of :mod:`taxofit.bank.lane_loops`, with k = c s² and u = x·(w₀ + v), the margin z is
the root of z + k (σ(z) - t) = u. With h = u + k (t - ½) it has the sign of h, and its size y solves

.. math:: y = b + k \frac{e^{-y}}{1 + e^{-y}}, \qquad b = |h| - k / 2.

Without the denominator that would be Wright's omega function, y - b = ω(ln k - b), and ω is close
to a hyperbola: a first guess that needs no exponential. One step of Halley's method from there
settles nine rows in ten. What is left of the error is corrected to first order in the derivatives
and to second order in the loss.

Nearly all rows of a rare node are far on the negative side, and need none of that: with e = exp(u)
and k e small, everything is a short polynomial, and there is one exponential and no division.
"""

from __future__ import annotations

import numba

from taxofit.bank.simd import (
    absolute,
    any_true,
    clip,
    exp_of,
    fma,
    lanes_of,
    log1p_of_quotient,
    maximum,
    minimum,
    pick,
    rough_exp_of_negative,
    square_root,
    with_sign,
)

__all__ = ["loss_far_below", "loss_nearby"]

# The hyperbola nearest to ω on [-12, 30]: it is at most 0.11 off.
LEVEL, TILT, OPENING, CENTRE, BEND = -1.66991, 0.437862, 0.515638, -0.466376, 2.278842
# The root is settled once a step moves it less than this: the error left was below 1e-4.
ROOT_STEP = 0.1
MAX_ROOT_STEPS = 40
TINY = 1e-6
SHORTEST_QUOTIENT = 0.3  # Halley's step is at most 1 / 0.3 of Newton's

# A row is far below zero if exp(u) and k exp(u) are at most the exponentials of these.
FAR_BELOW, LEAST_PULL = -4.0, -2.4


@numba.njit(inline="always")
def settled_root(u, t, k, log_k, wanted):
    """Return the root of z + k (σ(z) - t) = u in wanted lanes; the logarithm is 0 where k is.

    Halley's step depends on y alone and a settled lane stays, whatever its neighbours do.
    """
    zero, one = lanes_of(0), lanes_of(1)
    h = fma(k, t - lanes_of(0.5), u)
    high = absolute(h)
    b = fma(k, lanes_of(-0.5), high)
    y = b + maximum(_omega(log_k - b), zero)
    # y + k/2 tanh(y/2) = |h|, where the left-hand side is at most (1 + k/4) y.
    y = minimum(maximum(y, high / fma(lanes_of(0.25), k, one)), high)
    moving = wanted
    for _ in range(MAX_ROOT_STEPS):
        step = pick(moving, _halley(y, b, k, high) - y, zero)
        y = y + step
        moving = pick(absolute(step) - lanes_of(ROOT_STEP), moving, zero)
        if not any_true(moving):
            break
    return with_sign(y, h)


@numba.njit(inline="always")
def _omega(x):
    """Return about ω(x)."""
    across = fma(x, lanes_of(OPENING), lanes_of(CENTRE))
    along = fma(x, lanes_of(TILT), lanes_of(LEVEL))
    return along + square_root(fma(across, across, lanes_of(BEND * BEND)))


@numba.njit(inline="always")
def _halley(y, b, k, high):
    """Return y after one step for y - b - k e / (1 + e) = 0, e = exp(-y).

    f / f' / (1 - ½ f f'' / f'²) with both sides times powers of 1 + e: a single division.
    """
    zero, one = lanes_of(0), lanes_of(1)
    e = rough_exp_of_negative(y)
    q, ke = one + e, k * e
    value = q * fma(y - b, q, -ke)  # q² f
    slope = fma(q, q, ke)  # q² f'
    square = slope * slope * q
    divisor = fma(lanes_of(0.5) * value, ke * (one - e), square)
    divisor = maximum(divisor, lanes_of(SHORTEST_QUOTIENT) * square)
    return clip(y - value * slope * q / divisor, zero, high)


@numba.njit(inline="always")
def loss_at(z, u, t, c, s2):
    """Return the loss of a row, σ(z), the second derivative by u, and what z lacks to be the root.

    The loss is c log-loss + ½ c² s² (σ - t)², the latter half the squared norm of the private
    weights. With `rest` = u - s² c (σ - t) - z, the first derivative is c (σ - t) + curvature rest.
    Without it the loss was off by 5e-6 in all.
    """
    zero, one, half = lanes_of(0), lanes_of(1), lanes_of(0.5)
    e = exp_of(-absolute(z))
    q, e2, ce = one + e, e + lanes_of(2), c * e
    scaled = fma(ce, s2, q * q)
    inverse = one / (scaled * q * e2)  # one division for three quotients
    over_q = inverse * scaled * e2
    sigma = pick(z, over_q, e * over_q)
    curvature = ce * inverse * q * e2
    error = c * (sigma - t)
    rest = u - s2 * error - z
    likely = maximum(z, zero) - t * z + log1p_of_quotient(e * inverse * scaled * q)
    private = fma(half * s2, error, rest) * error + half * curvature * rest * rest
    return fma(c, likely, private), sigma, curvature, rest


@numba.njit(inline="always")
def loss_nearby(u, t, k, log_k, c, s2, wanted, cautious):
    """Return the loss of a row in wanted lanes, and its two derivatives by u.

    Cautious lanes get the curvature that a long step meets instead of the second.
    """
    z = settled_root(u, t, k, log_k, wanted)
    loss, sigma, curvature, rest = loss_at(z, u, t, c, s2)
    error = fma(curvature, rest, c * (sigma - t))
    z = fma(rest, lanes_of(1) - curvature * s2, z)
    wide = wide_curvature(z, t, sigma, curvature, c, s2)
    return loss, error, pick(cautious, wide, curvature)


@numba.njit(inline="always")
def loss_far_below(u, k, c, s2):
    """Return the loss of a negative row far below zero, and its two derivatives by u.

    The root is z = u - d with d = k σ(z), about Lambert's function of k σ(u): its series goes to
    the third power, and what it lacks is corrected as in :func:`loss_at`.
    """
    one, half = lanes_of(1), lanes_of(0.5)
    e = exp_of(u)
    pull = k * e
    pull = fma(-pull, e, pull)  # k σ(u)
    d = fma(pull * pull, fma(pull, lanes_of(1.5), -one), pull)
    p = fma(d, fma(d, lanes_of(1 / 24), lanes_of(-1 / 6)), half)
    e = fma(e * d, fma(d, p, -one), e)  # exp(z)
    square = e * e
    sigma = fma(-e, e, e)
    sigma = fma(sigma, square, sigma)  # e / (1 + e) by its series
    error = c * sigma
    private = s2 * error
    rest = d - private
    bend = fma(-error, sigma, error)
    slowed = bend * s2
    curvature = fma(bend, fma(slowed, slowed, -slowed), bend)
    p = fma(e, lanes_of(-1 / 4), lanes_of(1 / 3))
    likely = fma(square, fma(e, p, -half), e)  # log(1 + e) by its series
    loss = fma(c, likely, error * fma(-half, private, d))
    return loss, fma(curvature, rest, error), curvature


@numba.njit(inline="always")
def wide_curvature(z, t, sigma, curvature, c, s2):
    """Return the curvature that a long step meets: larger than here where z is on the wrong side.

    There the second derivative is small but grows as the row moves over. Jaakkola and Jordan's
    parabola, of curvature c (σ - ½) / z, stays above the loss all the way.
    """
    half = lanes_of(0.5)
    above = c * absolute(sigma - half)
    wide = above / (fma(s2, above, absolute(z)) + lanes_of(TINY))
    wrong = pick(z, half - t, t - half)
    return pick(wrong, maximum(wide, curvature), curvature)
