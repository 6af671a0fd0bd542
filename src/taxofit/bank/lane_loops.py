"""Passes over X and over vectors for 16 problems at a time, each in a lane of its own.

Notation: X are the shared columns, then a constant one; c_i the cost of row i, s_i² the squared
norm of its private features (see :mod:`taxofit.bank.private_features`), t_i its label, 1 or 0. A
lane is at the point w₀ + δ, where w₀ is one of two bases that all problems share; margins and
gradients of the bases are known from float64, and what a lane adds is the *difference* to them. So
rounding stays below what a rare node's tolerance can see, and does not build up step by step.

No lane ever reads another one's numbers: a problem's result does not depend on its neighbours.
Float32 sums run over short stretches of rows and are then added up in float64.
"""

from __future__ import annotations

import numba
import numpy as np

from taxofit.bank.lane_margins import loss_far_below, loss_nearby
from taxofit.bank.lane_state import (
    ACCEPTING,
    ALPHA,
    BETA,
    CAUTIOUS,
    CONJUGATING,
    CURVING,
    DIAGONAL,
    DIRECTION,
    ENERGY,
    EVALUATED,
    EVALUATING,
    FRESH,
    FROM_SECOND_BASE,
    GRADIENT,
    LENGTH,
    LIGHT_MASS,
    LOSS,
    MASS,
    MEAN_SHARE,
    MEAN_SQUARE,
    NORM,
    ON_CONSTANT,
    ON_MEAN,
    RESCALED,
    RESIDUAL,
    SCALED_RESIDUAL,
    SLOPE,
    STARTING,
    STEP,
    STEP_ON_MEAN,
    STEP_SPREAD,
    STRETCH,
    TRYING,
)
from taxofit.bank.simd import (
    LANES,
    accumulate,
    any_true,
    clear,
    fma,
    from_bits,
    load,
    minimum,
    pick,
    splat,
    store,
)
from taxofit.compiling import compiled

__all__ = [
    "begin_directions",
    "collect_gradients",
    "conjugate_step",
    "curvature_pass",
    "evaluation_pass",
    "next_directions",
]

# Of a row's curvature at most this counts for the mass of light rows. From 0.01 to 0.1 it makes
# no difference on NAICS.
LIGHT = 0.03

_f32 = np.float32
# Of the type of indptr: unsigned and signed numbers together would be floats.
ONE, TWO, THREE, FOUR = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)


@numba.njit(inline="always")
def _gather(rows, i, V, start):
    """Return start + Σ_j x_ij V_j, in four sums that need not wait for each other."""
    first, stop = rows.indptr[i], rows.indptr[i + 1]
    whole = stop - (stop - first) % FOUR
    second = third = fourth = splat(_f32(0))
    for k in range(first, whole, FOUR):
        k1, k2, k3 = k + ONE, k + TWO, k + THREE
        start = fma(splat(rows.values[k]), load(V, rows.indices[k]), start)
        second = fma(splat(rows.values[k1]), load(V, rows.indices[k1]), second)
        third = fma(splat(rows.values[k2]), load(V, rows.indices[k2]), third)
        fourth = fma(splat(rows.values[k3]), load(V, rows.indices[k3]), fourth)
    for k in range(whole, stop):
        start = fma(splat(rows.values[k]), load(V, rows.indices[k]), start)
    return (start + second) + (third + fourth)


@numba.njit(inline="always")
def _scatter(rows, i, a, out):
    """Add x_ij a to out_j for every entry of row i."""
    for k in range(rows.indptr[i], rows.indptr[i + 1]):
        j = rows.indices[k]
        store(out, j, fma(splat(rows.values[k]), a, load(out, j)))


@numba.njit(inline="always")
def _scatter_with_squares(rows, i, a, b, out):
    """Add x_ij a + x_ij² b to out_j for every entry of row i."""
    for k in range(rows.indptr[i], rows.indptr[i + 1]):
        j = rows.indices[k]
        x = splat(rows.values[k])
        store(out, j, fma(x, fma(x, b, a), load(out, j)))


