"""From rows to a solution: what a fit of fewer parameters says about the rows as measured."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.common.errors import InputError
from dynid.excitation.random_motion import random_motion
from dynid.experiment.experiment import Experiment
from dynid.pipeline import identify_logs
from dynid.simulation.demo import built_in_experiment
from dynid.simulation.prescribed import simulate_log


@pytest.fixture(scope="module")
def recorded():
    """Two runs of the SCARA, torque noise of its own size in every joint."""
    known = built_in_experiment("scara")
    motion = random_motion(known.mechanism, seed=5, draws=2)
    return known.mechanism, [
        simulate_log(
            known.mechanism,
            known.truth,
            motion,
            rate=100.0,
            duration=6.0,
            torque_sigma=np.array([0.5, 0.3, 1.0, 0.02]),
            velocity=True,
            seed=seed,
            name=f"run {seed}",
        )
        for seed in (1, 2)
    ]


OTHERS = [
    ("wls", {"weights": "covariance"}),
    ("robust", {}),
    ("gtls", {}),
    ("iv", {"cutoff": 0.9}),
    ("recursive", {}),
]


@pytest.mark.parametrize(("name", "options"), OTHERS)
def test_a_fit_of_fewer_parameters_is_judged_on_the_rows_as_measured(recorded, name, options):
    """Estimators that rewrite rows whiten, limit or replace them; percent and rms are of none of these."""
    robot, logs = recorded
    keep = ("ZZ*", "MX*", "MY*", "M_*", "Fv*", "Fs*", "Ia*")  # all but offsets
    plain = identify_logs(robot, logs, (), Experiment(robot=robot, keep=keep))
    asked = Experiment(robot=robot, keep=keep, estimator=name, estimator_options=options)
    found = identify_logs(robot, logs, (), asked)
    for one, other in zip(plain.fit.groups, found.fit.groups, strict=True):
        # The same few parameters fitted otherwise: residuals alike, but not equal.
        assert other.rms == pytest.approx(one.rms, rel=0.1)
        assert other.residual_percent == pytest.approx(one.residual_percent, rel=0.1)
    assert found.fit.residual_percent == pytest.approx(plain.fit.residual_percent, rel=0.1)


def test_refinement_names_what_stands_in_its_way(recorded):
    robot, _ = recorded
    with pytest.raises(InputError, match="refine cannot be combined with estimator 'consistent'"):
        Experiment(robot=robot, estimator="consistent", refine=True)
    with pytest.raises(InputError, match="refine cannot be combined with 'standard'"):
        Experiment(robot=robot, standard=True, refine=True)
