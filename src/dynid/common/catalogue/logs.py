"""Warnings about logs: clock, samples, columns, units."""

from __future__ import annotations

from dynid.common.catalogue.entry import care, note, stop

_TABLES = "see [multibody tables](../howto/multibody_table.md#checks)"

LOGS = {
    "forced": stop(
        "input that is refused was used because of `--force`: the text is that of the refusal",
        "{text}. dynid refused this input; it was used because of `--force`",
        "correct the input, and identify again without --force",
        rank="declaration",
    ),
    "bad-rows-dropped": note(
        "rows with text instead of numbers were dropped, as requested",
        "{count} rows with non-numeric cells were dropped, {kept} kept (file rows {rows})",
        "correct the file if many rows are lost",
    ),
    "recording-unfinished": care(
        "the file of a recording ends too early (the recorder was stopped): what it contains was read",
        "the recording is not finished or damaged at its end: {messages} messages were read, {lost} of {size}"
        " bytes are lost (about {seconds:.2g} s)",
        "check that the motion is complete; `mcap recover` or `ros2 bag reindex` repair the file",
    ),
    "chunks-damaged": care(
        "parts of a recording do not match their checksum: they were left out",
        "{count} of {total} chunks are damaged and were left out ({seconds:.3g} s of the recording)",
        "copy the file again, or check the disk of the recorder",
    ),
    "messages-damaged": care(
        "messages of a recording cannot be decoded: they were left out",
        "{count} of {total} messages of '{topic}' cannot be decoded and were left out",
        "check that the recorder stored the definition of the message",
    ),
    "time-missing": note(
        "samples without a time were dropped: check the recorder",
        "{count} samples without a time were dropped",
        traits=("samples lost",),
    ),
    "time-doubled": note(
        "samples that repeat the previous one were dropped: check the recorder",
        "{count} samples repeat the previous sample and were dropped",
        "check how the log was written",
    ),
    "time-unsorted": care(
        "samples out of order were sorted by time: check the recorder",
        "{count} samples were out of order and were sorted by time",
        "check how the log was written",
    ),
    "clock-reset": care(
        "the clock jumps back, and the log is split there",
        "the clock jumps back {count} times (first after t = {first:g} s); the log is split there",
        "give a `segment` column if the file contains several runs",
    ),
    "clock-jitter": care(
        "the steps of the clock vary much: the log was resampled",
        "clock jitter is {percent:.0f} % of the step (95 % of steps); the log was resampled",
        "use a more stable clock, or the time stamps of the controller",
    ),
    "not-finite": care(
        "samples are not numbers: they are filled from those around, and not used; where many are lost in a"
        " row, the log is split",
        "{count} samples contain NaN or infinite values (first at t = {first:g} s); they are not used, and"
        " the log is split where they last longer than {limit:.3g} ms",
        "check for lost packets or a faulty sensor",
        traits=("samples lost",),
    ),
    "gap": care(
        "samples are missing: the log is split there",
        "{count} gaps longer than {limit:.3g} ms (longest {longest:.3g} ms); the log is split there{jump}",
        "check the recorder",
        traits=("samples lost",),
    ),
    "samples-filled": note(
        "single lost samples were interpolated",
        "{count} lost samples were filled by interpolation",
        "check the recorder",
    ),
    "short-segments": note(
        "parts of the log that are too short for the filter were dropped",
        "{count} segments shorter than {least} samples were dropped",
        "check the recorder",
        traits=("samples lost",),
    ),
    "angle-wrapped": note(
        "jumps of a full turn were made continuous",
        "angles of {count} coordinates jump by a full turn and were made continuous",
    ),
    "attitude-lost": care(
        "quaternions of zeros (a tracker that lost sight) are masked",
        "{count} samples have no attitude of '{joint}': the quaternion is zero",
        "look for frames in which the tracker lost the target",
    ),
    "angles-large": stop(
        "the range of an angle is too large for a joint: check whether the unit is degrees",
        "{shown}",
        "if the log is in degrees, set the unit of {columns}: `--column 'q_{number}={name}[deg]'`, or in the"
        " experiment file `columns: {{q_{number}: {{name: {name}, unit: deg}}}}`",
        rank="input",
        traits=("wrong input", "size"),
    ),
    "lengths-large": stop(
        "the range of a linear position is too large for its joint: check whether the unit is millimetres",
        "{shown}",
        "if the log is in millimetres, set the unit of {columns}: `--column 'q_{number}={name}[mm]'`, or in"
        " the experiment file `columns: {{q_{number}: {{name: {name}, unit: mm}}}}`",
        rank="input",
        traits=("wrong input", "size"),
    ),
    "velocity-differs": care(
        "measured velocities differ from the derivative of the positions (filters or delays inside the"
        " controller); positions were used",
        "log '{log}': measured velocity differs from the derivative of the position by {shown}",
        "check filters and delays inside the controller",
        traits=("channel",),
    ),
    "rates-incomplete": note(
        "rates are logged for some coordinates only: map the columns if they have other names",
        "{quantity} is logged for {found} of {total} coordinates; {instead}",
        "log all of them or none",
        traits=("channel",),
    ),
    "effort-absent": care(
        "effort columns are missing: map them if they have other names",
        "the log has no effort of {names}: equations of these efforts are not used",
        "map the columns if they have other names",
        traits=("channel",),
    ),
    "effort-unmatched": note(
        "columns look like efforts but belong to no motor: map them if they do",
        "columns that look like efforts are not used: {names}",
        "map them (--column tau_1=NAME, or under `columns:`) if they belong to a motor",
        traits=("channel",),
    ),
    "effort-from-current": care(
        "motor currents, loads or percentages were taken as efforts: all parameters are in their unit",
        "efforts are read from motor currents, loads or percentages ({names}), without their scale{also}",
        "give it: --column 'tau_1=NAME*11.9' (N m per A at the joint), or `drives:` in the experiment file;"
        " or choose other columns: --column 'tau_{{i}}=NAME_{{i}}'",
        traits=("channel",),
    ),
    "effort-commanded": note(
        "commanded efforts were taken as efforts, because no measured ones were found",
        "efforts are read from commands ({names}), not from measurements: what the drives gave may differ",
        "choose measured efforts if there are any: --column 'tau_{{i}}=NAME_{{i}}'",
        traits=("channel",),
    ),
    "effort-missing": care(
        "a log has no column for some efforts; the text lists them and the consequences",
        "{where} no column for {names}: the equations of these motors are not used, and parameters that act"
        " on no other effort are not identified",
        "map the column under `columns:` ({first}: {{name: ...}}), or list the efforts to use under"
        " `efforts:`",
        traits=("channel",),
    ),
    "constant-effort": care(
        "an effort never changes while the robot moves: a wrong column, or a disconnected sensor. `stop`"
        " where its own joint moves; if all are constant the log is refused",
        "efforts that are constant while the robot moves: {names}",
        "check the recorder and the mapping under `columns:`; a sensor may be disconnected",
        rank="unit",
        traits=("wrong input",),
        moving=(
            "efforts never change although their joints move: {names}. The parameters of these joints follow"
            " this value, not the robot",
            "check the recorder and the mapping under `columns:`; a sensor may be disconnected. Without this"
            " effort: `efforts: [{kept}]`",
        ),
    ),
    "constant-position": care(
        "a position never changes while the effort of its motor does, and the efforts are predicted poorly:"
        " an encoder is probably stuck",
        "the position of '{joint}' ({column}) is always {value:.4g} while its effort changes, and the efforts"
        " are predicted poorly: its encoder is probably stuck, or the column is wrong",
        "check encoder, recorder and the mapping of {column} under `columns:`; nothing can be identified"
        " without this position",
        rank="unit",
        traits=("wrong input",),
    ),
    "effort-spikes": care(
        "single samples of an effort are outliers, and are not used: check sensor and recorder",
        "single samples are outliers in {counts}; their equations are not used{many}",
        "check for lost packets (zeros) or electrical noise",
    ),
    "position-spikes": care(
        "single positions jump and return; they are filled, and not used: check sensor and recorder",
        "single samples of positions jump and return: {shown}; they are filled from the samples around,"
        " and their equations are not used",
        "check for lost packets or a faulty encoder",
    ),
    "samples-repeated": note(
        "positions repeat an old value or zero for some samples while the joint moves; they are filled, and"
        " not used",
        "positions stay at one value for some samples while the joint moves on: {shown}; they are filled from"
        " the samples around, and their equations are not used",
        "check for lost packets, or a sensor that is read more slowly than the log is written",
    ),
    "saturation": care(
        "an effort often reaches the same largest value; these samples are not used",
        "efforts repeatedly reach the same largest value: {shown}; these samples are not used",
        "the amplifier or recorder probably saturates: use slower motion, or raise the limit",
        rank="signal",
        traits=("channel",),
    ),
    "stuck-signal": care(
        "a signal is constant while the robot moves; the text states whether its samples are used",
        "signals that are constant while the robot moves: {names}; these samples are not used",
        "check for a frozen sensor or recorder",
        resting=(
            "positions that are constant while other joints move: {names}; they stop and start smoothly, and"
            " are used",
            "if the sensor is frozen, leave these parts out: `exclude: [[t0, t1]]` in the log's entry",
        ),
    ),
    "coarse-effort": care(
        "an effort has a coarse resolution",
        "efforts have coarse resolution: {shown}",
        "log them with more digits, or in the drive's own unit",
        traits=("channel",),
    ),
    "log-repeated": stop(
        "the same log is used twice: every sigma is too small, and parts left out of the fit are still in it",
        "{shown}: the same samples count twice. Every sigma is too small, and a part that is left out of the"
        " fit is still in it",
        "list every log once",
    ),
    "position-step": care(
        "a position jumps between two samples and stays shifted: a lost encoder count, or a zero that was set"
        " during the log. Steps above 5 % of the range are refused",
        "positions of log '{log}' jump between two samples and keep the offset: {shown}",
        "check for lost encoder counts or a zero set during the log; use one side of the step: `to:` or"
        " `from:` in the log's entry",
        rank="part",
    ),
    "rest": note(
        "the robot is at rest for a part of the log; these samples are not used",
        "the robot is at rest for {seconds:.3g} s ({percent:.0f} % of the log), longest from t ="
        " {start:.4g} s to {stop:.4g} s; these samples are not used",
        "nothing to do; move the robot for more of the recording if parameters are uncertain",
        traits=("motion",),
    ),
    "at-rest": care(
        "a log contains hardly any motion: it determines no dynamics",
        "the robot hardly moves in this log: {shown}",
        "use it for noise only; identify from a log in which all joints move",
        traits=("motion",),
    ),
    "limit-exceeded": care(
        "a log exceeds limits of the description: check units, zeros, and the description",
        "limits of the description are exceeded: {shown}",
        "check unit and zero of these columns, and the limits of the description",
        traits=("channel",),
    ),
    "joint-unexcited": care(
        "parameters of a joint stay unknown with this motion",
        "joint '{joint}' {motion}: unknown are its {kinds} (parameters {names})",
        "move this joint faster and farther, also while others move",
        traits=("motion",),
    ),
    "excitation": care(
        "the motion determines a part of the base parameters only",
        "these logs determine {seen} of {base} base parameters",
        "an exciting motion can determine up to {more} more: {command}",
        traits=("motion",),
    ),
    "excitation-poor": care(
        "base parameters are determined, but combinations of them hardly: an identification from these logs"
        " gets `weak-parameters`",
        "the motion excites some combinations of parameters poorly: other motion in the same ranges would be"
        " predicted with an error above 5 % of an effort{why}. {weak} of {base} parameters have a sigma above"
        " their value; the condition number of the scaled regressor is {condition:.3g}",
        "add a more exciting motion: {command}",
        traits=("motion",),
    ),
    "delay-suspected": care(
        "efforts seem to be late or early by less than these logs can prove",
        "the efforts seem to be {size:.2g} ms {side} than the positions (95 % interval {low:.2g} to"
        " {high:.2g} ms, p = {p:.1g})",
        "record a longer log to be sure, or check filters and time stamps of the efforts",
    ),
    "scale-unchecked": note(
        "a common factor of all efforts cannot be found from the logs alone",
        "the scale of the efforts is not checked: if all are too large by the same factor, so are all"
        " parameters",
        "record a log with a known payload, or give the mass of the robot: `gains: {{total_mass: ...}}`",
        traits=("last",),
        # Not even a factor of 1000.
        size=(
            "the scale of the efforts rests on the logs alone: nothing in the description contradicts"
            " parameters that are 1000 times larger or smaller (efforts in mA, N mm or kN)",
            "check the unit of the efforts; describe `prior:` masses or `limits:`, or record a log with a"
            " known payload",
        ),
    ),
    "not-tested": note(
        "faults that these logs cannot show",
        "not testable with these logs: {names}",
        "a motion in which these act differently from the parameters can show them",
        traits=("last",),
    ),
    "quaternion-length": note(
        f"quaternions were normalised: {_TABLES}",
        "the norm of quaternions differs from 1 by up to {off:.2g} ('{body}' at t = {t:g} s): they were"
        " normalised",
        "write quaternions with more digits",
    ),
    "quaternion-sign": note(
        f"signs of quaternions were made continuous: {_TABLES}",
        "{count} quaternions change their sign from one instant to the next: the same rotations, repaired",
        "nothing to do",
    ),
    "attitude-misfit": stop(
        f"attitudes of two bodies contradict their joint: {_TABLES}",
        "the axis of joint '{joint}' computed from '{parent}' and from '{child}' differs by up to"
        " {degrees:.2g} degrees",
        "check that the body frames are those of the robot file. Quaternions must rotate body axes into world"
        " axes: check that they are not inverted",
    ),
    "rates-misfit": stop(
        f"angular velocities of two bodies contradict their joint: {_TABLES}",
        "'{child}' rotates relative to '{parent}' about directions other than the axis of joint '{joint}'"
        " ({off:.2g} of {size:.2g} rad/s)",
        "check units and axes of wx wy wz: body axes and rad/s, else columns: {{wx: {{unit: deg/s}}}} or"
        " wrench: {{axes: {{rates: world}}}}",
    ),
    "acceleration-misfit": stop(
        f"accelerations of two bodies contradict their joint: {_TABLES}",
        "the acceleration of joint '{joint}' computed from '{child}' and from '{parent}' differs ({off:.2g}"
        " of {size:.2g} m/s^2)",
        "check units and axes of ax ay az, dwx dwy dwz and wx wy wz; ax ay az must be those of the body's"
        " origin",
        gravity=(
            "the acceleration of joint '{joint}' computed from '{child}' and from '{parent}' differs"
            " ({off:.2g} of {size:.2g} m/s^2): gravity seems to be {how} it",
            "if this is true, set wrench: {{acceleration: {kind}}}",
        ),
    ),
    "derivative-misfit": stop(
        f"a rate is not the derivative of its quantity: {_TABLES}",
        "the {rate} of '{body}' is not the derivative of its {quantity}: {misfit}",
        "check units, axes and columns of both",
    ),
    "derived-coarse": care(
        f"time instants are too far apart for derivatives: {_TABLES}",
        "the {what}, derived from {source}, may have an error of {percent:.2g} %: the time instants are too"
        " far apart, or have too few digits",
        "add columns of the {what}, or more time instants",
    ),
}