@numba.njit(inline="always")
def _add_total(out, j, totals, row):
    for k in range(LANES):
        out[j, k] += totals[row, k]


@compiled
def curvature_pass(rows, curvature, vectors, masks, totals):
    """Add Xᵀ D X v to ``product`` in curving lanes, the diagonal of Xᵀ D X in diagonal ones.

    masks : float32 (k, 16), rows CURVING and DIAGONAL are used; totals : float64 (k, 16), row
    ENERGY gets Σ_i D_i (x_i·v)².
    """
    n = rows.cost.size
    V, out = vectors.direction, vectors.product
    last = V.shape[0] - 1
    constant = splat(rows.constant[0])
    offset = constant * load(V, last)
    curving, diagonal = load(masks, CURVING), load(masks, DIAGONAL)
    any_diagonal = any_true(diagonal)
    zero = splat(_f32(0))
    clear(totals, ENERGY)
    clear(totals, ON_CONSTANT)
    for first in range(0, n, STRETCH):
        energy = zero
        on_constant = zero
        for i in range(first, min(n, first + STRETCH)):
            q = _gather(rows, i, V, offset)
            D = load(curvature, i)
            a = D * q
            energy = fma(a, q, energy)
            a = a * curving
            if any_diagonal:
                b = D * diagonal
                _scatter_with_squares(rows, i, a, b, out)
                a = a + b  # x² = x in the constant column
            else:
                _scatter(rows, i, a, out)
            on_constant = on_constant + a
        accumulate(totals, ENERGY, energy)
        accumulate(totals, ON_CONSTANT, on_constant * constant)
    _add_total(out, last, totals, ON_CONSTANT)


@compiled
def evaluation_pass(rows, lanes, bases, vectors, masks, totals):
    """Evaluate lanes at w₀ + v: errors, curvature, loss, and the gradient difference.

    u = x·(w₀ + v);  z + c s² (σ(z) - t) = u;  D = c σ'(z) / (1 + c σ'(z) s²);
    product += Xᵀ c (σ(z) - t - σ(z₀)). Cautious lanes take D from
    :func:`~taxofit.bank.lane_margins.wide_curvature`.
    Totals row LOSS gets Σ c log-loss + ½ c² s² (σ - t)²: the loss and half the squared norm of the
    private weights; LIGHT_MASS gets Σ min(D, LIGHT). Curving lanes get Xᵀ D X v on the way, as in
    :func:`curvature_pass`.
    """
    n = rows.cost.size
    V, out = vectors.direction, vectors.product
    last = V.shape[0] - 1
    constant = splat(rows.constant[0])
    offset = constant * load(V, last)
    curving, evaluating = load(masks, CURVING), load(masks, EVALUATING)
    second = load(masks, FROM_SECOND_BASE)
    cautious = load(masks, CAUTIOUS)
    zero, one = splat(_f32(0)), splat(_f32(1))
    clear(totals, ENERGY)
    clear(totals, ON_CONSTANT)
    clear(totals, LOSS)
    clear(totals, LIGHT_MASS)
    limit = splat(_f32(LIGHT))
    for first in range(0, n, STRETCH):
        energy = zero
        on_constant = zero
        loss = zero
        mass = zero
        stop = min(n, first + STRETCH)
        for i in range(first, stop):
            store(lanes.work, i - first, _gather(rows, i, V, offset))
        for i in range(first, stop):
            q = load(lanes.work, i - first)
            D = load(lanes.curvature, i)
            product = D * q
            energy = fma(product, q, energy)

            c, s2 = splat(rows.cost[i]), splat(rows.private_square[i])
            t = from_bits(lanes.positive[i])
            u = q + pick(second, splat(bases.linear[1, i]), splat(bases.linear[0, i]))
            found, error, new = loss_far_below(u, splat(rows.private_cost[i]), c, s2)
            near = pick(t, one, u - splat(rows.far_below[i])) * evaluating
            if any_true(near):
                k, log_k = rows.private_cost[i], rows.log_private_cost[i]
                others = loss_nearby(u, t, k, log_k, c, s2, near, cautious)
                found = pick(near, others[0], found)
                error = pick(near, others[1], error)
                new = pick(near, others[2], new)
            loss = loss + found
            base = pick(second, splat(bases.slope[1, i]), splat(bases.slope[0, i]))
            store(lanes.error, i, pick(evaluating, error, load(lanes.error, i)))
            store(lanes.curvature, i, pick(evaluating, new, D))
            mass = mass + minimum(new, limit)

            a = pick(evaluating, error - base, product * curving)
            store(lanes.work, i - first, a)
            on_constant = on_constant + a
        for i in range(first, stop):
            _scatter(rows, i, load(lanes.work, i - first), out)
        accumulate(totals, ENERGY, energy)
        accumulate(totals, LOSS, loss)
        accumulate(totals, LIGHT_MASS, mass)
        accumulate(totals, ON_CONSTANT, on_constant * constant)
    _add_total(out, last, totals, ON_CONSTANT)


