"""Warnings about force sensors and tables of measured bodies."""

from __future__ import annotations

from dynid.common.catalogue.entry import care, stop

_TABLES = "see [multibody tables](../howto/multibody_table.md#checks)"
_SENSOR = "see [force sensors](../howto/force_torque.md#warnings)"

SENSORS = {
    "body-left-out": care(
        f"the equations of a body cannot be formed: {_TABLES}",
        "{names} {are} left out: no equations can be formed",
        "add the missing rows; or name the bodies you want: wrench: {{bodies: [...]}}",
    ),
    "no-balance": stop(
        f"forces and motion of the bodies do not balance: {_TABLES}",
        "the bodies do not balance: {percent:.2g} % of the wrenches is unexplained with every convention",
        "check columns, signs and units, the joint frames of the robot file, and external contacts",
    ),
    "mass-differs": stop(
        f"forces along single directions give different masses: {_TABLES}",
        "forces along single directions give different masses: {shown}",
        "check columns, signs and axes of forces and accelerations, and the direction of gravity",
    ),
    "wrench-frame": stop(
        f"the wrench is expressed in other axes: {_SENSOR}",
        "the wrench seems to be expressed in the axes of {frame}, not of the sensor. The residual is then"
        " {force:.3g} N and {moment:.3g} N m instead of {own_force:.3g} N and {own_moment:.3g} N m",
        "log the wrench in the axes of the sensor, or set the sensor frame to the logged axes",
    ),
    "mounting-off": stop(
        f"the sensor is rotated relative to the description: {_SENSOR}",
        "the sensor seems to be rotated by {degrees:.1f} degrees relative to {reference}. With this rotation"
        " the residual is {force:.3g} N and {moment:.3g} N m instead of {own_force:.3g} N and"
        " {own_moment:.3g} N m",
        "check the orientation (about [{rpy}] rad would fit): {where}",
        residual=(
            "the sensor seems to be rotated by {degrees:.2g} degrees relative to the description. The"
            " residuals look like readings of a rotated sensor",
            "check its `rpy`, or estimate it: mounting: rpy",
        ),
    ),
    "moment-unit": stop(
        f"moments and forces have different units: {_SENSOR}",
        "moments and forces seem to have different units. The forces give a tool mass of {mass:.3g} kg, the"
        " moments a centre of mass {away:.3g} m from the sensor",
        "set the unit, e.g. columns: {{mx: {{unit: Nmm}}, my: {{unit: Nmm}}, mz: {{unit: Nmm}}}}",
    ),
    "rotation-little": care(
        f"the sensor was not rotated enough: {_SENSOR}",
        "the motion hardly excites {shown}",
        "rotate the wrist by more than 90 degrees about two horizontal axes; rotate fast for inertia",
    ),
    "bias-drift": care(
        f"the bias of the sensor differs between segments: {_SENSOR}",
        "the bias differs between segments: {component} is {off:.3g} {unit} off in {segment}, {ratio:.0f}"
        " times the noise level",
        "set `bias: segment`, let the sensor warm up, or zero it before each segment",
    ),
    "imu-gravity": stop(
        f"the accelerometer does not read gravity at rest: {_SENSOR}",
        "the accelerometer reads {felt:.4g} m/s^2 when the sensor is at rest, but gravity is {g:.4g}: all"
        " masses are wrong by that factor",
        "check its unit and calibration; columns: {{ax: {{scale: {scale:.5g}}}, ...}} corrects it",
    ),
    "sensor-saturated": care(
        f"samples at the end of the sensor's range are not used: {_SENSOR}",
        "the sensor is saturated: {shown}; these samples are not used",
        "move more slowly, or use a sensor with a larger range",
    ),
    "angles-open": care(
        f"the estimated angles of the sensor did not converge: {_SENSOR}",
        "the angles of the sensor have not converged: the last step is still {step:.2g} rad",
        "rotate the sensor through more orientations, or give the angles",
    ),
    "angles-singular": care(
        f"roll and yaw of the sensor are not separable: {_SENSOR}",
        "the pitch of the sensor is {degrees:.1f} degrees: roll and yaw are not separable",
        "give the sensor's body another nominal orientation by `rpy`, and use `mounting: angle`",
    ),
}
