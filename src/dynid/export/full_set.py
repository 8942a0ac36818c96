"""From base parameters to values for every body and drive, with the same efforts.

    chi = chi_0 + [N U] y,      W chi_0 = W_base x,      W N = 0

chi_0 has each base value at the parameter that it is named after. N are the changes that no motion shows, U
the base parameters that the data did not determine. y minimises the entropic distance of all bodies to
the description, so that bodies are physically consistent and drives dissipate. Efforts do not depend on y.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from jaxtyping import Float, Int

from dynid.base.base import BaseSet
from dynid.base.structural import structural_base
from dynid.common.arrays import Array
from dynid.common.errors import InputError
from dynid.estimator.consistency import Consistency
from dynid.estimator.consistent import nearest_consistent
from dynid.estimator.gain_settings import GAIN
from dynid.estimator.rigid_bodies import RigidBody, rigid_bodies
from dynid.estimator.semidefinite import SOLVED, Program
from dynid.estimator.standard_space import NON_NEGATIVE, DataTerm, Pencil, StandardSpace, Variables
from dynid.experiment.experiment import Experiment
from dynid.experiment.provenance import recorded_loads
from dynid.mechanism.inertia import SYMBOLS, in_parent_frame, is_physical, pseudo_inertia
from dynid.mechanism.mechanism import Body, Mechanism, Payload
from dynid.mechanism.parameters import Parameter, known_columns, parameter_table, prior_values
from dynid.prediction.predict import refuse_per_mass
from dynid.prediction.result_values import StandardValues, fitted_places, standard_values
from dynid.projection.model import MODELS, model_named
from dynid.statistics.effort_prediction import covariance_root
from dynid.statistics.estimate import Estimate, ParameterEstimate

NotPhysical = Literal["noise", "refuse", "nearest", "mark"]
_NOISE = 5.0  # standard deviations that noise may put a set outside of what is physical
PayloadUse = Literal["link", "merge", "leave-out"]
_FAINT = 1e-2  # weight of drive parameters near the description, relative to that of a body
_PHYSICAL_RTOL = 1e-9  # the solver's own accuracy is 1e-8 of a scaled body, mostly far inside the cone
_FLOOR = 1e-6  # of a value: smallest standard deviation of a base parameter that a covariance may claim
_EDGE = 1e-9  # of a prior: thickness of a body that would be flat
_WIDER = (1.0, 10.0, 100.0, 1000.0)
_REMEDY = (
    "identify again with `estimator: consistent`, or choose --not-physical nearest (changes the efforts"
    " a little) or mark (writes the values as they are)"
)


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
    """

    estimate: Estimate
    mechanism: Mechanism
    parameters: tuple[Parameter, ...]
    chi: Float[Array, "p"]
    reference: Float[Array, "p"]
    physical: bool
    notes: tuple[str, ...]


def full_set(
    estimate: Estimate,
    experiment: Experiment,
    mechanism: Mechanism,
    not_physical: NotPhysical = "noise",
    payload: PayloadUse = "link",
) -> FullSet:
    """All parameters of the robot of a result, near its description.

    Args:
        estimate: The result.
        experiment: Its settings.
        mechanism: Its robot, with all payloads that it can carry.
        not_physical: If no physically consistent bodies have these base parameters: take the nearest
            consistent set if noise explains the difference, refuse, take the nearest set however far it is,
            or write the values as they are.
        payload: Identified payloads as bodies of their own, merged into their carriers, or left out.
    """
    if mechanism.force_sensor is not None:
        raise InputError(
            "a result of a force sensor contains the load on the sensor, not a model of the robot",
            remedy="use its compensation.py",
        )
    refuse_per_mass(estimate)
    mechanism = _carrying(estimate, mechanism)
    space = _Space(estimate, experiment, mechanism)
    chi, notes, physical = _chosen(space, not_physical)
    notes = (*_free_notes(space), *notes)
    return _mounted(space, chi, _with_free(space, chi), physical, notes, payload)


