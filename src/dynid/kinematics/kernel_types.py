"""Argument types of kernels for trees and closures: their tables, as of `closure_kernels`."""

from __future__ import annotations

from typing import Any

from numba.core import types

from dynid.common.compiled import B1, F1, F2, I1, I2

Tuple: Any = types.Tuple  # it has no annotations

TREE = Tuple((I1, I1, I1, I1, F2))  # parent, kind, q_start, v_start, placement of every link
BODIES = Tuple((I1, F2))  # link, frame
LOOPS = Tuple((I1, F2, I1, I1, I1, I1, I1, B1, F1))
EQUATIONS = Tuple((I1, I1, F1, I1, F1, I1, I1, F1, I1))
LINEAR = Tuple((I1, I1, F1, F1))
WHERE = Tuple((I1, I1))  # row and column of every entry
CLOSURE = Tuple((TREE, LOOPS, EQUATIONS, LINEAR, WHERE))
PLAN = Tuple((I1, I1, I1, I2, I2, I2, I2, F1))  # of an `Elimination`
SENSORS = Tuple((I1, I1, I1, F1, I2, I1))