@compiled
def conjugate_step(vectors, bases, masks, coefficients, totals):
    """Take one step of conjugate gradients in curving lanes, and clear ``product``.

    s += α v;  r -= α (v + product), in lanes with α = 0 nothing moves. In diagonal lanes the scale
    becomes 1 / (1 + product). Totals get r·r, r·M r, μ·M r of the mean row μ,
    s·s, s·μ and Σ_j spread_j s_j².
    """
    S, V, R = vectors.step, vectors.direction, vectors.residual
    M, product = vectors.scale, vectors.product
    m = V.shape[0]
    alpha, diagonal = load(coefficients, ALPHA), load(masks, DIAGONAL)
    zero, one = splat(_f32(0)), splat(_f32(1))
    any_diagonal = any_true(diagonal)
    clear(totals, RESIDUAL)
    clear(totals, SCALED_RESIDUAL)
    clear(totals, STEP)
    clear(totals, ON_MEAN)
    clear(totals, STEP_ON_MEAN)
    clear(totals, STEP_SPREAD)
    for first in range(0, m, STRETCH):
        rr, rmr, ss, on_mean = zero, zero, zero, zero
        step_on_mean, step_spread = zero, zero
        for j in range(first, min(m, first + STRETCH)):
            v, o, scale = load(V, j), load(product, j), load(M, j)
            store(product, j, zero)
            if any_diagonal:
                scale = pick(diagonal, one / (one + o), scale)
                store(M, j, scale)
            s = fma(alpha, v, load(S, j))
            r = load(R, j) - alpha * (v + o)
            store(S, j, s)
            store(R, j, r)
            rr = fma(r, r, rr)
            y = r * scale
            rmr = fma(y, r, rmr)
            mean = splat(bases.mean[j])
            on_mean = fma(y, mean, on_mean)
            square = s * s
            ss = ss + square
            step_on_mean = fma(s, mean, step_on_mean)
            step_spread = fma(square, splat(bases.spread[j]), step_spread)
        accumulate(totals, RESIDUAL, rr)
        accumulate(totals, SCALED_RESIDUAL, rmr)
        accumulate(totals, STEP, ss)
        accumulate(totals, ON_MEAN, on_mean)
        accumulate(totals, STEP_ON_MEAN, step_on_mean)
        accumulate(totals, STEP_SPREAD, step_spread)