class _Space:
    """The affine space of all standard parameters with the efforts of a result."""

    def __init__(self, estimate: Estimate, experiment: Experiment, mechanism: Mechanism) -> None:
        self.estimate, self.mechanism = estimate, mechanism
        self.parameters = parameter_table(mechanism)
        model = model_named(estimate.model)
        rows = None if mechanism.is_closed else model.directions(mechanism)
        self.values: StandardValues = standard_values(
            estimate, mechanism, self.parameters, experiment, model, rows, mechanism.payloads
        )
        self.always = _always(estimate) & set(mechanism.payloads)
        self.base: BaseSet = _base(mechanism, self.parameters, tuple(self.always))
        self.free = self._undetermined()
        self.U = np.eye(len(self.parameters))[:, self.free]
        self.fixed = self._fixed(unloaded=experiment.unloaded is not None)
        self.T = np.hstack([_unseen(self.base, len(self.parameters)), self.U])
        self.prior = prior_values(mechanism)

    def _undetermined(self) -> list[int]:
        """Columns of base parameters that the data did not determine; the description decides."""
        names = {one.name.removesuffix("_R") for one in self.estimate.not_identifiable}
        taken = np.any(self.values.M != 0, axis=1)
        return [i for i in self.base.indices if self.parameters[i].name in names and not taken[i]]

    def _fixed(self, *, unloaded: bool) -> list[int]:
        """Columns whose values the description takes as exact."""
        known = replace(self.mechanism, known={}) if unloaded else self.mechanism
        return list(known_columns(known, self.parameters))


def _always(estimate: Estimate) -> set[str]:
    """Payloads that every log of the fit carried: they cannot be told from their carriers."""
    loads = recorded_loads(estimate.provenance)
    return set.intersection(*(set(load) for load in loads)) if loads else set()


def _base(mechanism: Mechanism, parameters: Sequence[Parameter], always: tuple[str, ...] = ()) -> BaseSet:
    """What all motions show, known values and ties aside.

    Args:
        always: Payloads without which no motion was seen.
    """

    def bare(one: Body) -> Body:
        return replace(one, known={})

    stripped = replace(
        mechanism,
        known={},
        bodies={name: bare(body) for name, body in mechanism.bodies.items()},
        payloads={name: replace(one, known={}) for name, one in mechanism.payloads.items()},
        rebuild=None,
    )
    model = MODELS["inverse"]
    rows = None if mechanism.is_closed else model.directions(stripped)
    loads = dict.fromkeys([always, tuple(mechanism.payloads)])
    return structural_base(stripped, model, parameters, rows, loads=list(loads))


def _unseen(base: BaseSet, p: int) -> Float[Array, "p n"]:
    """N with G N = 0: each grouped column against the base columns that contain it, and eliminated ones."""
    others = [i for i in range(p) if i not in base.indices]
    N = np.zeros((p, len(others)))
    N[others, np.arange(len(others))] = 1.0
    N[list(base.indices)] = -base.G[:, others]
    return N


def _chosen(space: _Space, not_physical: NotPhysical) -> tuple[Float[Array, "p"], tuple[str, ...], bool]:
    """Values, what to say about them, and whether they are physical."""
    own = space.values.chi
    if space.estimate.estimator == "consistent" and not _faults(space, own):
        return own, (), True
    chi, reason = _consistent(space)
    if chi is not None:
        return chi, (), True
    negative = _negative(space, own, fixed=True)
    reason = ", ".join(negative) or reason
    near = None if negative and not_physical != "nearest" else _nearest(space)
    if not_physical == "refuse" or (not_physical == "noise" and (near is None or near[1] > _NOISE)):
        far = "" if near is None else f"; the nearest that is real is {near[1]:.2g} sigma away"
        text = f"no physically consistent robot has these base parameters: {reason}{far}"
        raise InputError(text, remedy=_REMEDY)
    if not_physical == "mark":
        note = f"NOT PHYSICAL: {reason}. The values are written as they are; simulators may refuse them."
        return _plain(space), (note,), False
    values, distance = near or _nearest(space)
    note = (
        f"The base parameters are not physical ({reason}). The nearest physically consistent set is written,"
        f" {distance:.2g} standard deviations away: its efforts differ from those of the estimate."
    )
    return values, (note,), True


