"""Standard parameters for tests: in the order of Pinocchio, and from names."""

from __future__ import annotations

import numpy as np

from dynid.mechanism.parameters import parameter_table

# Pinocchio: M, MX, MY, MZ, XX, XY, YY, XZ, YZ, ZZ.  _FROM_PINOCCHIO[i] is the position of our entry i there.
_FROM_PINOCCHIO = np.array([4, 5, 7, 6, 8, 9, 1, 2, 3, 0])


def from_pinocchio(entries):
    """Our order from Pinocchio's, along the last axis (parameters or regressor columns)."""
    return np.asarray(entries)[..., _FROM_PINOCCHIO]


def to_pinocchio(entries):
    """Pinocchio's order from ours, along the last axis."""
    return np.asarray(entries)[..., np.argsort(_FROM_PINOCCHIO)]


def named_values(mechanism, values):
    """Standard parameters in the order of the table; those not named are zero."""
    return np.array([values.get(parameter.name, 0.0) for parameter in parameter_table(mechanism)])
