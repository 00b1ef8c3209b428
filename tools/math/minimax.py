#!/usr/bin/env python3
"""Derives the polynomial coefficients of src/codegen/math_*.cpp: weighted minimax fits by Remez exchange.

Each coefficient is rounded to float32 (or float64) in turn, lowest power first, and the others are fitted again, so
that rounding costs almost nothing. Run without arguments it prints every table that the sources hold, with the largest
weighted error as a power of two; with names it prints those.
"""
import struct
import sys

import numpy as np
from mpmath import mp, mpf

mp.dps = 50


def to_float32(v):
    return mpf(struct.unpack("f", struct.pack("f", float(v)))[0])


def to_float64(v):
    return mpf(float(v))


def remez(target, weight, powers, low, high, rounds=12):
    """Coefficients of sum c_k x^powers[k] that minimise max |(target - poly) * weight| over [low, high], and the error."""
    n = len(powers)
    # Off centre, or an odd power alone on a symmetric interval makes the first system singular.
    points = [low + (high - low) * (1 - mp.cos(mp.pi * (i + mpf("0.3")) / (n + mpf("0.5")))) / 2 for i in range(n + 1)]
    grid = [low + (high - low) * (1 - mp.cos(mp.pi * i / 400)) / 2 for i in range(401)]
    targets = [target(x) for x in grid]
    weights = [weight(x) for x in grid]
    coefficients, level = None, None
    for _ in range(rounds):
        a = mp.matrix(n + 1, n + 1)
        b = mp.matrix(n + 1, 1)
        for i, x in enumerate(points):
            for k, p in enumerate(powers):
                a[i, k] = x**p
            a[i, n] = (-1) ** i / weight(x)
            b[i] = target(x)
        try:
            solution = mp.lu_solve(a, b)
        except ZeroDivisionError:
            break
        coefficients, level = [solution[k] for k in range(n)], abs(solution[n])
        errors = [
            (t - sum(c * x**p for c, p in zip(coefficients, powers))) * w for x, t, w in zip(grid, targets, weights)
        ]
        extrema = [0]  # the largest error of each run of equal sign
        for i in range(1, len(grid)):
            if (errors[i] > 0) != (errors[extrema[-1]] > 0):
                extrema.append(i)
            elif abs(errors[i]) > abs(errors[extrema[-1]]):
                extrema[-1] = i
        while len(extrema) > n + 1:  # drop the smaller end
            extrema.pop(0 if abs(errors[extrema[0]]) < abs(errors[extrema[-1]]) else -1)
        if len(extrema) < n + 1:
            break
        points = [grid[i] for i in extrema]
        if max(abs(e) for e in errors) < level * mpf("1.001"):
            break
    return coefficients, max(abs(e) for e in errors)


def lawson(residual, weight, columns, rounds=200):
    """Coefficients of `columns` for the smallest max |residual - sum| * weight: least squares, reweighted by the error."""
    emphasis = np.ones(len(residual)) / len(residual)
    best, best_error = None, np.inf
    for _ in range(rounds):
        w = np.sqrt(emphasis) * weight
        solution = np.linalg.lstsq(columns * w[:, None], residual * w, rcond=None)[0]
        errors = np.abs(residual - columns @ solution) * weight
        if errors.max() < best_error:
            best, best_error = solution, errors.max()
        emphasis = emphasis * errors + 1e-300
        emphasis /= emphasis.sum()
    return best


def fit(target, weight, powers, low, high, rounding=to_float32):
    """As remez, with coefficients that the type can hold. `powers` ascend."""
    low, high, powers = mpf(low), mpf(high), list(powers)
    start, error = remez(target, weight, powers, low, high)
    if rounding is to_float64:
        return [to_float64(c) for c in start], error
    # What is left to fit are corrections of the real-valued solution, small enough for double arithmetic.
    grid = [low + (high - low) * (1 - mp.cos(mp.pi * i / 600)) / 2 for i in range(601)]
    weights = np.array([float(weight(x)) for x in grid])
    residual = [target(x) - sum(c * x**p for c, p in zip(start, powers)) for x in grid]
    corrections = [mpf(0)] * len(powers)
    fixed = []
    for k, power in enumerate(powers):
        fixed.append(rounding(start[k] + corrections[k]))
        step = fixed[-1] - start[k]
        residual = [r - step * x**power for r, x in zip(residual, grid)]
        if k + 1 < len(powers):
            columns = np.array([[float(x**p) for p in powers[k + 1 :]] for x in grid])
            solution = lawson(np.array([float(r) for r in residual]), weights, columns)
            corrections[k + 1 :] = [mpf(float(c)) for c in solution]
    error = max(abs(float(r)) * w for r, w in zip(residual, weights))
    return fixed, mpf(error)


def away_from_zero(f, at_zero, tiny=mpf("1e-12")):
    return lambda x: at_zero if abs(x) < tiny else f(x)


HALF_LN2 = mp.log(2) / 2 * mpf("1.001")
TABLES = {}


