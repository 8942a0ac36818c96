"""Frames: modified DH against 4 x 4 products, axis vectors, snapped angles."""

import math

import numpy as np
import pytest

from dynid.mechanism.frame import Frame, frame_from_axes, mdh_frame, rpy_matrix, snap_angle, unit_vector


def turn(axis, angle):
    T = np.eye(4)
    c, s = math.cos(angle), math.sin(angle)
    i, j = [(1, 2), (2, 0), (0, 1)][axis]
    T[i, i], T[i, j], T[j, i], T[j, j] = c, -s, s, c
    return T


def shift(axis, length):
    T = np.eye(4)
    T[axis, 3] = length
    return T


def matrix(frame):
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = frame.R, frame.p
    return T


def test_mdh_is_the_product_of_its_six_steps():
    rng = np.random.default_rng(1)
    for gamma, b, alpha, d, theta, r in rng.uniform(-3, 3, (20, 6)):
        product = turn(2, gamma) @ shift(2, b) @ turn(0, alpha) @ shift(0, d) @ turn(2, theta) @ shift(2, r)
        frame = mdh_frame(gamma=gamma, b=b, alpha=alpha, d=d, theta=theta, r=r)
        np.testing.assert_allclose(matrix(frame), product, atol=1e-14)  # six products of numbers below 10


def test_rpy_is_the_convention_of_urdf():
    rng = np.random.default_rng(2)
    for roll, pitch, yaw in rng.uniform(-3, 3, (20, 3)):
        product = turn(2, yaw) @ turn(1, pitch) @ turn(0, roll)
        np.testing.assert_allclose(rpy_matrix((roll, pitch, yaw)), product[:3, :3], atol=1e-15)  # rounding


def test_composition_and_inverse():
    a = mdh_frame(gamma=0.3, alpha=1.1, d=0.4, r=0.2)
    b = mdh_frame(theta=-0.7, alpha=0.5, b=0.1)
    np.testing.assert_allclose(matrix(a @ b), matrix(a) @ matrix(b), atol=1e-15)  # rounding
    np.testing.assert_allclose(matrix(a @ a.inverse()), np.eye(4), atol=1e-15)  # rounding


def test_quarter_turns_are_exact():
    R = rpy_matrix((math.pi / 2, -math.pi / 2, math.pi))
    assert set(np.unique(np.abs(R))) == {0.0, 1.0}


@pytest.mark.parametrize("pair", [(0, 1), (0, 2), (1, 2)])
def test_frame_from_two_axes(pair):
    R = rpy_matrix((0.4, -1.2, 2.0))
    frame = frame_from_axes(np.array([1.0, 2.0, 3.0]), {i: 3.0 * R[:, i] for i in pair})
    assert isinstance(frame, Frame)
    np.testing.assert_allclose(frame.R, R, atol=1e-15)  # rounding
    with pytest.raises(ValueError, match="degrees apart"):
        frame_from_axes(np.zeros(3), {0: np.array([1.0, 0, 0]), 1: np.array([1.0, 1.0, 0])})


def test_unit_vector_drops_rounding():
    np.testing.assert_array_equal(unit_vector(np.array([1e-16, 0.0, -2.0])), [0.0, 0.0, -1.0])
    with pytest.raises(ValueError, match="zero"):
        unit_vector(np.zeros(3))


@pytest.mark.parametrize(
    ("text", "multiple"),
    [
        ("1.5708", 1 / 2),
        ("1.5707", 1 / 2),
        ("1.570796", 1 / 2),
        ("1.57079632679", 1 / 2),
        ("-1.5708", -1 / 2),
        ("1.57080000", 1 / 2),
        ("3.1416", 1),
        ("6.2832", 2),
        ("0.7854", 1 / 4),
        ("2.0694557179012918e-13", 0),
    ],
)
def test_rounded_angles_become_exact(text, multiple):
    assert snap_angle(float(text), text) == multiple * math.pi


@pytest.mark.parametrize(
    "text", ["1.5709", "1.57071", "1.5707123", "1.57", "0.0001", "0.001", "0.3", "1.5708123e0"]
)
def test_angles_that_are_meant_stay(text):
    assert snap_angle(float(text), text) == float(text)


def test_computed_angles_snap_only_when_the_change_means_nothing():
    assert snap_angle(math.pi / 2 + 1e-10) == math.pi / 2
    assert snap_angle(1.5708) == 1.5708
