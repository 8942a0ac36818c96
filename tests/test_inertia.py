"""The ten parameters: orders of other programs, frame changes, physical consistency."""

import numpy as np
import pytest

from dynid.mechanism.frame import rpy_matrix
from dynid.mechanism.inertia import (
    SYMBOLS,
    from_centre_of_mass,
    in_parent_frame,
    is_physical,
    pack,
    pseudo_inertia,
    unpack,
)
from tests.parameter_orders import from_pinocchio, to_pinocchio


def random_body(rng):
    """Mass, centre of mass and inertia about it of a cloud of points: physical by construction."""
    points, masses = rng.normal(size=(20, 3)), rng.uniform(0.1, 1, 20)
    mass = masses.sum()
    com = masses @ points / mass
    x = points - com
    inertia = sum(m * (v @ v * np.eye(3) - np.outer(v, v)) for m, v in zip(masses, x, strict=True))
    return mass, com, inertia


@pytest.fixture(scope="module")
def pin():
    return pytest.importorskip("pinocchio")


def test_orders_round_trip():
    numbers = np.arange(10.0)
    np.testing.assert_array_equal(from_pinocchio(to_pinocchio(numbers)), numbers)
    pinocchio = [SYMBOLS[int(i)] for i in to_pinocchio(numbers)]
    assert " ".join(pinocchio) == "M MX MY MZ XX XY YY XZ YZ ZZ"
    mass, moment, inertia = unpack(numbers)
    np.testing.assert_array_equal(pack(mass, moment, inertia), numbers)


def test_from_centre_of_mass_equals_pinocchio(pin):
    rng = np.random.default_rng(3)
    for _ in range(10):
        mass, com, inertia = random_body(rng)
        theirs = pin.Inertia(mass, com, inertia).toDynamicParameters()
        ours = from_centre_of_mass(mass, com, inertia)
        np.testing.assert_allclose(ours, from_pinocchio(theirs), rtol=1e-13, atol=1e-13)  # sums of 20 terms


def test_frame_change_equals_pinocchio(pin):
    rng = np.random.default_rng(4)
    for _ in range(10):
        mass, com, inertia = random_body(rng)
        R, p = rpy_matrix(tuple(rng.uniform(-3, 3, 3))), rng.normal(size=3)
        placement = pin.SE3(R, p)
        theirs = placement.act(pin.Inertia(mass, com, inertia)).toDynamicParameters()
        ours = in_parent_frame(from_centre_of_mass(mass, com, inertia), R, p)
        np.testing.assert_allclose(ours, from_pinocchio(theirs), rtol=1e-12, atol=1e-12)  # entries up to 100


def test_frame_change_and_back():
    rng = np.random.default_rng(5)
    chi = from_centre_of_mass(*random_body(rng))
    R, p = rpy_matrix((0.3, -0.8, 2.0)), np.array([0.2, -0.5, 1.0])
    back = in_parent_frame(in_parent_frame(chi, R, p), R.T, -R.T @ p)
    np.testing.assert_allclose(back, chi, rtol=1e-12, atol=1e-12)  # two frame changes of entries up to 100


def test_pseudo_inertia_is_positive_exactly_for_real_bodies():
    rng = np.random.default_rng(6)
    for _ in range(20):
        mass, com, inertia = random_body(rng)
        chi = from_centre_of_mass(mass, com, inertia)
        assert np.linalg.eigvalsh(pseudo_inertia(chi))[0] > 0
        assert is_physical(chi)
    assert not is_physical(from_centre_of_mass(-1.0, np.zeros(3), np.eye(3)))
    assert not is_physical(from_centre_of_mass(1.0, np.zeros(3), np.diag([1.0, 1.0, 2.5])))  # triangle
    assert is_physical(from_centre_of_mass(1.0, np.zeros(3), np.diag([1.0, 1.0, 2.0])))  # a flat plate
