"""Warnings about uncertainty, residuals and their causes."""

from __future__ import annotations

from dynid.common.catalogue.entry import care, note, stop

_BLOCKS = "[intervals are not reliable](../explanation/uncertainty.md#blocks); repeat the motion"
_LABELS = (
    "check which payload each log carries and how it is mounted; then change `payload:` of that log in the"
    " experiment file"
)
_TESTS = "see [residual tests](../explanation/residual_tests.md)"

RESIDUALS = {
    "from-one-block": care(
        f"only one block of the log determines a parameter: {_BLOCKS}",
        "only one {part} determines {names}: their errors cannot be estimated from these data, and the"
        " intervals of these parameters are a lower bound",
        "repeat the motion that excites them, or use a longer log",
        rank="use",
    ),
    "few-blocks": note(
        f"few blocks of the log determine a parameter: {_BLOCKS}",
        "sigma of {names} depends on fewer than two of the {parts}: the intervals are wide, and still"
        " uncertain",
        "use longer logs, or more of them",
        traits=("parameters",),
    ),
    "one-block": care(
        f"the log is too short for blocks: {_BLOCKS}",
        "the data form one block of time, but '{method}' needs several: the classical uncertainty is used"
        " instead, which assumes white noise",
        "use a longer log, or shorter blocks: `uncertainty: {{method: cluster, block: ...}}`",
        rank="use",
    ),
    "delay": care(
        f"efforts are late or early, which biases inertias: {_TESTS}",
        "{who} {size:.3g} +- {half:.2g} ms ({samples:.2g} samples) {late} than {reference}",
        "remove the delay: {change}; or log both with one clock. A delay biases inertias without any other"
        " sign",
        rank="signal",
        traits=("log", "linear", "doubt"),
        suspect="a delay",
        confirmed=(
            "{who} {size:.3g} ms {late} than the positions",
            "remove the delay: {change}; or log both with one clock",
        ),
    ),
    "gain": care(
        f"an effort is too large or too small: {_TESTS}",
        "{found}",
        "check the drive gain (gear ratio, torque constant), its sign and its column, and the geometry of the"
        " description; or estimate gains from runs with a weighed payload: `gains: all`",
        rank="signal",
        traits=("log", "linear", "doubt"),
        suspect="a drive gain",
        sensor=("{found}", "check its calibration, unit, sign and column, and where the sensor is"),
        single=(
            "{found}",
            "check the drive gain (gear ratio, torque constant), its sign and its column, and the geometry of"
            " the description; or correct its column in the experiment file: {change}",
        ),
        confirmed=(
            "the effort of '{effort}' is {percent:.0f} % too {large}",
            "check the drive gain (gear ratio, torque constant) and the geometry near it, or correct its"
            " column in the experiment file: {change}",
        ),
        times=(
            "the effort {who} seems to be {times:.4g} times as large as it should be",
            "check unit, gear ratio and torque constant, or correct it in the experiment file: {change}",
        ),
    ),
    "zero-offset": care(
        f"the zero of a joint is off; the text gives its size: {_TESTS}",
        "the positions of '{joint}' seem to be {shown}. The residuals look like those of a shifted zero; a"
        " wrong length near it looks alike",
        "check the calibration of the joint and the lengths around it, or correct its column in the"
        " experiment file: {change} (rad or m, added to the reading)",
        rank="signal",
        traits=("log", "description", "linear", "searched"),
        corrections={"zero": "zero of '{}'"},
        suspect="a joint zero",
        confirmed=(
            "the positions of '{joint}' seem to be {shown} (its zero is off), or the geometry of the"
            " description near it is wrong",
            "check the calibration of the joint and the lengths around it, or correct its column in the"
            " experiment file: {change} (rad or m, added to the reading)",
        ),
    ),
    "position-scale": care(
        "the positions of a joint are too large or too small by a factor: counts of its encoder, or its gear"
        " ratio; see [verdict](../explanation/verdict.md#causes)",
        "the positions of '{joint}' seem to be {percent:.3g} % too {large}",
        "check the counts per turn of the encoder and the gear ratio of this joint, or correct its column in"
        " the experiment file: {change}",
        rank="signal",
        traits=("wrong input", "log"),
        corrections={"scale": "scale of '{}'", "gear": "gear ratio of '{}'"},
        geared=(
            "the positions of '{joint}' seem to be {percent:.3g} % too {large}, and its effort is wrong by"
            " the inverse factor: its gear ratio is wrong",
            "check the gear ratio of this joint, or correct its columns in the experiment file: {change}",
        ),
    ),
    "gravity-off": stop(
        f"gravity differs from the description: {_TESTS}",
        "{found} {percent:.0f} % of the residual remains{alike}",
        "check how the base is mounted (inclined, on a wall, hanging), and set `gravity: [{vector}]` in the"
        " robot file{sensor}",
        rank="input",
        traits=("wrong input", "description", "linear", "absorbed"),
        corrections={"gravity": "gravity tilted"},
        suspect="a tilted base",
        turned=(
            "the logs fit gravity ({vector}) m/s^2 in the base frame; that of the description,"
            " ({described}), seems to be {turned}",
            "check how the base is mounted (inclined, on a wall, hanging), and set `gravity: [{vector}]` in"
            " the robot file",
        ),
        clock=(
            "the clock of the logs seems wrong: they fit with gravity {times:.3g} times as large, as if times"
            " were {factor:.3g} times as long",
            "check the unit and the rate of the time column; {change} corrects it."
            " If the clock is right, set `gravity: [{vector}]` in the robot file",
        ),
    ),
    "model-misfit": care(
        "the residuals are larger than the noise, and no single cause explains them: check the geometry, then"
        " missing effects; see [verdict](../explanation/verdict.md#causes)",
        "the model leaves more than noise: {row} {error:.3g} {unit} rms on unseen motion ({times:.0f} times"
        " the noise, model error {percent:.2g} % of its peak){also}",
        "check the geometry of the description (link lengths, axes), then missing effects: friction terms,"
        " elasticity, cables, springs, and contacts that come in every cycle",
        rank="model",
        traits=("linear", "doubt"),
        gravity=(
            "the efforts have a part that depends on the joint positions and that the model lacks. It is not"
            " gravity: other directions and sizes of gravity were tried",
            "look for what loads the joints in some positions and is not in the description: springs,"
            " counterbalances, cables, coupled axes of a wrist; then check the clock of the log and the"
            " geometry (link lengths, axes, joint zeros)",
        ),
    ),
    "friction-missing": care(
        "friction terms that the description lacks explain the residuals; see"
        " [verdict](../explanation/verdict.md#causes)",
        "the description lacks friction that the robot has: {names}",
        "add it in the experiment file: {change}, or to `drive:` in the robot file",
        rank="model",
        traits=("wrong input", "resembles"),
        passive=(
            "friction of joints without a motor explains the residuals: {names}",
            "add it in the experiment file: {change}",
        ),
    ),
    "rotor-missing": care(
        "rotor inertia that the description lacks explains the residuals; see"
        " [verdict](../explanation/verdict.md#causes)",
        "the description lacks the inertia of the rotors: {names}",
        "add it in the experiment file: {change}, or to `drive:` in the robot file",
        rank="model",
        traits=("wrong input", "resembles"),
    ),
    "dimension-unit": stop(
        "the logs fit with dimensions of the description in another unit; see"
        " [description tests](../howto/description_tests.md)",
        "dimension {names} of the description seems to be in {unit}",
        "write lengths in m and angles in rad (90*pi/180)",
        rank="input",
    ),
    "dimension-off": care(
        "the logs fit with another value of a dimension; see"
        " [description tests](../howto/description_tests.md)",
        "dimension '{name}' seems to be {value:.4g} {unit} instead of {described:.4g} {unit}",
        "measure it, or estimate it with the parameters: {entry}",
        rank="part",
        traits=("description", "linear", "searched"),
        corrections={"dimension": "dimension {}"},
        suspect="a dimension of the description",
        residual=(
            "dimension '{name}' seems to be {value:.4g} +- {half:.2g} instead of {described:.4g} {unit}:"
            " the residuals follow the derivative of the model with respect to it",
            "measure it, or estimate it with the parameters: {entry}",
        ),
        closure=(
            "the redundant encoders fit {name} changed by {size:+.2g} {unit}: then {percent:.2g} %"
            " of their closure misfit remains{beside}",
            "measure this dimension",
        ),
    ),
    "known-off": stop(
        "values that are taken as exact contradict the logs; see [verdict](../explanation/verdict.md#causes)",
        "the known values of {names} do not explain the logs",
        "correct them, or leave them out of `known:` to estimate them",
        rank="declaration",
        traits=("absorbed",),
    ),
    "payload-label": stop(
        "a log seems to carry another payload than declared, or it is mounted differently; see"
        " [verdict](../explanation/verdict.md#causes)",
        "log '{log}' seems to carry {said} instead of {declared} (or the others are declared wrongly)",
        _LABELS,
        rank="declaration",
        traits=("log",),
        exchanged=("the payloads of logs '{log}' and '{other}' seem to be exchanged", _LABELS),
        other=(
            "log '{log}' (declared payload: {declared}) seems to carry another payload than the other logs,"
            " or carries it in another position, e.g. turned on its flange",
            _LABELS,
        ),
        known=(
            "the known values of payload '{body}' ({names}) do not explain the logs that carry it",
            "weigh it and measure its centre of mass in the frame of its carrier; or estimate the values:"
            " leave them out of `known:`",
        ),
        negative=(
            "payload '{body}' has a negative mass, {mass:.3g} kg: the logs that carry it and those that do"
            " not seem to be exchanged",
            _LABELS,
        ),
    ),
    "position-unit": stop(
        "the logs fit with positions in another unit; see [verdict](../explanation/verdict.md#causes)",
        "positions seem to be in {unit}",
        "set the unit in the experiment file: {change}",
        rank="unit",
        traits=("log", "absorbed"),
    ),
    "logs-contradict": stop(
        "one log spoils the fit of the others: its columns, units, payload or mounting differ; see"
        " [verdict](../explanation/verdict.md#causes)",
        "log {log} contradicts the others: with it in the fit, {before:.0f} % of the effort of '{effort}' in"
        " the other logs is unexplained, without it {after:.2g} %",
        "compare columns, units, signs, payload, mounting and temperature of this log with those of the"
        " others, or leave it out; if all are the same, check the geometry of the description",
        rank="input",
        traits=("log",),
        undecided=(
            "logs {log} and {other} contradict each other: fitted together, {before:.0f} % of the effort of"
            " '{effort}' in {other} is unexplained, without {log} {after:.2g} %",
            "compare columns, units, signs, payload, mounting and temperature of these logs, or leave one of"
            " them out; if all are the same, check the geometry of the description",
        ),
        explained=(
            "log {log} contradicts {other} (with it in the fit, {before:.0f} % of the effort of '{effort}'"
            " there is unexplained, without it {after:.2g} %): {cause}",
            "correct the entry of this log alone in the experiment file, or leave it out: {change}",
        ),
    ),
    "position-order": stop(
        "the logs fit with other signs or another order of the positions; see"
        " [verdict](../explanation/verdict.md#causes)",
        "the position of '{joint}' seems to have the opposite sign",
        "turn its sign in the experiment file: {change}",
        rank="input",
        traits=("log", "resembles", "absorbed"),
        axis=(
            "position and effort of '{joint}' both seem to have the opposite sign: its axis points the other"
            " way",
            "turn the axis in the description, or both signs in the experiment file: {change}",
        ),
        exchanged=(
            "the {columns} of '{joint}' and '{other}' seem to be exchanged",
            "exchange them in the experiment file: {change}",
        ),
    ),
    "effort-sign": stop(
        "the logs fit with the other sign of an effort, or of the position of its joint; see"
        " [verdict](../explanation/verdict.md#causes)",
        "the effort of '{effort}' seems to have the opposite sign; a position with the opposite sign may look"
        " the same",
        "find out which is wrong, then turn its sign in the experiment file: {change}, or the same for the"
        " position of the joint",
        rank="input",
        traits=("log", "absorbed"),
    ),
    "wrong-branch": stop(
        "the logs fit with the loops closed on another branch; see"
        " [verdict](../explanation/verdict.md#causes)",
        "the loops seem to be closed on another branch than the robot's: {names} bent the other way",
        "give a pose on the branch of the robot under `start:`",
        rank="input",
        traits=("resembles", "absorbed"),
        log=(
            "log '{log}' seems to be on another branch of the loops than the others: {names} differ",
            "identify from logs of one branch, or give a start pose of that log",
        ),
    ),
    "friction-speed": care(
        f"the residual still depends on speed: {_TESTS}",
        "the residual of '{joint}' still depends on its speed: better friction terms reduce its rms by"
        " {percent:.0f} %",
        "add a term in the experiment file: {entry} (Fr: sub-linear in speed, Fk: Stribeck);"
        " keep it if the error on a validation log falls",
        rank="signal",
        traits=("linear",),
        suspect="friction that depends on speed",
    ),
    "friction-load": care(
        f"friction grows with the load: {_TESTS}",
        "the friction of '{joint}' seems to grow with the load: a term {size:.2g} |effort| sign(v) reduces"
        " the rms of its residual by {percent:.0f} %",
        "add the drive term Fl (load-dependent friction) there, and compare on a held-out log",
        rank="signal",
        traits=("linear",),
        suspect="friction that depends on load",
    ),
    "outlying-run": care(
        f"the residual of one run is much larger than that of the others: {_TESTS}",
        "the residual of one run is much larger than that of the others: {shown}",
        "possible causes: a payload mounted differently (rotated on its flange), another tool, a collision,"
        " or another robot; or leave that run out, with `runs:` or `exclude:` of its log in the experiment"
        " file",
        rank="part",
        traits=("log", "linear"),
        free=(
            "the residual of one run is much larger than that of the others: {shown}",
            "possible causes: a hand on the platform, a winch that slipped, a slack cable, or wrong end"
            " points of a cable; or leave that run out, with `runs:` or `exclude:` of its log in the"
            " experiment file",
        ),
    ),
    "burst": care(
        f"the residual is large for a fraction of a second: {_TESTS}",
        "the residual has bursts, as contacts cause them, above {times:.0f} times its usual size: {shown}",
        "check for a contact or collision there, and leave it out, under `logs:` in the entry of {change};"
        " `estimator: robust` ignores such samples. If the load changed there, use one log for each load"
        " (`from:` and `to:` in its entry) and give its `payload:`",
        rank="model",
        traits=("log", "linear"),
    ),
    "not-white": care(
        f"residuals are correlated in time, and classical intervals are too small: {_TESTS}",
        "the residuals of {names} are correlated in time, but the classical uncertainty assumes white noise:"
        " its intervals are too small",
        "use uncertainty: cluster or bootstrap, which do not assume white noise",
        traits=("parameters",),
    ),
}