def table(function):
    TABLES[function.__name__] = function
    return function


@table
def exp():
    """e^r = 1 + r + r^2 q(r), relative to e^r."""
    q = away_from_zero(lambda r: (mp.exp(r) - 1 - r) / r**2, mpf(1) / 2)
    return fit(q, lambda r: r**2 / mp.exp(r) + mpf("1e-6"), range(5), -HALF_LN2, HALF_LN2)


@table
def expm1():
    """e^r = 1 + r + r^2 q(r), relative to e^r - 1."""
    q = away_from_zero(lambda r: (mp.exp(r) - 1 - r) / r**2, mpf(1) / 2)
    return fit(q, lambda r: abs(r) + mpf("1e-6"), range(6), -HALF_LN2, HALF_LN2)


@table
def exp2():
    """2^r = 1 + r q(r), relative to 2^r."""
    q = away_from_zero(lambda r: (mp.mpf(2) ** r - 1) / r, mp.log(2))
    return fit(q, lambda r: abs(r) + mpf("1e-6"), range(7), mpf("-0.5005"), mpf("0.5005"))


def log_quotient(f):
    return (mp.log(1 + f) - f) / f**2


@table
def log():
    """log(1 + f) = f + f^2 q(f), relative to log(1 + f)."""
    q = away_from_zero(log_quotient, mpf(-1) / 2)
    return fit(q, lambda f: abs(f) + mpf("1e-6"), range(9), mpf("-0.25"), mpf("0.5"))


@table
def log2():
    """log2(1 + f) = c f + f^2 q(f), c = log2(e), relative to log2(1 + f)."""
    q = away_from_zero(lambda f: log_quotient(f) / mp.log(2), mpf(-1) / 2 / mp.log(2))
    return fit(q, lambda f: abs(f) + mpf("1e-6"), range(9), mpf("-0.2929"), mpf("0.4143"))


@table
def log10():
    """log10(1 + f) = c f + f^2 q(f), c = log10(e), relative to log10(1 + f)."""
    q = away_from_zero(lambda f: log_quotient(f) / mp.log(10), mpf(-1) / 2 / mp.log(10))
    return fit(q, lambda f: abs(f) + mpf("1e-6"), range(9), mpf("-0.25"), mpf("0.5"))


@table
def erf_small():
    """erf(x) = x + x p(x^2) for |x| <= 1, relative."""
    p = away_from_zero(lambda s: mp.erf(mp.sqrt(s)) / mp.sqrt(s) - 1, 2 / mp.sqrt(mp.pi) - 1)
    return fit(p, lambda s: mpf(1), range(7), mpf("0"), mpf("1.0"))


@table
def erf_large():
    """erf(t) = 1 - exp(-t - t q(t)) for 1 <= t <= 4, absolute in erf."""
    q = lambda t: -mp.log(mp.erfc(t)) / t - 1  # noqa: E731
    return fit(q, lambda t: t * mp.erfc(t) , range(7), mpf("0.98"), mpf("4.0"))


@table
def sin():
    """sin(r) = r + r^3 p(r^2) for |r| <= pi/4, relative."""
    p = away_from_zero(lambda s: (mp.sin(mp.sqrt(s)) / mp.sqrt(s) - 1) / s, mpf(-1) / 6)
    return fit(p, lambda s: s + mpf("1e-6"), range(4), mpf(0), (mp.pi / 4 * mpf("1.001")) ** 2)


@table
def cos():
    """cos(r) = 1 - r^2 / 2 + r^4 p(r^2) for |r| <= pi/4, relative."""
    p = away_from_zero(lambda s: (mp.cos(mp.sqrt(s)) - 1 + s / 2) / s**2, mpf(1) / 24, mpf("1e-10"))
    return fit(p, lambda s: s**2 + mpf("1e-6"), range(3), mpf(0), (mp.pi / 4 * mpf("1.001")) ** 2)


@table
def pow_log2():
    """log2(1 + f) = f q(f), relative; in double, for pow."""
    q = away_from_zero(lambda f: mp.log(1 + f) / mp.log(2) / f, 1 / mp.log(2))
    return fit(q, lambda f: f / mp.log(1 + f) if abs(f) > mpf("1e-12") else mpf(1), range(16), mpf("-0.25"), mpf("0.5"), to_float64)


@table
def pow_exp2():
    """2^r, relative; in double, for pow."""
    return fit(lambda r: mpf(2) ** r, lambda r: mpf(1), range(8), mpf("-0.5"), mpf("0.5"), to_float64)


def main():
    for name in sys.argv[1:] or TABLES:
        coefficients, error = TABLES[name]()
        print(f"{name}: {TABLES[name].__doc__} error 2^{float(mp.log(error, 2)):.1f}")
        print("   ", ", ".join(f"{float(c):.10g}" if abs(to_float32(c) - c) == 0 else f"{float(c):.17g}" for c in reversed(coefficients)))


if __name__ == "__main__":
    main()