def _consistent(space: _Space) -> tuple[Float[Array, "p"] | None, str]:
    """Physically consistent values with unchanged efforts, near the description; or why there are none."""
    variables = _variables(space)
    if variables.n == 0:  # every parameter is a base parameter
        return space.values.chi, ""
    for program in (_near_description(space, variables), _thickest(space, variables)):
        found = program.solve()
        chi = variables.chi(found.x)
        # Any y serves whose bodies are real, whatever the solver says of its optimum.
        if np.all(np.isfinite(chi)) and not _faults(space, chi):
            return chi, ""
    return None, "no masses, centres of mass and inertias of real bodies add up to them"


def _constrained(space: _Space, variables: Variables) -> Program:
    """Drives that do not push, dry friction that brakes, and known values."""
    program = Program(variables.n)
    _drives(program, space, variables)
    if variables.dry[0].size:
        program.require("nonnegative", np.arange(variables.n), *variables.dry)
    if space.fixed:
        kept = space.T[space.fixed] * variables.scale
        program.require("zero", np.arange(variables.n_x), kept, np.zeros(len(kept)))
    return program


def _near_description(space: _Space, variables: Variables) -> Program:
    """Least sum of the entropic distances of all bodies to the description."""
    program = _constrained(space, variables)
    for pencil, P0 in _free_bodies(variables):
        logs = program.log_det(pencil.columns, pencil.F, pencil.g)
        program.minimise(pencil.columns, np.einsum("ab,kab->k", np.linalg.inv(P0), pencil.F))
        program.minimise(logs, -np.ones(len(logs)))
    return program


def _thickest(space: _Space, variables: Variables) -> Program:
    """Largest t <= 1 with P - t P0 >= 0 for all bodies: a simpler question for robots with many bodies."""
    program = _constrained(space, variables)
    t = program.variables(1)
    for pencil, P0 in _free_bodies(variables):
        columns = np.concatenate([pencil.columns, t])
        program.semidefinite(columns, np.concatenate([pencil.F, -P0[None]]), pencil.g)
    program.require("nonnegative", t, np.array([[-1.0]]), np.ones(1))
    program.minimise(t, -np.ones(1))
    everything = np.arange(variables.n_x)
    program.minimise_norm(everything, _FAINT**2 * np.eye(variables.n_x), np.zeros(variables.n_x))
    return program


def _free_bodies(variables: Variables) -> Iterator[tuple[Pencil, Float[Array, "4 4"]]]:
    """Bodies with all ten parameters that y can change, and their scaled priors."""
    for pencil in variables.every.values():
        if pencil.is_free and pencil.P0 is not None and len(pencil.faces) == len(pencil.P0) == 4:
            yield pencil, pencil.P0


def _variables(space: _Space) -> Variables:
    """Scaled coordinates y of the space, and the bodies as functions of them."""
    none = DataTerm(np.zeros((0, 0)), np.zeros((0, len(space.parameters))), np.zeros(0))
    return Variables(StandardSpace(space.parameters, space.T, space.values.chi, _bodies(space)), none)


def _bodies(space: _Space) -> tuple[RigidBody, ...]:
    """Bodies with a prior each: that of the description, or a generic one."""
    masses = {
        p.owner: abs(value)
        for p, value in zip(space.parameters, space.values.chi.tolist(), strict=True)
        if p.symbol == "M" and p.kind == "inertial" and value != 0.0
    }
    scale = float(np.median(list(masses.values()))) if masses else 1.0
    made = rigid_bodies(space.mechanism, space.parameters, {}, scale)
    return tuple(replace(one, prior=one.ball) if one.prior is None else one for one in made)


def _drives(program: Program, space: _Space, variables: Variables) -> None:
    """Drive parameters that y moves: not negative, and near the description."""
    rows = [i for i, p in enumerate(space.parameters) if p.kind != "inertial" and np.any(space.T[i] != 0)]
    if not rows:
        return
    F = space.T[rows] * variables.scale
    size = np.maximum(np.abs(F).max(axis=1), np.finfo(float).tiny)
    start = space.values.chi[rows]
    signed = [k for k, i in enumerate(rows) if space.parameters[i].symbol in NON_NEGATIVE]
    everything = np.arange(variables.n_x)
    program.require("nonnegative", everything, (F / size[:, None])[signed], (start / size)[signed])
    wanted = np.array([space.prior.get(space.parameters[i].name, 0.0) for i in rows])
    program.minimise_norm(everything, _FAINT * F / size[:, None], _FAINT * (start - wanted) / size)


