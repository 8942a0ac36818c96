"""Warnings about poses of closed robots, cables and free motion.

Warnings about force sensors and tables of measured bodies.
"""

from __future__ import annotations

from dynid.common.catalogue.entry import care, note, stop

_LOOPS = "see [closed loops](../models/closed_loops.md#all-joints-from-the-measured-ones)"
_CABLES = "see [cables](../howto/cables.md#what-is-refused-or-reported)"

POSES = {
    "not-assembled": care(
        f"poses that do not close the loops are excluded: {_LOOPS}",
        "{counted} of log '{log}' do not close the loops and are excluded",
        "check the largest motions of the log",
    ),
    "singular-poses": care(
        f"poses that the measured joints hardly determine are excluded: {_LOOPS}",
        "{counted} of log '{log}' are singular and are excluded",
        "avoid poses in which the measured joints do not move the robot",
    ),
    "dead-points": care(
        f"poses at which two branches fit the log: {_LOOPS}",
        "log '{log}' passes {count} dead points of the measured joints, the first at t = {first:.4g} s: there"
        " '{joint}' can move while they are fixed. After each dead point two branches have the measured"
        " positions; the one on which the joints that are not measured move smoothly was chosen",
        "measure '{joint}' too, or use only parts of the log between dead points",
        rank="part",
    ),
    "assembly-jump": stop(
        f"neighbouring poses are on different branches: {_LOOPS}",
        "log '{log}' changes its assembly mode {count} times, first at t = {first:.4g} s: neighbouring poses"
        " are on different branches",
        "check `start:`, split the log there, or measure one more joint",
        traits=("wrong input",),
        dead=(
            "log '{log}' changes its assembly mode {count} times, first at t = {first:.4g} s. At dead points"
            " of the measured joints noise selects the branch",
            "measure '{joint}' too",
        ),
    ),
    "whole-turns": note(
        "encoders of a closed-loop robot have an offset of whole turns: the turns are removed; the text gives"
        " joint and number",
        "encoders differ from the closed pose by full turns, which are removed: {shown}",
        "set the encoder's zero, or give an `offset` under `columns:`",
    ),
    "singular-start": care(
        "the start pose of a closed-loop robot is singular (a stretched parallelogram): another pose nearby"
        " is used, and shown. Give a pose on the intended branch under `start:`",
        "the start pose of robot '{robot}' is singular: branches of its motion meet there (rank {there} of"
        " the loops, {beside} nearby). Another pose is used: {{{pose}}}",
        "give a pose on the intended branch under `start:`",
    ),
    "rounded-geometry": care(
        "dimensions are written with four to nine digits, and columns are independent only because of that"
        " rounding: they are treated as dependent. `rank-undecided` if there is no clear gap",
        "the dimensions of the robot description are rounded to {rounding:.0e} of the largest one. {count}"
        " columns of the structural regressor may be independent only because of this. They are treated as"
        " dependent: {new} base parameters, not {old}",
        "write dimensions and axes with full precision (12 digits), as arithmetic over `symbols:`",
    ),
    "loop-misfit": stop(
        "more joints are measured than there are degrees of freedom, and they contradict the loops by more"
        " than their noise. The text gives joint, size, and the joint zero or gear ratio that explains"
        " it. `care` below 1e-3 rad or m, or below 50 times the noise",
        "the measured joints of log '{log}' contradict the loops: '{joint}' differs from the closed pose by"
        " {rms:.2g} {unit} RMS{noise}; the largest error is {worst:.2g} ('{where}', t = {when:.4g} s)."
        " {cause}",
        "check this zero or gear ratio, and the dimensions of the loops",
        rank="part",
        traits=("wrong input",),
    ),
    "cable-misfit": care(
        "the lengths of cables along the measured poses contradict the description; see"
        " [description tests](../howto/description_tests.md)",
        "dimension '{name}' is off by {size:+.2g} +- {half:.2g} {unit}: with this change, the lengths of the"
        " cables at the measured poses agree",
        "measure {name}{find}",
        rank="part",
        traits=("positions",),
        corrections={"cable dimension": "dimension {}", "frame": "frame of {}"},
        frame=(
            "the frame of {about} is displaced by {shift:.2g} mm and {turn:.2g} degrees: with this change,"
            " the lengths of the cables at the measured poses agree",
            "check the frame of the pose sensor against the points of the cables",
        ),
    ),
    "cable-inside": stop(
        "a cable ends inside its pulley, where its shape is not defined",
        "cable '{cable}' ends inside its pulley at {count} of {total} poses",
        "check its points, the radius and the columns of the log",
    ),
    "cable-on-axis": care(
        "a cable ends on the swivel axis of its pulley, where its shape is not defined",
        "cable '{cable}' ends {off:.2g} mm from its swivel axis, where its pulley can turn anywhere",
        "check `axis`, or avoid such poses",
    ),
    "cable-slack": care(
        f"the length of a cable varies in a run, to one side: {_CABLES}",
        "cable '{cable}' was slack in log '{log}', run {run}: its length varies by {sigma:.2g} mm (sigma),"
        " {most:.2g} mm at t = {when:.4g} s",
        "excite less, or shorten this cable",
    ),
    "cable-not-locked": care(
        f"the length of a cable varies in a run: {_CABLES}",
        "cable '{cable}' was not locked in log '{log}', run {run}: its length varies by {sigma:.2g} mm"
        " (sigma), {most:.2g} mm at t = {when:.4g} s",
        "lock the winches, and check columns, angles and the end points of the cables",
    ),
    "length-differs": care(
        f"the lengths of a run differ from the given ones: {_CABLES}",
        "the given length of '{cable}' is {given:.4f} m, but the poses of log '{log}', run {run}, give"
        " {found:.4f} m",
        "use lengths: estimate, or check the zero of the given lengths",
    ),
    "free-singular": care(
        "free coordinates hardly determine the motion; runs in which they pass a dead point are excluded",
        "the pose is solved from {what}",
        "use the complete pose if the log has it (pose: projected); otherwise measure angles of the platform",
        excluded=(
            "the pose cannot be solved from {names} in run {runs} of log '{log}'. A motion that hardly moves"
            " them can be on either of two branches. Excluded: {count} runs",
            "use the complete pose if the log has it (pose: projected); otherwise measure angles of the"
            " platform",
        ),
        velocity=("equations use the velocity of {what}", "nullspace: orthonormal, or free: [{best}]"),
    ),
    "free-turned": care(
        "a free motion rotates too far in one run",
        "the direction of free motion in log '{log}' changes by more than 70 degrees in {runs} run(s)",
        "split the log into shorter runs",
    ),
    "not-free-motion": stop(
        "the energy of a run increases: an external force acts",
        "log '{log}' is not free motion in run {runs}: the energy grows by {percent:.0f} % of the largest"
        " kinetic energy (run {run}). An external force acts, a winch moves, or a cable is slack",
        "start the log after the platform was released (`from:` in its entry), or leave these runs out:"
        " `runs:` lists those to use",
        rank="declaration",
    ),
    "lengths-not-converged": care(
        "refined lengths did not converge: give them, or estimate them from the pose",
        "the locked lengths of log '{log}' have not converged: the last step still reduced the squared error"
        " by {percent:.2g} %",
        "use lengths: estimate, or record more motion in every run",
    ),
    "mass-joined": note(
        "masses that act only together with the reference mass: parameters are per unit of their sum",
        "{names} {act} only together with {mass}: parameters are per unit of {mass}{parts}{others}",
        "nothing to do: this does not change any free motion of this robot",
    ),
    "payload-always": note(
        "a payload mounted in every log cannot be separated from the body that carries it",
        "{names} is mounted in every log: its parameters are part of those of its carrier, and the reference"
        " mass is the mass of both",
        "add a log without it: logs with and without a known payload determine the mass itself",
    ),
}


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
        rank="declaration",
    ),
    "mounting-off": stop(
        f"the sensor is rotated relative to the description: {_SENSOR}",
        "the sensor seems to be rotated by {degrees:.1f} degrees relative to {reference}. With this rotation"
        " the residual is {force:.3g} N and {moment:.3g} N m instead of {own_force:.3g} N and"
        " {own_moment:.3g} N m",
        "check the orientation (about [{rpy}] rad would fit): {where}",
        rank="declaration",
        corrections={"mounting": "mounting of the sensor"},
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
        rank="input",
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
        rank="declaration",
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
