"""Passes over X and over vectors for 16 problems at a time, each in a lane of its own.

Notation: X are the shared columns, then a constant one; c_i the cost of row i, s_i² the squared
norm of its private features (see :mod:`taxofit.bank.private_features`), t_i its label, 1 or 0. A
lane is at the point w₀ + δ, where w₀ is the base that all problems share; margins and gradient of
the base are known from float64, and what a lane adds is the *difference* to them. So
rounding stays below what a rare node's tolerance can see, and does not build up step by step.

No lane ever reads another one's numbers: from the same start, a problem's result does not depend on
its neighbours.
Float32 sums run over short stretches of rows and are then added up in float64.
"""

from __future__ import annotations

import numba
import numpy as np

from taxofit.bank.lane_margins import loss_far_below
from taxofit.bank.lane_near_rows import evaluate_near, note_pairs, note_row
from taxofit.bank.lane_state import (
    ACCEPTING,
    ALPHA,
    BETA,
    CONJUGATING,
    CONSTANT_PRODUCT,
    CURVING,
    DIRECTION,
    ENERGY,
    EVALUATED,
    EVALUATING,
    GRADIENT,
    LENGTH,
    LIGHT,
    LIGHT_MASS,
    LOSS,
    MEAN_SHARE,
    NORM,
    ON_CONSTANT,
    ON_MEAN,
    ONWARD,
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
    accumulate,
    any_true,
    bits_above,
    clear,
    fetch,
    fma,
    from_bits,
    lanes_of,
    load,
    minimum,
    pick,
    splat,
    store,
)
from taxofit.compiling import part

__all__ = [
    "begin_directions",
    "curvature_pass",
    "evaluation_pass",
    "feature_pass",
    "next_directions",
]

# Of the type of indptr: unsigned and signed numbers together would be floats.
ONE, TWO, THREE, FOUR = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
NONE = np.int64(0)  # a literal 0 has a type of its own, for which loops would be compiled again
# Entries of rare features for which a cache line is fetched before it is needed. With 129,000 rows
# these entries take 40 % less.
AHEAD = np.uint64(48)


@numba.njit(inline="always")
def _gather(X, first, stop, V, start):
    """Return start + Σ_k x_k V_k over some entries, in four sums that need not wait."""
    values, indices = X.values, X.indices
    whole = stop - (stop - first) % FOUR
    second = third = fourth = lanes_of(0)
    for k in range(first, whole, FOUR):
        k1, k2, k3 = k + ONE, k + TWO, k + THREE
        start = fma(splat(values[k]), load(V, indices[k]), start)
        second = fma(splat(values[k1]), load(V, indices[k1]), second)
        third = fma(splat(values[k2]), load(V, indices[k2]), third)
        fourth = fma(splat(values[k3]), load(V, indices[k3]), fourth)
    for k in range(whole, stop):
        start = fma(splat(values[k]), load(V, indices[k]), start)
    return (start + second) + (third + fourth)


@numba.njit(inline="always")
def _gather_row(entries, i, V, pull, offset, with_others):
    """Return x_i·V: the frequent features', and what there is of the others."""
    start = load(pull, i) if with_others else offset
    return _gather(entries, entries.indptr[i], entries.frequent_stop[i], V, start)


@part
def _multiply_others(entries, columns, V, offset, pull):
    """Set pull to the product of rows and V over all but frequent features.

    Return whether there is anything but the constant; else pull stays as it is.
    """
    n_frequent, n_columns = columns.n_frequent, V.shape[0] - 1
    if n_frequent == n_columns and entries.n_common == 0:
        return False
    for i in range(entries.n_common, pull.shape[0]):
        store(pull, i, offset)
    if entries.n_common > 0:
        for j in range(V.shape[0]):
            offset = fma(splat(entries.common[j]), load(V, j), offset)
        for i in range(entries.n_common):
            store(pull, i, offset)
    others = (columns.n_tiles - 1) * columns.n_tiled  # of the same features in other tiles
    last = columns.indptr[others + n_columns] - ONE
    for j in range(n_frequent, n_columns):
        v = load(V, j)
        for k in range(columns.indptr[others + j], columns.indptr[others + j + 1]):
            i = columns.indices[k]
            fetch(pull, columns.indices[min(k + AHEAD, last)])
            store(pull, i, fma(splat(columns.values[k]), v, load(pull, i)))
    return True