def _plain(space: _Space) -> Float[Array, "p"]:
    """Values with unchanged efforts that are nearest to the description, physical or not."""
    unit = np.ones(len(space.parameters))
    wanted = np.array([space.prior.get(p.name, 0.0) for p in space.parameters])
    for body in _bodies(space):
        for k, i in enumerate(body.columns):
            if i >= 0:
                unit[i] = body.unit[k]
                wanted[i] = body.ball[k] if body.prior is None else body.prior[k]
    free = np.flatnonzero(~np.any(space.T[space.fixed] != 0, axis=0)) if space.fixed else slice(None)
    T = space.T[:, free] / unit[:, None]
    size = np.maximum(np.linalg.norm(T, axis=0), np.finfo(float).tiny)
    y = np.linalg.lstsq(T / size, (wanted - space.values.chi) / unit, rcond=None)[0] / size
    return np.asarray(space.values.chi + space.T[:, free] @ y)


def _nearest(space: _Space) -> tuple[Float[Array, "p"], float]:
    """The consistent set that is nearest in the metric of the covariance, and its distance in deviations."""
    p = len(space.parameters)
    kept = [k for k, i in enumerate(space.base.indices) if i not in space.free]
    G = space.base.G[kept]
    target = G @ space.values.chi
    root = G @ space.values.M[:, fitted_places(space.estimate)] @ covariance_root(space.estimate.covariance)
    sizes = np.maximum(np.abs(target), np.abs(G) @ np.abs(space.values.chi))
    floor = _FLOOR * np.where(sizes > 0, sizes, float(sizes.max(initial=1.0)))
    U = np.linalg.qr(np.hstack([root, np.diag(floor)]).T, mode="r")
    free = [i for i in range(p) if i not in space.fixed]
    c = np.zeros(p)
    c[space.fixed] = space.values.chi[space.fixed]
    every = StandardSpace(space.parameters, np.eye(p)[:, free], c, _bodies(space))
    inverse = np.asarray(np.linalg.inv(U).T)
    for wider in _WIDER:  # a set that is very far away is found with weaker data only
        found = nearest_consistent(every, DataTerm(inverse / wider, G, target), Consistency())
        if found.status == SOLVED:
            return _inside(space, found.chi), found.distance * wider
    raise InputError(f"no physically consistent robot was found: {found.reason}", remedy=_REMEDY)


def _inside(space: _Space, chi: Float[Array, "p"]) -> Float[Array, "p"]:
    """The same with bodies at the edge moved inside by as little of their prior as rounding needs."""
    chi = chi.copy()
    for body in _bodies(space):
        columns = list(body.columns)
        if min(columns) < 0 or body.prior is None or is_physical(chi[columns], 0.0):
            continue
        root = np.linalg.inv(np.linalg.cholesky(pseudo_inertia(body.prior)))
        lowest = float(np.linalg.eigvalsh(root @ pseudo_inertia(chi[columns]) @ root.T)[0])
        chi[columns] += (abs(lowest) + _EDGE) * body.prior
    return chi


def _faults(space: _Space, chi: Float[Array, "p"]) -> list[str]:
    """Bodies that are not physically consistent, and drives with a negative parameter."""
    return [*_impossible(space, chi), *_negative(space, chi)]


def _impossible(space: _Space, chi: Float[Array, "p"]) -> list[str]:
    wrong = []
    for body in _bodies(space):
        if min(body.columns) >= 0 and not is_physical(chi[list(body.columns)], _PHYSICAL_RTOL):
            wrong.append(f"'{body.name}' is no real body")
    return wrong


def _negative(space: _Space, chi: Float[Array, "p"], *, fixed: bool = False) -> list[str]:
    """Drive parameters below zero; `fixed`: only those that are base parameters by themselves."""
    wrong = []
    for p, value, row in zip(space.parameters, chi.tolist(), space.T, strict=True):
        small = 1e-9 * float(np.abs(row).max(initial=0.0))
        if fixed and np.any(row != 0.0):
            continue
        if p.kind == "drive" and p.symbol in NON_NEGATIVE and value < -small:
            wrong.append(f"{p.name} = {value:.4g} {p.unit} is negative")
    return wrong


