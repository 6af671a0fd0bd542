"""Sixteen numbers at once: numba types for explicit vector code.

Left to itself the compiler turns a loop over 16 problems into loads and stores of every partial
result. With a type of its own such a group stays in one register (or two, or four: LLVM splits what
the machine does not have), and kernels read like scalar code: ``fma(x, load(V, j), total)``.

Arrays of lanes have shape (n, 16), C order; ``load(A, j)`` is row j, one cache line of float32.
Truth is a vector too: a lane is true where it is above zero. Lanes of float64 have arithmetic,
:func:`fma` and :func:`sum_of` only.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, lower_builtin, models, register_model, type_callable

from taxofit.bank.buffers import Buffers

if TYPE_CHECKING:
    import numpy as np

__all__ = [
    "LANES",
    "absolute",
    "accumulate",
    "any_true",
    "bits_above",
    "clear",
    "clip",
    "exp_of",
    "fetch",
    "fma",
    "from_bits",
    "lanes_of",
    "line_aligned",
    "load",
    "log1p_of_quotient",
    "lowest_bit",
    "maximum",
    "minimum",
    "pick",
    "rough_exp_of_negative",
    "splat",
    "square_root",
    "store",
    "sum_of",
    "widen",
    "with_sign",
]

LANES = 16
CACHE_LINE_BYTES = 64
ROUNDER = 3 * 2.0**22

_F32 = ir.VectorType(ir.FloatType(), LANES)
_F64 = ir.VectorType(ir.DoubleType(), LANES)
_I32 = ir.VectorType(ir.IntType(32), LANES)
_MASK = ir.VectorType(ir.IntType(1), LANES)


class LanesType(types.Type):
    """The numba type of 16 lanes of float32 or float64."""

    def __init__(self, dtype: types.Float) -> None:
        super().__init__(f"{dtype}x{LANES}")
        self.dtype = dtype

    @property
    def vector(self) -> ir.VectorType:
        """What it is to LLVM."""
        return _F32 if self.dtype == types.float32 else _F64


lanes_type = LanesType(types.float32)
wide_type = LanesType(types.float64)


def _lanes_of(dtype):
    return wide_type if dtype == types.float64 else lanes_type


@register_model(LanesType)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager, kind):
        super().__init__(manager, kind, kind.vector)


def _row_pointer(context, builder, array_type, array, row, vector):
    data = cgutils.create_struct_proxy(array_type)(context, builder, value=array).data
    first = builder.mul(row, ir.Constant(row.type, LANES))
    return builder.bitcast(builder.gep(data, [first]), vector.as_pointer())


def _repeated(builder, number, vector):
    nothing = ir.Constant(vector, ir.Undefined)
    first = builder.insert_element(nothing, number, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(first, nothing, ir.Constant(_I32, [0] * LANES))


def _constant(value):
    return ir.Constant(_F32, [value] * LANES)


def _call(builder, name, arguments):
    vector = arguments[0].type
    suffix = f"v{LANES}f{32 if vector == _F32 else 64}"
    signature = ir.FunctionType(vector, [vector] * len(arguments))
    function = cgutils.get_or_insert_function(builder.module, signature, f"{name}.{suffix}")
    return builder.call(function, arguments)


@intrinsic
def load(typing, array, row):
    """Return row ``row`` of an array of shape (n, 16)."""
    lanes = _lanes_of(array.dtype)

    def generate(context, builder, signature, arguments):
        pointer = _row_pointer(context, builder, signature.args[0], *arguments, lanes.vector)
        return builder.load(pointer, align=4)

    return lanes(array, types.intp), generate


@intrinsic
def store(typing, array, row, lanes):
    """Set row ``row`` of an array of shape (n, 16).

    The fence does nothing but hide how the lanes came about. Where some of them are what the row
    had before, LLVM would store the others by a mask, which without AVX-512 takes an AMD processor
    seven times as long as the whole row.
    """

    def generate(context, builder, signature, arguments):
        array, row, lanes = arguments
        pointer = _row_pointer(context, builder, signature.args[0], array, row, lanes.type)
        lanes = _call(builder, "llvm.arithmetic.fence", [lanes])
        builder.store(lanes, pointer, align=4)
        return context.get_dummy_value()

    return types.none(array, types.intp, lanes), generate


@intrinsic
def fetch(typing, array, row):
    """Have row ``row`` of an array of shape (n, 16) brought into the caches, without waiting."""

    def generate(context, builder, signature, arguments):
        pointer = _row_pointer(context, builder, signature.args[0], *arguments, ir.IntType(8))
        # To be read, all caches, data.
        options = [ir.Constant(ir.IntType(32), option) for option in (0, 3, 1)]
        kinds = [pointer.type, *(option.type for option in options)]
        kind = ir.FunctionType(ir.VoidType(), kinds)
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(function, [pointer, *options])
        return context.get_dummy_value()

    return types.none(array, types.intp), generate


@intrinsic
def accumulate(typing, totals, row, lanes):
    """Add lanes to row ``row`` of a float64 array of shape (n, 16)."""

    def generate(context, builder, signature, arguments):
        totals, row, lanes = arguments
        pointer = _row_pointer(context, builder, signature.args[0], totals, row, _F64)
        total = builder.load(pointer, align=8)
        builder.store(builder.fadd(total, builder.fpext(lanes, _F64)), pointer, align=8)
        return context.get_dummy_value()

    return types.none(totals, types.intp, lanes), generate


@intrinsic
def clear(typing, totals, row):
    """Set row ``row`` of a float64 array of shape (n, 16) to 0."""

    def generate(context, builder, signature, arguments):
        pointer = _row_pointer(context, builder, signature.args[0], *arguments, _F64)
        builder.store(ir.Constant(_F64, [0.0] * LANES), pointer, align=8)
        return context.get_dummy_value()

    return types.none(totals, types.intp), generate


@intrinsic
def splat(typing, number):
    """Return 16 times the same number."""
    lanes = _lanes_of(number)

    def generate(context, builder, signature, arguments):
        return _repeated(builder, arguments[0], lanes.vector)

    return lanes(lanes.dtype), generate


@intrinsic
def lanes_of(typing, number):
    """Return 16 times the same number in float32, for numbers that the source code gives."""

    def generate(context, builder, signature, arguments):
        number = context.cast(builder, arguments[0], signature.args[0], types.float32)
        return _repeated(builder, number, _F32)

    return lanes_type(types.unliteral(number)), generate


@intrinsic
def widen(typing, x):
    """Return float32 lanes as float64."""

    def generate(context, builder, signature, arguments):
        return builder.fpext(arguments[0], _F64)

    return wide_type(x), generate


@intrinsic
def sum_of(typing, x):
    """Return the sum of float64 lanes, in whatever order is fast."""

    def generate(context, builder, signature, arguments):
        kind = ir.FunctionType(ir.DoubleType(), [ir.DoubleType(), _F64])
        name = f"llvm.vector.reduce.fadd.v{LANES}f64"
        function = cgutils.get_or_insert_function(builder.module, kind, name)
        zero = ir.Constant(ir.DoubleType(), 0.0)
        return builder.call(function, [zero, arguments[0]], fastmath=("reassoc",))

    return types.float64(x), generate


@intrinsic
def from_bits(typing, bits):
    """Return 1 for the lanes whose bit is set in an unsigned 16-bit number, else 0."""

    def generate(context, builder, signature, arguments):
        return builder.uitofp(builder.bitcast(arguments[0], _MASK), _F32)

    return lanes_type(types.uint16), generate


@intrinsic
def fma(typing, x, y, z):
    """Return x y + z, rounded once where the machine can."""

    def generate(context, builder, signature, arguments):
        return _call(builder, "llvm.fmuladd", arguments)

    return x(x, y, z), generate


@intrinsic
def pick(typing, condition, x, y):
    """Return x where the condition is true (above 0), else y."""

    def generate(context, builder, signature, arguments):
        condition, x, y = arguments
        return builder.select(builder.fcmp_ordered(">", condition, _constant(0.0)), x, y)

    return lanes_type(condition, x, y), generate


@intrinsic
def bits_above(typing, x, y):
    """Return an unsigned 16-bit number with the bits of the lanes where x is above y."""

    def generate(context, builder, signature, arguments):
        return builder.bitcast(builder.fcmp_ordered(">", *arguments), ir.IntType(LANES))

    return types.uint16(x, y), generate


@intrinsic
def lowest_bit(typing, bits):
    """Return which is the lowest bit that is set in an unsigned 16-bit number above 0."""

    def generate(context, builder, signature, arguments):
        lowest = builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))
        return builder.zext(lowest, ir.IntType(64))

    return types.uint64(types.uint16), generate


@intrinsic
def any_true(typing, condition):
    """Return whether any lane is above 0."""

    def generate(context, builder, signature, arguments):
        above = builder.fcmp_ordered(">", arguments[0], _constant(0.0))
        bits = builder.bitcast(above, ir.IntType(LANES))
        return builder.icmp_unsigned("!=", bits, ir.Constant(ir.IntType(LANES), 0))

    return types.boolean(condition), generate


def _from_llvm(name, n_arguments):
    """Return the function of lanes that LLVM has under this name."""

    def generate(context, builder, signature, arguments):
        return _call(builder, f"llvm.{name}", arguments)

    if n_arguments == 1:

        @intrinsic
        def of_one(typing, x):
            return lanes_type(x), generate

        return of_one

    @intrinsic
    def of_two(typing, x, y):
        return lanes_type(x, y), generate

    return of_two


absolute = _from_llvm("fabs", 1)
square_root = _from_llvm("sqrt", 1)
with_sign = _from_llvm("copysign", 2)  # |x| with the sign of y


def _chosen_by(comparison):
    """Return the function of two lanes that gives x where it compares so to y, else y."""

    @intrinsic
    def choose(typing, x, y):
        def generate(context, builder, signature, arguments):
            x, y = arguments
            return builder.select(builder.fcmp_ordered(comparison, x, y), x, y)

        return lanes_type(x, y), generate

    return choose


maximum = _chosen_by(">")
minimum = _chosen_by("<")


@numba.njit(inline="always")
def clip(x, low, high):
    """Return x held to [low, high]."""
    return minimum(maximum(x, low), high)


@intrinsic
def _times_power(typing, x, rounded):
    """Return x 2^k for the k that is in the last bits of a sum with ROUNDER."""

    def generate(context, builder, signature, arguments):
        x, k = (builder.bitcast(argument, _I32) for argument in arguments)
        shifted = builder.shl(k, ir.Constant(_I32, [23] * LANES))
        return builder.bitcast(builder.add(x, shifted), _F32)

    return lanes_type(x, rounded), generate


def _register_operator(symbol, instruction):
    """Have an operator of lanes be an instruction: a function would be compiled with every use."""

    @type_callable(symbol)
    def type_of_result(context):
        return lambda x, y: x if isinstance(x, LanesType) and x == y else None

    @lower_builtin(symbol, LanesType, LanesType)
    def generate(context, builder, signature, arguments):
        return getattr(builder, instruction)(*arguments)


for _symbol, _instruction in (
    (operator.add, "fadd"),
    (operator.sub, "fsub"),
    (operator.mul, "fmul"),
    (operator.truediv, "fdiv"),
):
    _register_operator(_symbol, _instruction)


@type_callable(operator.neg)
def _type_of_negative(context):
    return lambda x: x if isinstance(x, LanesType) else None


@lower_builtin(operator.neg, LanesType)
def _negative(context, builder, signature, arguments):
    return builder.fneg(*arguments)


@numba.njit(inline="always")
def exp_of(x):
    """Return exp(x) to about 3e-7 relative; below exp(-80) it stays there, from 88 on it is wrong.

    exp(x) = 2^k exp(r) with a whole k and |r| <= ln(2)/2, where a polynomial will do: the best
    one of degree 5, 7e-8 off. A number above 2^23 has no digits after the point, so that adding
    ROUNDER rounds, and leaves k in the last bits. Pairs of powers need not wait for each other.
    """
    x = maximum(x, lanes_of(-80))
    rounded = fma(x, lanes_of(1.44269504), lanes_of(ROUNDER))
    k = rounded - lanes_of(ROUNDER)
    r = fma(k, lanes_of(-0.693147181), x)
    square = r * r
    high = fma(r, lanes_of(0.00833747543), lanes_of(0.04191117616))
    middle = fma(r, lanes_of(0.1666673087), lanes_of(0.4999901021))
    low = fma(r, lanes_of(1.000000136), lanes_of(1))
    return _times_power(fma(fma(high, square, middle), square, low), rounded)


@numba.njit(inline="always")
def rough_exp_of_negative(a):
    """Return exp(-a) for a >= 0 to about 5e-5 relative; below exp(-80) it stays there."""
    a = minimum(a, lanes_of(80)) * lanes_of(1.44269504)
    rounded = lanes_of(ROUNDER) - a
    r = (lanes_of(ROUNDER) - rounded) - a  # exp(-a) = 2^k 2^r
    p = lanes_of(0.0096181291)
    p = fma(p, r, lanes_of(0.0555041087))
    p = fma(p, r, lanes_of(0.2402265070))
    p = fma(p, r, lanes_of(0.6931471806))
    return _times_power(fma(p, r, lanes_of(1)), rounded)


@numba.njit(inline="always")
def log1p_of_quotient(t):
    """Return log(1 + e) for e in [0, 1], given t = e / (2 + e), to about 1e-7: 2 artanh(t)."""
    t2 = t * t
    p = lanes_of(1 / 13)
    p = fma(p, t2, lanes_of(1 / 11))
    p = fma(p, t2, lanes_of(1 / 9))
    p = fma(p, t2, lanes_of(1 / 7))
    p = fma(p, t2, lanes_of(1 / 5))
    p = fma(p, t2, lanes_of(1 / 3))
    return lanes_of(2) * fma(p * t2, t, t)


def line_aligned(n_arrays: int, n_rows: int, buffers: Buffers | None = None) -> np.ndarray:
    """Return zeros of shape (n_arrays, n_rows, 16) in which every row is one cache line.

    One piece for all arrays: NumPy asks for huge pages from 4 MiB on.
    """
    size = n_arrays * n_rows * LANES
    spare = CACHE_LINE_BYTES // 4
    buffer = (buffers or Buffers()).zeros(size + spare)
    first = (-buffer.ctypes.data % CACHE_LINE_BYTES) // 4
    return buffer[first : first + size].reshape(n_arrays, n_rows, LANES)