@numba.njit(inline="always")
def _gather_rare(columns, place, pull, last):
    """Return the product of a column and pull; rows of columns to come are on their way."""
    total = lanes_of(0)
    for k in range(columns.indptr[place], columns.indptr[place + 1]):
        fetch(pull, columns.indices[min(k + AHEAD, last)])
        total = fma(splat(columns.values[k]), load(pull, columns.indices[k]), total)
    return total


@numba.njit(inline="always")
def _gather_column(columns, j, pull, product, others, last):
    """Return the product of column j and pull, which is known for tiled features."""
    place = others + j
    if j < columns.n_tiled:
        total = load(product, j)
    elif j < columns.n_frequent:
        first, stop = columns.indptr[place], columns.indptr[place + 1]
        total = _gather(columns, first, stop, pull, lanes_of(0))
    else:
        total = _gather_rare(columns, place, pull, last)
    return total


@part
def _multiply_tiles(columns, pull, product):
    """Set the product of Xᵀ and pull for tiled features, a tile of rows after the other."""
    zero = lanes_of(0)
    for tile in range(columns.n_tiles):
        for j in range(columns.n_tiled):
            place = tile * columns.n_tiled + j
            total = zero if tile == 0 else load(product, j)
            first, stop = columns.indptr[place], columns.indptr[place + 1]
            store(product, j, _gather(columns, first, stop, pull, total))


@numba.njit(inline="always")
def _sum_of_first(pull, n_rows):
    """Return the sum of the pulls of the first rows."""
    total = lanes_of(0)
    for i in range(n_rows):
        total = total + load(pull, i)
    return total


@numba.njit(inline="always")
def _clear_totals(totals):
    """Set to 0 what a pass over features adds up."""
    for row in (RESIDUAL, SCALED_RESIDUAL, STEP, ON_MEAN, STEP_ON_MEAN, STEP_SPREAD):
        clear(totals, row)
    for row in (GRADIENT, SLOPE, NORM):
        clear(totals, row)


@part
def curvature_pass(entries, columns, lanes, V, totals):
    """Set the pull of rows to D X v.

    totals : float64 (k, 16), row ENERGY gets Σ_i D_i (x_i·v)², row ON_CONSTANT the product with the
    constant column.
    """
    n = entries.frequent_stop.size
    constant = splat(entries.constant[0])
    offset = constant * load(V, V.shape[0] - 1)
    zero = lanes_of(0)
    clear(totals, ENERGY)
    clear(totals, ON_CONSTANT)
    with_others = _multiply_others(entries, columns, V, offset, lanes.pull)
    for first in range(0, n, STRETCH):
        energy = zero
        on_constant = zero
        for i in range(first, min(n, first + STRETCH)):
            q = _gather_row(entries, i, V, lanes.pull, offset, with_others)
            a = load(lanes.curvature, i) * q
            energy = fma(a, q, energy)
            store(lanes.pull, i, a)
            on_constant = on_constant + a
        accumulate(totals, ENERGY, energy)
        accumulate(totals, ON_CONSTANT, on_constant * constant)


