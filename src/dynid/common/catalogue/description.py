"""Warnings about the description of a robot and the options of an experiment."""

from __future__ import annotations

from dynid.common.catalogue.entry import care, note

DESCRIPTION = {
    "snapped-angle": note(
        "an angle rounded at its last digit was treated as exact",
        "{count} rounded angle(s) replaced by exact values: {shown}",
        "to avoid this notice, write multiples of pi in full",
        quaternion=(
            "{place}, {owner}: a rounded quaternion is taken as exact",
            "write it with more digits to silence this",
        ),
    ),
    "coarse-angle": care(
        "an angle looks like a coarsely rounded multiple of pi, and was used as written: write `pi/2`",
        "{count} angle(s) look like coarsely rounded multiples of pi: {shown}",
        "they are used as written; write more digits (1.570796) or, in a robot file, pi/2",
    ),
    "angle-beyond-turn": care(
        "an angle of the description is larger than a turn: it is probably in degrees; see"
        " [description tests](../howto/description_tests.md)",
        "{count} angle(s) of the description are larger than a turn: {shown}",
        "angles are in rad: write 90*pi/180 or pi/2 for 90 degrees",
    ),
    "normalised-axis": note(
        "an axis was normalised",
        "{where}: axis ({axis}) was normalised",
        "give a unit vector",
    ),
    "orthogonalised-axes": note(
        "two axes were made orthogonal",
        "{place}, {owner}: the axes of xyaxes are not orthogonal; y was corrected, as in MuJoCo",
        "give two orthogonal vectors",
    ),
    "impossible-prior": care(
        "a physically impossible inertial, or negative friction, is not used as prior",
        "{place}: {owner} is excluded from the priors: {fault}",
        "correct it to compare it with the estimate",
        traits=("last",),
    ),
    "missing-inertial": note(
        "links without inertial are unknown and have no prior",
        "{which} without a complete inertial have no prior: {names}",
        "add an inertial to compare the estimate with a prior",
    ),
    "inertia-from-geom": note(
        "links whose inertia MuJoCo would compute from their geoms are unknown and have no prior",
        "bodies whose inertia MuJoCo computes from their geoms have no prior: {names}",
        "add an <inertial> to compare the estimate with a prior",
    ),
    "root-not-fixed": care(
        "an SDF does not fix its first link to the world: it is taken as the fixed base",
        "no joint fixes link '{link}' to the world: it is taken as the fixed base",
        "add a fixed joint with the parent `world`, or a free joint in a robot file if the base moves",
    ),
    "symbol-not-counted": care(
        "the effect of an uncertain dimension, zero or direction could not be computed. The robot cannot be"
        " built, or does not close, at a value beside the described one. Its sigma is not in the intervals",
        "the effect of {names} on the parameters could not be computed: their sigma is not counted",
        "check the description: its loops must close for values beside the described ones too",
    ),
    "description-sensitive": note(
        "an error of 1 mm or 1 mrad of the description moves well-determined parameters by more than their"
        " sigma. No residual shows it, and the intervals do not contain it: see [uncertain"
        " descriptions](../howto/description.md)",
        "an error of 1 mm or 1 mrad of the description moves {count} of {total} well-determined parameters by"
        " more than their standard deviation: {shown}; the intervals do not contain this",
        "if dimensions and joint zeros are not known that well, give their `sigma:` in the robot file, or"
        " identify them together with the parameters: key `unknown` of the experiment file",
        traits=("parameters",),
    ),
    "description-unseen": care(
        "quantities under `unknown:` that these data do not determine: they stay near the description. Their"
        " prior deviation (`sigma:`, else 10 mm or 10 mrad) is counted in the intervals",
        "these data do not determine {names}: they keep the uncertainty of the description, which is"
        " counted in the sigma of the parameters",
        "give their `sigma:` in the robot file, measure them, remove them from `unknown:`, or measure poses",
    ),
    "description-open": care(
        "the search of unknown dimensions, zeros or directions did not end: the description stays",
        "the search of the unknown quantities has not converged: the description stays as it is",
        "list fewer quantities under `unknown:`, or correct large errors of the description first",
    ),
    "massless-frame": note(
        "links without mass on fixed joints are treated as frames without parameters",
        "{which} without mass are treated as frames without parameters: {names}",
        "add an inertial if they have mass",
    ),
    "unscaled-prior": note(
        "`settotalmass` of an MJCF is not applied to priors",
        "settotalmass {mass:g} kg is not applied to the priors",
        "priors are the inertials as written in the file",
    ),
    "unknown-element": care(
        "a part of a URDF, MJCF or SDF that is not read, including elements of other name spaces; only a note"
        " if no valid name resembles it",
        "{place}: {what}",
        "it is ignored: correct or remove it",
    ),
    "renamed-link": note(
        "the name of a link is already used: use the new name in the text",
        "link 'base' is not the root (the root is '{root}') and is renamed '{new}'",
        "use the new name in robot files",
    ),
    "renamed-body": note(
        "the name of a body is already used: use the new name in the text",
        "body 'base' is not the root (the root is '{root}') and is renamed '{new}'",
        "use the new name in robot files",
    ),
    "renamed-actuator": note(
        "the name of an actuator is already used: use the new name in the text",
        "{place}: actuator '{name}' drives joint '{name}' through a gear and is renamed '{new}'",
        "use the new name in robot files and logs",
    ),
    "shared-joint": care(
        "several actuators drive one joint: the log needs the effort of each",
        "several actuators drive the same joint, so a log must contain the effort of each: {names}",
        "list one motor per joint under 'actuators:' of a robot file",
    ),
    "start-from-key": note(
        "the keyframe of an MJCF that is used as start pose for closing the loops",
        "{place}: the loops are first assembled near {key}",
        "to use another pose, set 'start:' in a robot file",
    ),
    "ignored-equality": care(
        "inactive equalities of an MJCF are ignored",
        "{place}: equality '{name}' is inactive and ignored",
        'set active="true" if the robot has it',
        all=(
            '{count} equalities are ignored: <flag equality="disable"/>',
            "remove the flag if the robot has them",
        ),
    ),
    "ignored-tendon": care(
        "tendons of an MJCF without an actuator are ignored",
        "tendons without an actuator are ignored: {names}",
        "add their effect on the efforts as an entry of 'terms:'",
    ),
    "unused-values": care(
        "springs, rotor inertias and damping values of an MJCF are not read",
        "values of joints and motors are not used: {shown}",
        "add a spring under 'terms:'; inertia and damping of the motor are in Ia and Fv of its joint",
    ),
    "unused-gravcomp": care(
        "gravity compensation of an MJCF is ignored",
        "gravity compensation is ignored at bodies {names}",
        "the logged efforts must include the gravity compensation",
    ),
    "over-constrained": note(
        "closure equations are redundant; normal for planar loops and parallelograms",
        "{redundant} of {total} closure equations are implied by the others"
        " (normal for planar loops and parallelograms)",
    ),
    "scale-unknown": note(
        "parameters of free motion are per unit mass",
        "{mass} is not identifiable from free motion: all parameters are given per unit mass",
        "add a log with a payload of known mass",
    ),
    "option-ignored": care(
        "options of a model that is not used",
        "the options under {names} have no effect on model '{model}'",
        "remove them, or choose that model",
    ),
}