@compiled
def collect_gradients(vectors, bases, masks, coefficients, totals):
    """Set the residual of evaluated lanes to minus their gradient g = g₀ + v + product.

    Rescaled lanes get M = 1 / (1 + mass · spread) too. Totals get g·g, g·s (the slope along the
    step), ‖w₀ + v‖², and μ·M μ of the mean row μ.
    """
    S, V, R, product = vectors.step, vectors.direction, vectors.residual, vectors.product
    m = V.shape[0]
    evaluated, second = load(masks, EVALUATED), load(masks, FROM_SECOND_BASE)
    rescaled, mass = load(masks, RESCALED), load(coefficients, MASS)
    zero, one = splat(_f32(0)), splat(_f32(1))
    clear(totals, GRADIENT)
    clear(totals, SLOPE)
    clear(totals, NORM)
    clear(totals, MEAN_SQUARE)
    for first in range(0, m, STRETCH):
        gg, gs, ww, mean_square = zero, zero, zero, zero
        for j in range(first, min(m, first + STRETCH)):
            v = load(V, j)
            g = pick(second, splat(bases.gradient[1, j]), splat(bases.gradient[0, j]))
            g = g + v + load(product, j)
            w = v + pick(second, splat(bases.weights[1, j]), splat(bases.weights[0, j]))
            store(R, j, pick(evaluated, zero - g, load(R, j)))
            gg = fma(g, g, gg)
            scale = one / fma(mass, splat(bases.spread[j]), one)
            scale = pick(rescaled, scale, load(vectors.scale, j))
            store(vectors.scale, j, scale)
            mean = splat(bases.mean[j])
            mean_square = fma(scale * mean, mean, mean_square)
            gs = fma(g, load(S, j), gs)
            ww = fma(w, w, ww)
        accumulate(totals, GRADIENT, gg)
        accumulate(totals, SLOPE, gs)
        accumulate(totals, NORM, ww)
        accumulate(totals, MEAN_SQUARE, mean_square)


@compiled
def next_directions(vectors, bases, masks, coefficients, totals):
    """Set v = M (r + share · μ) + β v in conjugating lanes, μ the mean row; totals get v·v."""
    V, R, M = vectors.direction, vectors.residual, vectors.scale
    m = V.shape[0]
    conjugating, beta = load(masks, CONJUGATING), load(coefficients, BETA)
    share = load(coefficients, MEAN_SHARE)
    zero = splat(_f32(0))
    clear(totals, DIRECTION)
    for first in range(0, m, STRETCH):
        vv = zero
        for j in range(first, min(m, first + STRETCH)):
            v = load(V, j)
            r = fma(share, splat(bases.mean[j]), load(R, j))
            v = pick(conjugating, fma(beta, v, load(M, j) * r), v)
            store(V, j, v)
            vv = fma(v, v, vv)
        accumulate(totals, DIRECTION, vv)


@compiled
def begin_directions(vectors, bases, masks, coefficients, totals):
    """As :func:`next_directions`, and also begin what is not a step of conjugate gradients.

    Accepting lanes make v their point. Starting lanes take v = M (r + share · μ) and a step of 0,
    trying ones v = δ + λ s, fresh ones a point of 0 and the scale of the second base. Totals get
    v·v.
    """
    P, S, V = vectors.point, vectors.step, vectors.direction
    R, M = vectors.residual, vectors.scale
    m = V.shape[0]
    conjugating, beta = load(masks, CONJUGATING), load(coefficients, BETA)
    share = load(coefficients, MEAN_SHARE)
    starting, accepting = load(masks, STARTING), load(masks, ACCEPTING)
    trying, length = load(masks, TRYING), load(coefficients, LENGTH)
    fresh, zero = load(masks, FRESH), splat(_f32(0))
    clear(totals, DIRECTION)
    for first in range(0, m, STRETCH):
        vv = zero
        for j in range(first, min(m, first + STRETCH)):
            v, s, r = load(V, j), load(S, j), load(R, j)
            scale = pick(fresh, splat(bases.scale[j]), load(M, j))
            point = pick(fresh, zero, pick(accepting, v, load(P, j)))
            s = pick(starting + fresh, zero, s)
            y = scale * fma(share, splat(bases.mean[j]), r)
            v = pick(conjugating, fma(beta, v, y), v)
            v = pick(starting, y, v)
            v = pick(trying, fma(length, s, point), v)
            v = pick(fresh, zero, v)
            store(M, j, scale)
            store(P, j, point)
            store(S, j, s)
            store(V, j, v)
            vv = fma(v, v, vv)
        accumulate(totals, DIRECTION, vv)