@part
def evaluation_pass(rows, columns, lanes, near, base, V, masks, totals):
    """Evaluate lanes at w₀ + v: curvature, loss, and a pull of c (σ(z) - t - σ(z₀)).

    u = x·(w₀ + v);  z + c s² (σ(z) - t) = u;  D = c σ'(z) / (1 + c σ'(z) s²). Cautious lanes take D
    from :func:`~taxofit.bank.lane_margins.wide_curvature`.
    Totals row LOSS gets Σ c log-loss + ½ c² s² (σ - t)²: the loss and half the squared norm of the
    private weights; LIGHT_MASS gets Σ min(D, LIGHT). Curving lanes get a pull of D X v on the way,
    as in :func:`curvature_pass`.

    near : NearRows, room for rows near zero; base : BaseRows.
    """
    n, entries = rows.cost.size, rows.entries
    constant = splat(entries.constant[0])
    offset = constant * load(V, V.shape[0] - 1)
    evaluating = load(masks, EVALUATING)
    zero = lanes_of(0)
    wanted = bits_above(evaluating, zero)
    clear(totals, ENERGY)
    clear(totals, ON_CONSTANT)
    clear(totals, LOSS)
    clear(totals, LIGHT_MASS)
    limit = lanes_of(LIGHT)
    with_others = _multiply_others(entries, columns, V, offset, lanes.pull)
    for first in range(0, n, STRETCH):
        energy = zero
        on_constant = zero
        loss = zero
        mass = zero
        n_whole = n_pairs = NONE
        stop = min(n, first + STRETCH)
        for i in range(first, stop):
            q = _gather_row(entries, i, V, lanes.pull, offset, with_others)
            energy = fma(load(lanes.curvature, i) * q, q, energy)
            store(lanes.pull, i, q)
        for i in range(first, stop):
            q = load(lanes.pull, i)
            c, s2 = splat(rows.cost[i]), splat(rows.private_square[i])
            u = q + splat(base.linear[i])
            found, error, new = loss_far_below(u, splat(rows.private_cost[i]), c, s2)
            nearby = (bits_above(u, splat(rows.far_below[i])) | lanes.positive[i]) & wanted
            D = load(lanes.curvature, i)
            a = pick(evaluating, error - splat(base.slope[i]), D * q)
            if nearby != 0:
                if base.linear[i] > rows.far_below[i]:
                    n_whole = note_row(near, n_whole, nearby, i, u)
                else:
                    n_pairs = note_pairs(near, n_pairs, nearby, i, lanes.pull, base.linear[i])
                is_near = from_bits(nearby)
                found, a = pick(is_near, zero, found), pick(is_near, zero, a)
                new = pick(is_near, zero, new)
            loss = loss + found
            mass = mass + minimum(new, limit)
            store(lanes.curvature, i, pick(evaluating, new, D))
            store(lanes.pull, i, a)
            on_constant = on_constant + a
        accumulate(totals, ENERGY, energy)
        accumulate(totals, LOSS, loss)
        accumulate(totals, LIGHT_MASS, mass)
        accumulate(totals, ON_CONSTANT, on_constant * constant)
        evaluate_near(near, n_whole, n_pairs, rows, lanes, base.slope, masks, totals)


@part
def feature_pass(
    entries, columns, pull, gradient, weights, light, vectors, masks, coefficients, totals
):
    """Multiply the pull of rows by Xᵀ, and do with the product o what a lane is there for.

    Curving lanes take a step of conjugate gradients: s += α v;  r -= α (v + o); in lanes with α = 0
    nothing moves. In evaluated ones the residual becomes minus the gradient g = g₀ + v + o, unless
    they stand at the base: there it is that already.

    Totals get r·r, r·M r, μ·M r of the mean row μ, s·s, s·μ and Σ_j spread_j s_j². Where any lane
    has been evaluated they get g·g, g·(v - δ) (the slope on the way) and ‖w₀ + v‖² too.
    """
    P, S, V, R = vectors.point, vectors.step, vectors.direction, vectors.residual
    m = V.shape[0]
    alpha, on_constant = load(coefficients, ALPHA), load(coefficients, CONSTANT_PRODUCT)
    evaluating, evaluated = load(masks, EVALUATING), load(masks, EVALUATED)
    zero = lanes_of(0)
    any_evaluated = any_true(evaluated)
    any_pull = any_true(load(masks, CURVING) + evaluating)
    any_common = any_pull and entries.n_common > 0
    common = _sum_of_first(pull, entries.n_common)
    others = (columns.n_tiles - 1) * columns.n_tiled
    if any_pull and columns.n_tiled > 0:
        _multiply_tiles(columns, pull, vectors.product)
    last = columns.indptr[others + m - 1] - ONE
    _clear_totals(totals)
    for first in range(0, m, STRETCH):
        stop = min(m, first + STRETCH)
        gg = gs = ww = zero
        for j in range(first, stop):
            o = on_constant if j == m - 1 else zero
            if any_pull and j < m - 1:
                o = _gather_column(columns, j, pull, vectors.product, others, last)
            if any_common:
                o = fma(splat(entries.common[j]), common, o)
            s, v, r = load(S, j), load(V, j), load(R, j)
            if any_evaluated:
                g = pick(evaluating, splat(gradient[j]) + v + o, -r)
                r = pick(evaluated, -g, r)
                w = v + splat(weights[j])
                gg, gs, ww = fma(g, g, gg), fma(g, v - load(P, j), gs), fma(w, w, ww)
            store(S, j, fma(alpha, v, s))
            store(R, j, r - alpha * (v + o))
        # Apart from the loop above: nine sums and the products need more registers than there are.
        rr = rmr = ss = on_mean = step_on_mean = step_spread = zero
        for j in range(first, stop):
            s, r, mean = load(S, j), load(R, j), splat(light.mean[j])
            y, square = r * splat(light.scale[j]), s * s
            rr, rmr, on_mean = fma(r, r, rr), fma(y, r, rmr), fma(y, mean, on_mean)
            ss, step_on_mean = ss + square, fma(s, mean, step_on_mean)
            step_spread = fma(square, splat(light.spread[j]), step_spread)
        accumulate(totals, RESIDUAL, rr)
        accumulate(totals, SCALED_RESIDUAL, rmr)
        accumulate(totals, STEP, ss)
        accumulate(totals, ON_MEAN, on_mean)
        accumulate(totals, STEP_ON_MEAN, step_on_mean)
        accumulate(totals, STEP_SPREAD, step_spread)
        if any_evaluated:
            accumulate(totals, GRADIENT, gg)
            accumulate(totals, SLOPE, gs)
            accumulate(totals, NORM, ww)


