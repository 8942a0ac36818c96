"""From base parameters to values for every body and drive, with the same efforts.

    chi = chi_0 + [N U] y,      W chi_0 = W_base x,      W N = 0

chi_0 has each base value at the parameter that it is named after. N are the changes that no motion shows, U
the base parameters that the data did not determine. y minimises the entropic distance of all bodies to
the description, so that bodies are physically consistent and drives dissipate. Efforts do not depend on y.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from dynid.common.arrays import Array, Float, Int
from dynid.common.errors import InputError
from dynid.estimator.estimator import gives_bodies
from dynid.estimator.settings import GAIN
from dynid.experiment.experiment import Experiment
from dynid.experiment.provenance import recorded_loads
from dynid.mechanism.inertia import SYMBOLS, in_parent_frame
from dynid.mechanism.mechanism import Body, Mechanism, Payload
from dynid.mechanism.parameters import Parameter, parameter_table
from dynid.prediction.effort_space import (
    REMEDY,
    EffortSpace,
    all_motions,
    consistent_set,
    faults,
    nearest_by_efforts,
    nearest_set,
    negative_values,
    with_free_values,
    written_as_found,
)
from dynid.prediction.predict import refuse_no_robot
from dynid.statistics.estimate import Estimate, ParameterEstimate

NotPhysical = Literal["noise", "refuse", "nearest", "mark", "ignore"]
_NOISE = 5.0  # standard deviations that noise may put a set outside of what is physical
_WITHIN = (
    0.5  # of the errors along the logs: a smaller change of the efforts makes them an eighth larger at most
)
PayloadUse = Literal["link", "merge", "leave-out"]


@dataclass(frozen=True, eq=False)
class FullSet:
    """Values for every standard parameter, and the robot that has them.

    Attributes:
        estimate: Fits `mechanism`: without the parameters of payloads that were merged or left out.
        mechanism: The robot; the values are its priors.
        parameters: Its standard parameters, payloads mounted.
        chi: Their values, shape (p,), SI.
        reference: Values whose efforts are those of the base parameters, shape (p,), SI.
        physical: Whether all bodies are physically consistent and no drive brakes backwards.
        notes: What a user of the values should know, one sentence each.
        open_loads: Payloads whose mass neither the logs nor the description give.
    """

    estimate: Estimate
    mechanism: Mechanism
    parameters: tuple[Parameter, ...]
    chi: Float[Array, "p"]
    reference: Float[Array, "p"]
    physical: bool
    notes: tuple[str, ...]
    open_loads: tuple[str, ...] = ()


def full_set(
    estimate: Estimate,
    experiment: Experiment,
    mechanism: Mechanism,
    not_physical: NotPhysical = "noise",
    payload: PayloadUse = "link",
    rows: Callable[[EffortSpace], Float[Array, "r p"] | None] | None = None,
) -> FullSet:
    """All parameters of the robot of a result, near its description.

    Args:
        estimate: The result.
        experiment: Its settings.
        mechanism: Its robot, with all payloads that it can carry.
        not_physical: If no physically consistent bodies have these base parameters: take the nearest
            consistent set if noise explains the difference, or if the efforts along the logs change by less
            than half of their errors; refuse; take the nearest set however far it is; write the values as
            they are; or the same without a note, where no bodies are written.
        payload: Identified payloads as bodies of their own, merged into their carriers, or left out.
        rows: What changes of the parameters do to the efforts, for `nearest_by_efforts`.
    """
    space = space_of(estimate, experiment, mechanism)
    chi, notes, physical = chosen_values(space, not_physical, rows)
    notes = (*_free_notes(space), *notes)
    unknown = _without_values(space)
    if unknown and not_physical != "ignore":
        notes = (
            *notes,
            f"The logs determine only sums with the masses of {', '.join(unknown)}, and the description has"
            " no values of them: how a sum is divided among bodies is chosen by regularisation, not found.",
        )
    unseen = _unseen_of_loads(space, unknown)
    if unseen and not_physical != "ignore":
        notes = (
            *notes,
            f"The logs do not determine {', '.join(unseen)}: the values are near the description, or those of"
            " a generic body.",
        )
    full = _mounted(space, chi, with_free_values(space, chi), physical, notes, payload)
    return replace(full, open_loads=tuple(name for name in unknown if name in full.mechanism.payloads))


def space_of(estimate: Estimate, experiment: Experiment, mechanism: Mechanism) -> EffortSpace:
    """All values with the efforts of a result; arguments as of `full_set`."""
    refuse_no_robot(estimate, mechanism)
    return EffortSpace(estimate, experiment, _carrying(estimate, mechanism))


def chosen_values(
    space: EffortSpace,
    not_physical: NotPhysical = "noise",
    rows: Callable[[EffortSpace], Float[Array, "r p"] | None] | None = None,
) -> tuple[Float[Array, "p"], tuple[str, ...], bool]:
    """Values, shape (p,), SI; what to say about them; and whether they are physical."""
    estimated = space.values.chi
    if gives_bodies(space.estimate.estimator) and not faults(space, estimated):
        return estimated, (), True
    stored = _stored(space) if not_physical in ("noise", "nearest") else None
    if stored is not None:
        return stored, ("The standard set of the result is written: its efforts differ a little.",), True
    chi, reason = consistent_set(space)
    if chi is not None:
        return chi, (), True
    reason = ", ".join(negative_values(space, estimated, fixed=True)) or reason
    if not_physical in ("mark", "ignore"):
        note = f"NOT PHYSICAL: {reason}. The values are written as they are; simulators may refuse them."
        return written_as_found(space), (note,) if not_physical == "mark" else (), False
    values, distance = nearest_set(space)
    # Within noise the covariance decides, as for the masses of the report.
    seen = None if rows is None or distance <= _NOISE or not space.shown_by_logs else rows(space)
    change = np.inf
    if seen is not None:
        values, change = nearest_by_efforts(space, seen, values)
    near = distance <= _NOISE or change <= _WITHIN
    moved = "" if seen is None else f", and moves the efforts along the logs by {change:.2g} of their errors"
    if not_physical == "refuse" or (not_physical == "noise" and not near):
        raise InputError(
            f"no physically consistent robot has these base parameters: {reason}; the nearest that is real is"
            f" {distance:.2g} sigma away{moved}",
            remedy=REMEDY,
        )
    why = (
        "Because of noise, no real bodies have exactly these base parameters."
        if distance <= _NOISE
        else f"The base parameters are not physical ({reason})."
    )
    note = (
        f"{why} The nearest physically consistent set is written, {distance:.2g} standard deviations away"
        f"{moved}: its efforts differ from those of the estimate."
    )
    return values, (note,), True


def _stored(space: EffortSpace) -> Float[Array, "p"] | None:
    """The consistent set that was asked for with the estimate (`standard: true`); None: there is none."""
    given = {str(entry["name"]): float(entry["value"]) for entry in space.estimate.standard}
    if not all(parameter.name in given for parameter in space.parameters):
        return None
    chi = np.array([given[parameter.name] for parameter in space.parameters])
    return None if faults(space, chi) else chi


def _free_notes(space: EffortSpace) -> list[str]:
    notes = []
    if space.free:
        names = ", ".join(space.parameters[i].name for i in space.free)
        notes.append(f"Not determined by the data, near the values of the description: {names}.")
    gains = [
        parameter.name for parameter in space.estimate.parameters if parameter.name.startswith(f"{GAIN}_")
    ]
    if gains:
        notes.append(f"Efforts are in N m or N: drive gains ({', '.join(gains)}) are part of no model.")
    if any(notice.code == "rounded-geometry" for notice in space.base.notices):
        notes.append("Dimensions of the description are rounded: efforts change by as much.")
    if space.always:
        names = ", ".join(sorted(space.always))
        notes.append(f"Payload {names} was in every log: only its sum with its carrier is determined.")
    return notes


def _without_values(space: EffortSpace) -> list[str]:
    """Bodies whose mass neither the logs nor the description give."""
    seen = ~np.any(space.T != 0.0, axis=1)
    return [
        parameter.owner
        for i, parameter in enumerate(space.parameters)
        if parameter.symbol == "M"
        and not seen[i]
        and i not in space.fixed
        and parameter.name not in space.prior
    ]


def _unseen_of_loads(space: EffortSpace, unknown: Sequence[str]) -> list[str]:
    """Parameters of payloads that no log shows for themselves, where no other note says so."""
    quiet = {*space.always, *unknown}
    return [
        parameter.name
        for i, parameter in enumerate(space.parameters)
        if parameter.owner in set(space.mechanism.payloads) - quiet
        and np.any(space.T[i] != 0.0)
        and i not in (*space.fixed, *space.free)
    ]


# Payloads: bodies of their own, part of their carriers, or left out.


def _carrying(estimate: Estimate, mechanism: Mechanism) -> Mechanism:
    """The robot with the payloads that the result knows or contains, and no others."""
    known = {}
    carried = set().union(*recorded_loads(estimate.provenance))
    for name, payload in mechanism.payloads.items():
        identified = any(p.name.removesuffix("_R").endswith(f"_{name}") for p in estimate.parameters)
        if identified or name in carried or len(payload.known) == len(SYMBOLS):
            known[name] = payload
    return replace(mechanism, payloads=known)


def _mounted(
    space: EffortSpace,
    chi: Float[Array, "p"],
    reference: Float[Array, "p"],
    physical: bool,
    notes: tuple[str, ...],
    use: PayloadUse,
) -> FullSet:
    """The robot with the values as priors, its payloads treated as asked."""
    table, mechanism = space.parameters, space.mechanism
    if use == "link" or not mechanism.payloads:
        robot = with_values(mechanism, dict(zip((p.name for p in table), chi.tolist(), strict=True)))
        return FullSet(space.estimate, robot, table, chi, reference, physical, notes)
    index = {p.name: i for i, p in enumerate(table)}
    loads = list(mechanism.payloads)
    chi, reference = chi.copy(), reference.copy()
    if use == "merge":
        for payload in mechanism.payloads.values():
            _refuse_partial(mechanism.bodies[payload.body])
            load_rows, carrier = (_places(index, name) for name in (payload.name, payload.body))
            for values in (chi, reference):
                values[carrier] += in_parent_frame(values[load_rows], payload.frame.R, payload.frame.p)
        notes = (*notes, f"Payload {', '.join(loads)} is part of its carrier.")
    else:
        _refuse_always(space)
        notes = (*notes, f"Payload {', '.join(loads)} is left out.")
    kept = [i for i, p in enumerate(table) if p.owner not in loads]
    bare = replace(mechanism, payloads={})
    table, chi, reference = tuple(table[i] for i in kept), chi[kept], reference[kept]
    robot = with_values(bare, dict(zip((p.name for p in table), chi.tolist(), strict=True)))
    estimate = _regrouped(space.estimate, bare, table, reference, loads if use == "merge" else [])
    return FullSet(estimate, robot, table, chi, reference, physical, notes)


def _refuse_always(space: EffortSpace) -> None:
    if () not in space.loads:
        names = sorted(space.always or space.mechanism.payloads)
        raise InputError(
            f"payload {' or '.join(names)} was mounted in every log of the fit: it is part of its carrier,"
            " and cannot be left out",
            remedy="use --payload merge, or identify from a log without it as well",
        )


def _places(index: Mapping[str, int], owner: str) -> Int[Array, "10"]:
    return np.array([index[f"{symbol}_{owner}"] for symbol in SYMBOLS])


def _refuse_partial(body: Body) -> None:
    if len(body.parameters) < len(SYMBOLS):
        raise InputError(
            f"a payload cannot be merged into '{body.name}', which has only {', '.join(body.parameters)}",
            remedy="use --payload link",
        )


def _regrouped(
    estimate: Estimate,
    mechanism: Mechanism,
    table: Sequence[Parameter],
    chi: Float[Array, "p"],
    carried: Sequence[str],
) -> Estimate:
    """The estimate over the base parameters of another load; uncertainty is not carried over.

    Args:
        carried: Payloads that the robot now has in it; logs with others are not its own.
    """
    base = all_motions(mechanism, table)
    regrouped = tuple(
        ParameterEstimate(name, unit, float(value), None, None, None)
        for name, unit, value in zip(base.names, base.units, base.G @ chi, strict=True)
    )
    return replace(
        estimate,
        parameters=regrouped,
        covariance=np.zeros((0, 0)),
        shared=None,
        provenance={
            **estimate.provenance,
            "inputs": [
                {**entry, "payloads": []}
                for entry in estimate.provenance.get("inputs", ())
                if set(entry.get("payloads", carried)) == set(carried)
            ],
        },
    )


def with_values(mechanism: Mechanism, values: Mapping[str, float]) -> Mechanism:
    """The mechanism with these values of standard parameters as its priors."""

    def prior_of(owner: Body | Payload, symbols: Sequence[str]) -> dict[str, float]:
        return {s: values[f"{s}_{owner.name}"] for s in symbols if f"{s}_{owner.name}" in values}

    bodies = {
        name: replace(body, prior=prior_of(body, body.parameters)) for name, body in mechanism.bodies.items()
    }
    loads = {name: replace(load, prior=prior_of(load, SYMBOLS)) for name, load in mechanism.payloads.items()}
    rest = {p.name: values[p.name] for p in parameter_table(mechanism) if p.kind != "inertial"}
    return replace(mechanism, bodies=bodies, payloads=loads, prior=rest, rebuild=None)
