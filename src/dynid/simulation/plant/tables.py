"""A robot with its parameters, in the form read by the plant's kernels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dynid.common.arrays import Array
from dynid.common.errors import InputError
from dynid.dynamics.forward import Masses, masses_of
from dynid.mechanism.mechanism import Mechanism
from dynid.simulation.plant.drives import Drives
from dynid.simulation.plant.layout import Model

# Instructions of `term_kernels`, in the order of their codes.
_CODES = ("number", "q", "dq", "ddq", "neg", "+", "-", "*", "/", "^")
_FUNCTIONS = ("sin", "cos", "tan", "atan2", "sqrt", "exp", "abs", "sign")


@dataclass(frozen=True, eq=False)
class BodyModel:
    """Bodies, rotors, declared columns and friction of a robot with given parameters.

    Attributes:
        masses: Bodies and rotors.
        terms: Declared columns, see `term_kernels`; None without any.
        drives: Friction.
    """

    masses: Masses
    terms: tuple[Array, ...] | None
    drives: Drives

    @property
    def tables(self) -> Model:
        """Model of a controller, in the form read by `control_kernels`."""
        return Model(self.masses, self.terms, self.drives.tables)


def body_model(
    mechanism: Mechanism, values: Mapping[str, float], mounted: tuple[str, ...], drives: Drives
) -> BodyModel:
    """The model of a robot.

    Args:
        mechanism: The robot.
        values: Standard parameters by name, SI; those not named are zero.
        mounted: Payloads on the robot.
        drives: Its friction.
    """
    masses = masses_of(mechanism, values, mounted)
    return BodyModel(masses, term_tables(mechanism, values), drives)


def term_tables(mechanism: Mechanism, values: Mapping[str, float]) -> tuple[Array, ...] | None:
    """Declared extra columns, see `term_kernels`; None without any."""
    if not mechanism.terms:
        return None
    codes = {name: i for i, name in enumerate((*_CODES, *_FUNCTIONS))}
    places = {"q": mechanism.positions, "dq": mechanism.coordinates, "ddq": mechanism.coordinates}
    first, code, argument = [0], [], []
    for term in mechanism.terms:
        if term.expression.friction:
            raise InputError(
                f"'{term.name}' is friction of another package, which forward simulation cannot compute",
                remedy="use engine `inverse`",
            )
        for kind, operand in term.expression.program:
            if kind == "signal":
                code.append(codes[operand[0]])
                argument.append(float(places[operand[0]].index(operand[1])))
            else:
                code.append(codes["number" if kind == "number" else operand])
                argument.append(float(operand) if kind == "number" else 0.0)
        first.append(len(code))
    reads = [any(kind == "dq" for kind, _ in term.expression.signals) for term in mechanism.terms]
    rows = [mechanism.coordinates.index(term.joint) for term in mechanism.terms]
    return (
        np.array(first, dtype=np.int64),
        np.array(code, dtype=np.int64),
        np.array(argument, dtype=float),
        np.array(rows, dtype=np.int64),
        np.array([values.get(term.name, 0.0) for term in mechanism.terms], dtype=float),
        np.array(reads, dtype=bool),
    )