@part
def next_directions(vectors, light, masks, coefficients, totals):
    """Set v = M (r + share · μ) + β v in conjugating lanes, μ the mean row; totals get v·v.

    Trying lanes take v = δ + λ s + ω (M r + β v) + share · M μ. Of a step that ends as it is, ω and
    the share are 0; see :mod:`taxofit.bank.lane_step_end`.
    """
    P, S, V, R = vectors.point, vectors.step, vectors.direction, vectors.residual
    m = V.shape[0]
    conjugating, beta = load(masks, CONJUGATING), load(coefficients, BETA)
    trying, length = load(masks, TRYING), load(coefficients, LENGTH)
    share, onward = load(coefficients, MEAN_SHARE), load(coefficients, ONWARD)
    zero = lanes_of(0)
    clear(totals, DIRECTION)
    for first in range(0, m, STRETCH):
        vv = zero
        for j in range(first, min(m, first + STRETCH)):
            v = load(V, j)
            scale = splat(light.scale[j])
            shift, next_v = scale * share * splat(light.mean[j]), fma(beta, v, scale * load(R, j))
            v = pick(conjugating, next_v + shift, v)
            end = fma(length, load(S, j), load(P, j))
            v = pick(trying, end + fma(onward, next_v, shift), v)
            store(V, j, v)
            vv = fma(v, v, vv)
        accumulate(totals, DIRECTION, vv)


@part
def begin_directions(vectors, light, masks, coefficients, totals):
    """As :func:`next_directions` where lanes accept a point or start conjugate gradients, too.

    Accepting lanes make v their point. Starting ones take v = M (r + share · μ) and a step of 0;
    others have finished, and leave a v of 0 to the next problem.
    """
    P, S, V, R = vectors.point, vectors.step, vectors.direction, vectors.residual
    m = V.shape[0]
    conjugating, beta = load(masks, CONJUGATING), load(coefficients, BETA)
    share, onward = load(coefficients, MEAN_SHARE), load(coefficients, ONWARD)
    starting, accepting = load(masks, STARTING), load(masks, ACCEPTING)
    trying, length = load(masks, TRYING), load(coefficients, LENGTH)
    finished, zero = accepting - starting, lanes_of(0)
    clear(totals, DIRECTION)
    for first in range(0, m, STRETCH):
        vv = zero
        for j in range(first, min(m, first + STRETCH)):
            v, s = load(V, j), load(S, j)
            point = pick(accepting, v, load(P, j))
            s = pick(starting, zero, s)
            scale = splat(light.scale[j])
            scaled, shift = scale * load(R, j), scale * share * splat(light.mean[j])
            next_v = fma(beta, v, scaled)
            v = pick(conjugating, next_v + shift, v)
            v = pick(finished, zero, pick(starting, scaled + shift, v))
            v = pick(trying, fma(length, s, point) + fma(onward, next_v, shift), v)
            store(P, j, point)
            store(S, j, s)
            store(V, j, v)
            vv = fma(v, v, vv)
        accumulate(totals, DIRECTION, vv)