def _with_free(space: _Space, chi: Float[Array, "p"]) -> Float[Array, "p"]:
    """Values at the names of the base parameters; undetermined ones are those of the full set."""
    reference = space.values.chi.copy()
    place = {i: k for k, i in enumerate(space.base.indices)}
    reference[space.free] = [float(space.base.G[place[i]] @ chi) for i in space.free]
    return reference


def _free_notes(space: _Space) -> list[str]:
    found = []
    if space.free:
        names = ", ".join(space.parameters[i].name for i in space.free)
        found.append(f"Not determined by the data, near the values of the description: {names}.")
    gains = [one.name for one in space.estimate.parameters if one.name.startswith(f"{GAIN}_")]
    if gains:
        found.append(f"Efforts are in N m or N: drive gains ({', '.join(gains)}) are part of no model.")
    if space.always:
        names = ", ".join(sorted(space.always))
        found.append(f"Payload {names} was in every log: only its sum with its carrier is determined.")
    return found


# Payloads: bodies of their own, part of their carriers, or left out.


def _carrying(estimate: Estimate, mechanism: Mechanism) -> Mechanism:
    """The robot with the payloads that the result knows or contains, and no others."""
    known = {}
    for name, one in mechanism.payloads.items():
        identified = any(p.name.removesuffix("_R").endswith(f"_{name}") for p in estimate.parameters)
        if identified or name in _always(estimate) or len(one.known) == len(SYMBOLS):
            known[name] = one
    return replace(mechanism, payloads=known)


def _mounted(
    space: _Space,
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
            own, carrier = (_places(index, name) for name in (payload.name, payload.body))
            for values in (chi, reference):
                values[carrier] += in_parent_frame(values[own], payload.frame.R, payload.frame.p)
        notes = (*notes, f"Payload {', '.join(loads)} is part of its carrier.")
    else:
        _refuse_always(space)
        notes = (*notes, f"Payload {', '.join(loads)} is left out.")
    kept = [i for i, p in enumerate(table) if p.owner not in loads]
    bare = replace(mechanism, payloads={})
    table, chi, reference = tuple(table[i] for i in kept), chi[kept], reference[kept]
    robot = with_values(bare, dict(zip((p.name for p in table), chi.tolist(), strict=True)))
    estimate = _regrouped(space.estimate, bare, table, reference)
    return FullSet(estimate, robot, table, chi, reference, physical, notes)


def _refuse_always(space: _Space) -> None:
    if space.always:
        raise InputError(
            f"payload {', '.join(sorted(space.always))} was mounted in every log of the fit: it is part of"
            " its carrier, and cannot be left out",
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
    estimate: Estimate, mechanism: Mechanism, table: Sequence[Parameter], chi: Float[Array, "p"]
) -> Estimate:
    """The estimate over the base parameters of another load; uncertainty is not carried over."""
    base = _base(mechanism, table)
    found = tuple(
        ParameterEstimate(name, unit, float(value), None, None, None)
        for name, unit, value in zip(base.names, base.units, base.G @ chi, strict=True)
    )
    return replace(
        estimate,
        parameters=found,
        covariance=np.zeros((0, 0)),
        shared=None,
        provenance={
            **estimate.provenance,
            "inputs": [{**one, "payloads": []} for one in estimate.provenance.get("inputs", ())],
        },
    )


def with_values(mechanism: Mechanism, values: Mapping[str, float]) -> Mechanism:
    """The mechanism with these values of standard parameters as its priors."""

    def own(one: Body | Payload, symbols: Sequence[str]) -> dict[str, float]:
        return {s: values[f"{s}_{one.name}"] for s in symbols if f"{s}_{one.name}" in values}

    bodies = {
        name: replace(body, prior=own(body, body.parameters)) for name, body in mechanism.bodies.items()
    }
    loads = {name: replace(load, prior=own(load, SYMBOLS)) for name, load in mechanism.payloads.items()}
    rest = {p.name: values[p.name] for p in parameter_table(mechanism) if p.kind != "inertial"}
    return replace(mechanism, bodies=bodies, payloads=loads, prior=rest, rebuild=None)
