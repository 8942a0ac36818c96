"""excite(): design an exciting trajectory for a robot, on one screen.

plan_inputs -> make_plan -> run_starts (journal) -> check the limits, predict sigma, write
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dynid.common.arrays import Array, Float
from dynid.common.batched import single_threaded_blas
from dynid.common.catalogue import CATALOGUE
from dynid.common.entry import plain_entry
from dynid.common.errors import InputError
from dynid.common.notices import Notice, notice
from dynid.common.settings import read
from dynid.common.versions import version_of
from dynid.excitation.after import (
    existing,
    identified_values,
    known_information,
    recorded_rate,
    used_terms,
)
from dynid.excitation.careful import limit_notices
from dynid.excitation.case_motions import CaseDesign, case_motions
from dynid.excitation.closed import ClosedMotion, narrowed_limits
from dynid.excitation.efforts import effort_range
from dynid.excitation.optimal.checked import (
    LimitUse,
    Promise,
    linear_uses,
    promise,
    soft_uses,
    unkept_limits,
)
from dynid.excitation.optimal.multistart import Journal, run_starts
from dynid.excitation.optimal.soft import fine_motion
from dynid.excitation.optimal.starts import Start
from dynid.excitation.plan import (
    Plan,
    PlanInputs,
    make_plan,
    make_starter,
    planned_base,
    planned_robot,
)
from dynid.excitation.run import Run, check_home, run_of
from dynid.excitation.series import Series
from dynid.excitation.settings import RATE, default_recorder, recording_words
from dynid.experiment.tasks import ExciteSettings
from dynid.kinematics.sensors import measured_motion
from dynid.mechanism.load import load_robot, reference
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.parameters import effort_unit, parameter_table
from dynid.projection.model import MODELS
from dynid.regressor.kernels_ahead import prepare_kernels
from dynid.robots.truth import Truth, has_demo, true_values

Progress = Callable[[str, float], None]
_PROMISED = 400  # samples used to predict sigma
_RANDOM = 10  # random motions; the best of them is the reference for the gain


@dataclass(frozen=True, eq=False)
class Excitation:
    """The best motion found, and its predicted accuracy.

    Attributes:
        settings: As requested; plan_noise: noise of every actuator as used.
        rate: Sampling rate, in [Hz]; assumed: rate and noise as text, with their source.
        identified: Whether efforts are predicted with the existing result, not with the prior.
        names: Measured joints; q, dq, ddq at `t` are theirs, shape (n, m).
        motion: Of the coordinates moved (a closed robot's: see `ClosedMotion`).
        coefficients: Of the family, one column per moved coordinate.
        criterion: Value of the best start.
        starts: All starts; `best` is the number of the one taken.
        limits: Every limit with its margin.
        before, after: Predicted accuracy of the best of ten random motions and of the motion found.
        base_names, base_units: Of the base parameters.
        run: Approach from rest, the motion, and the way back.
    """

    robot: str
    settings: ExciteSettings
    names: tuple[str, ...]
    moved: tuple[str, ...]
    motion: Series
    coefficients: Float[Array, "m j"]
    t: Float[Array, "n"]
    q: Float[Array, "n _"]
    dq: Float[Array, "n _"]
    ddq: Float[Array, "n _"]
    criterion: float
    larger_is_better: bool
    starts: tuple[Start, ...]
    best: int
    limits: tuple[LimitUse, ...]
    before: Promise
    after: Promise
    base_names: tuple[str, ...]
    base_units: tuple[str, ...]
    plan: Plan
    plan_noise: tuple[float, ...]
    rate: float
    assumed: str
    identified: bool
    run: Run
    notices: tuple[Notice, ...] = ()

    def __repr__(self) -> str:
        """One line; `print` shows the summary."""
        found = f"{self.settings.criterion} {self.criterion:.4g}, starts: {len(self.starts)}"
        return f"Excitation({self.robot!r}: {len(self.moved)} coordinates, {self.t[-1]:g} s, {found})"

    def __str__(self) -> str:
        """Accuracy, limits and pose of rest, as `dynid excite` prints them."""
        from dynid.excitation.files import summary

        return summary(self)


def excite(
    robot: str | os.PathLike[str] | Mechanism,
    settings: ExciteSettings | Mapping[str, Any] | None = None,
    *,
    journal: Path | None = None,
    jobs: int = 1,
    cluster: str | None = None,
    progress: Progress | None = None,
) -> Excitation | CaseDesign:
    """The best of many optimised motions of a robot within its limits.

    An `Excitation`; a cable robot of model `internal` gets a set of free motions, another `CaseDesign`.

    Args:
        robot: Built-in name, file or Mechanism.
        settings: What kind of motion; also as a mapping.
        journal: File of finished starts; an interrupted run continues from there.
        jobs: Number of processes.
        cluster: Address of a Dask scheduler instead.
        progress: Called with the stage and the fraction completed, 0 to 1.

    Raises:
        InputError: A limit cannot be met, or the robot description is incomplete.
    """
    asked = read(ExciteSettings, plain_entry({} if settings is None else settings))
    mechanism = load_robot(robot)
    prepare_kernels(mechanism)
    motions = case_motions(mechanism)
    if not isinstance(robot, Mechanism):
        # Workers of a cluster have folders of their own.
        robot = os.fspath(robot) if cluster is None else reference(mechanism)
    elif jobs > 1 or cluster or journal:
        text = "several jobs and a journal need a robot given by a file"
        raise InputError(text, remedy="name the robot's file")
    search = excite_series if motions is None else motions.search
    return search(robot, asked, journal=journal, jobs=jobs, cluster=cluster, progress=progress)


def excite_series(
    robot: str | Mechanism,
    settings: ExciteSettings | None = None,
    *,
    journal: Path | None = None,
    jobs: int = 1,
    cluster: str | None = None,
    progress: Progress | None = None,
) -> Excitation:
    """The best motion of a robot with motors; arguments as for `excite`."""
    with single_threaded_blas():
        if progress is not None:
            progress("limits of the robot", 0.0)
        inputs, notices = plan_inputs(robot, settings or ExciteSettings())
        plan = make_plan(inputs)
        check_home(plan, inputs.settings.home)
        book = Journal(journal, _asked(inputs, plan.mechanism))
        run_starts(
            make_starter,
            (inputs,),
            inputs.settings.starts,
            book,
            jobs=jobs,
            cluster=cluster,
            progress=progress,
            starter=plan.starter,
            then=plan.starter.promising,
        )
        with book.without_result():
            return _finished(plan, inputs, plan.starter.results(book.done), notices)


def plan_inputs(robot: str | Mechanism, settings: ExciteSettings) -> tuple[PlanInputs, tuple[Notice, ...]]:
    """Inputs of the plan: noise, prior model, and information of existing data."""
    settings = settings.suited()
    before = existing(robot, settings)
    terms = used_terms(before)
    mechanism = planned_robot(robot, settings.payloads, terms)
    known, measured_noise = None, None
    if before:
        known, measured_noise = known_information(before, mechanism, planned_base(mechanism, settings))
    values = None if settings.prior else identified_values(before, mechanism)
    chi, notices = _prior(mechanism, settings.prior) if values is None else (values, ())
    notices = (*limit_notices(load_robot(robot)), *notices)
    noise = noise_of(mechanism, settings, measured_noise)
    promised = MODELS[mechanism.model].promised_by
    if promised != mechanism.model:
        more = "; the real sigma will be about twice as large" if promised == "power" else ""
        other = notice("promised-by-another-model", promised=promised, model=mechanism.model, more=more)
        notices = (*notices, other)
    rows = None if known is None else tuple(map(tuple, known.tolist()))
    rate, source = _assumed(mechanism, settings, recorded_rate(before), bool(measured_noise))
    source += ", efforts predicted with the existing result" if values is not None else ""
    units = [effort_unit(mechanism, motor.name) for motor in mechanism.actuators]
    words = recording_words(rate, noise, source, units)
    inputs = PlanInputs(robot, settings.changed(rate=rate), noise, rate, words, terms, chi, rows)
    return replace(inputs, identified=values is not None), notices


def noise_of(
    mechanism: Mechanism, settings: ExciteSettings, measured: dict[str, float] | None = None
) -> tuple[float, ...]:
    """Effort noise of every actuator: as given, as measured before, from `default_recorder`, or one."""
    names = [actuator.name for actuator in mechanism.actuators]
    if not settings.noise:
        usual = default_recorder(mechanism).effort_sigma or (1.0,) * len(names)
        pairs = zip(names, usual, strict=True)
        return tuple((measured or {}).get(name) or value for name, value in pairs)
    given = settings.noise * len(names) if len(settings.noise) == 1 else settings.noise
    if len(given) != len(names):
        raise InputError(
            f"{len(settings.noise)} noise values do not match {len(names)} actuators",
            remedy=f"give one value, or one for each of {', '.join(names)}",
        )
    return tuple(given)


def _assumed(
    mechanism: Mechanism, settings: ExciteSettings, before: float | None, measured: bool
) -> tuple[float, str]:
    """Rate of the recording, and where rate and noise come from; `before`: that of existing data, in [Hz]."""
    usual = default_recorder(mechanism)
    source = usual.source if usual.effort_sigma else "unknown: sigma is proportional to the noise"
    noise = (
        "noise as given"
        if settings.noise
        else "noise of the existing data"
        if measured
        else f"noise: {source}"
    )
    if settings.rate is not None:
        return settings.rate, f"rate as given, {noise}"
    if before is not None:
        return before, "rate and noise of the existing data" if measured else f"rate as before, {noise}"
    return usual.rate, f"rate: {usual.source if usual.rate != RATE else 'usual'}, {noise}"


def _prior(mechanism: Mechanism, file: str) -> tuple[tuple[float, ...] | None, tuple[Notice, ...]]:
    """The model that predicts efforts; with a notice if it is incomplete and efforts are limited."""
    limited = any(effort_range(mechanism, actuator.name) is not None for actuator in mechanism.actuators)
    try:
        values, lacking = true_values(mechanism, Truth(file or "prior"))
    except InputError:
        if file:
            raise
        if has_demo(mechanism):
            values, lacking = true_values(mechanism, Truth("demo"))
        elif not limited:
            return None, ()
        else:
            return None, (notice("efforts-unchecked"),)
    remedy = CATALOGUE["no-drive-values"].variants["planned"].remedy
    notices = tuple(replace(message, remedy=remedy) for message in lacking) if limited else ()
    return tuple(values[parameter.name] for parameter in parameter_table(mechanism)), notices


def _asked(inputs: PlanInputs, mechanism: Mechanism) -> dict[str, Any]:
    """Identifies an optimisation: only the same one may continue from a journal."""
    text = repr((mechanism.file and Path(mechanism.file).read_bytes(), inputs.chi, inputs.known))
    settings = {key: value for key, value in inputs.settings.of_search.items() if key != "starts"}
    return {
        "robot": inputs.robot.name if isinstance(inputs.robot, Mechanism) else inputs.robot,
        "inputs": hashlib.sha256(text.encode()).hexdigest(),
        "noise": list(inputs.noise),
        **settings,
        "starts": inputs.settings.starts,
        "dynid": version_of(),
    }


def _finished(
    plan: Plan, inputs: PlanInputs, starts: tuple[Start, ...], notices: tuple[Notice, ...]
) -> Excitation:
    """The best start, with limits also checked between samples."""
    sign = -1.0 if plan.problem.criterion.larger_is_better else 1.0
    kept = [start for start in starts if np.isfinite(start.value)]
    if not kept:
        worst = min(starts, key=lambda start: start.worst)
        raise InputError(
            f"no motion of {inputs.settings.period:g} s satisfies all limits: the best of {len(starts)}"
            f" starts exceeds the limit on {worst.missed} by {100 * worst.worst:.3g} %",
            file=plan.mechanism.file,
            place="limits",
            remedy="widen this limit, or give the motion more time (--period)",
        )
    best = min(kept, key=lambda start: sign * start.value)
    z = np.array(best.z)
    x = plan.problem.blocks.coefficients(z)
    fine = fine_motion(plan.path, plan.family, x, len(plan.problem.t), plan.exact)
    uses = linear_uses(plan.family, plan.box, x) + ([] if fine is None else soft_uses(plan.exact, fine))
    missed = unkept_limits(plan.mechanism, uses)
    if inputs.chi is None:  # already reported
        missed = [label for label in missed if not label.endswith(".tau")]
    if missed:
        notices = (*notices, notice("limits-unused", names=", ".join(missed)))
    if plan.mechanism.is_closed:
        notices = (*notices, *narrowed_limits(plan.mechanism, plan.path.names))
    notices = (*notices, *plan.check.notices())
    rate = inputs.rate
    t = np.arange(round(plan.family.period * rate) + 1) / rate
    states = plan.states(z, t)
    if states is None:
        raise InputError("the motion found violates the loop closure", remedy="use a higher --rate")
    q, dq, ddq = measured_motion(plan.mechanism, *plan.robot_motion(states))
    run, more = run_of(plan, x, inputs.settings.home, inputs.settings.repeats, rate)
    moved = plan.family.motion(x)
    led = plan.path.mechanism
    motion = ClosedMotion(led, plan.path.names, moved) if led.is_closed else moved
    return Excitation(
        robot=plan.mechanism.name,
        settings=inputs.settings,
        names=plan.mechanism.measured_positions,
        moved=plan.path.names,
        motion=motion,
        coefficients=x,
        t=t,
        q=q,
        dq=dq,
        ddq=ddq,
        criterion=best.value,
        larger_is_better=plan.problem.criterion.larger_is_better,
        starts=starts,
        best=best.number,
        limits=tuple(uses),
        before=_promised(plan, inputs, plan.starter.best_random(_RANDOM)),
        after=_promised(plan, inputs, z),
        base_names=plan.base.names,
        base_units=plan.base.units,
        plan=plan,
        plan_noise=inputs.noise,
        rate=inputs.rate,
        assumed=inputs.assumed,
        identified=inputs.identified,
        run=run,
        notices=(*notices, *more),
    )


def _promised(plan: Plan, inputs: PlanInputs, z: Float[Array, "v"]) -> Promise:
    """Sigma and spectrum of a motion for the identification model of the robot."""
    settings = inputs.settings
    t = np.arange(_PROMISED) / _PROMISED * settings.period
    states = plan.states(z, t)
    if states is None:
        none = np.full(len(plan.base.indices), np.inf)
        return Promise(none, np.zeros_like(none), np.inf, np.inf)
    return promise(
        plan.path,
        states,
        plan.base,
        np.array(inputs.noise),
        inputs.rate * settings.period * settings.repeats / _PROMISED,
        model=plan.mechanism.model,
        mounted=settings.payloads,
        known=None if inputs.known is None else np.array(inputs.known),
    )
