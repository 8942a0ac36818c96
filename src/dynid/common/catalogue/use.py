"""Warnings of validation, prediction, comparison, simulation and excitation."""

from __future__ import annotations

from dynid.common.catalogue.entry import care, note, stop

_PREDICTED = "see [predicted efforts](../howto/predict.md#what-is-refused-or-reported)"
_COMPARED = "see [comparison](../howto/compare.md)"
_REHEARSED = "see [rehearsal](../howto/rehearse.md#read-the-table)"

VALIDATION = {
    "validation-not-independent": care(
        "validate on a log that was not used",
        "{names} was also used for identification: its errors are not those of a new motion",
        "validate on a log that was not used",
        compared=(
            "{label}: {names} was also used for its identification",
            "compare on logs used by none of them",
        ),
    ),
    "validation-unproven": note(
        "a log is too short to show whether it is a part of a log of the fit",
        "log '{log}' is very short beside the logs of the fit: nothing would show that it is a part of one",
        "validate on a longer log, or make sure that this one was not used",
    ),
    "poor-prediction": stop(
        "check payload, units, zeros and signs of the poorly predicted log",
        "model error {percent:.2g} % of the peak ({worst}){compared}",
        "check the payload (--payload), units, zeros and signs of this log; else do not use the result",
        rank="symptom",
        payload=(
            "model error {percent:.2g} % of the peak ({worst}), but {other:.2g} % {what}",
            "if this log was recorded {what}, say so: --payload {name}",
        ),
    ),
    "payload-assumed": note(
        "no payload is named for what is predicted, although the result knows one. What every log of the fit"
        " carried is mounted",
        "no payload is named: {names} is mounted, as in every log of the fit",
        "name it to be sure: --payload {names}",
        without=(
            "no payload is named: predicted without payload, although the result knows {names}",
            "if it is mounted, name it: --payload {first}; if not, say so: --payload none",
        ),
    ),
    "joint-error": care(
        "errors of efforts on motion that was not fitted are not small: check the joints in the text; see"
        " [verdict](../explanation/verdict.md)",
        "errors on motion that was not fitted are not small: {shown}{more}",
        "check columns, units and signs of these joints, payloads of the logs, contacts, missing friction"
        " terms and the geometry of the description",
        rank="joint error",
        weak=(
            "errors on motion that was not fitted are not small: {shown}{more}. The logs determine"
            " parameters of {names} poorly",
            "record a motion that moves {names} more, and identify from it too",
        ),
        slight=(
            "errors on motion that was not fitted are not small: {shown}{more}",
            "look for contacts, another payload or missing friction terms at these joints, then check the"
            " geometry of the description",
        ),
    ),
    "purpose-not-met": stop(
        "the result is not sufficient for the purpose it is judged for; see"
        " [verdict](../explanation/verdict.md#purposes)",
        "for {purpose}: {found}",
        "{remedy}",
        rank="use",
    ),
    "no-result": stop(
        "the result is not published: gate, consistency or convergence failed",
        "{failure}",
        "see the other reasons",
        rank="no result",
    ),
    "not-identified": care(
        f"parameters that act in the trajectory were not identified: {_PREDICTED}",
        "the data of the result do not determine {shown}: they are set to zero, but act in this trajectory."
        " Sigma is infinite where nothing is known of them; of those in sums it includes the sum only",
        "identify from motion like this trajectory, or predict motion like that of the logs",
    ),
    "trajectory-as-logs": note(
        "units, scales, zeros and drives of the result's logs are used for a trajectory too",
        "the trajectory is read as the logs of the result, with what they say of {names}",
        "if it has positions of the joints in rad or m, name its columns: --column 'q_{{i}}=q_{{i}}'",
        plain=(
            "the columns q_1.. of the trajectory are read in rad and m; units, scales and zeros of the"
            " result's logs ({names}) are not used",
            "if the trajectory is in the units of the logs, say so: --column 'q_{{i}}=q_{{i}}[deg]'",
        ),
    ),
    "rough-trajectory": care(
        f"the accelerations of a trajectory are mostly noise or corners: {_PREDICTED}",
        "the accelerations of {names} lie mostly above {frequency:.3g} Hz: noise, or corners",
        "smooth the positions, give ddq, or use dynid validate for a recorded log",
        smoothed=(
            "the accelerations of {names} lie mostly above {frequency:.3g} Hz: noise, or corners. The motion"
            " is low-passed at {cutoff:.3g} Hz, as a recorded one. Sigma does not contain the errors of these"
            " accelerations, which are largest in the first and last {end:.2g} s",
            "give ddq if the motion really has these accelerations; do not rely on the ends of a recorded"
            " one",
        ),
    ),
    "friction-at-rest": note(
        f"dry friction of joints at rest is unknown: {_PREDICTED}",
        "{names} at rest: dry friction can be anything between -Fs and Fs, 0 is predicted",
        "do not compare predicted efforts of joints at rest",
    ),
    "not-compared": care(
        f"a line of a comparison failed: {_COMPARED}",
        "{label}: {reason}",
        "{remedy}",
    ),
    "rows-differ": note(
        f"lines of a comparison use different samples: {_COMPARED}",
        "{names}: fitted to other samples than the first line, because samples near reversals are masked only"
        " for dry friction; no F-test and no BIC",
        "compare sets that all contain Fs, Fs+ or Fl",
    ),
    "experiments-differ": note(
        f"lines of a comparison may use different logs and filters: {_COMPARED}",
        "the experiments may have different logs and filters: each error shows how well it predicts its own",
        "vary one experiment for a fair comparison",
    ),
    "parameters-differ": note(
        f"some parameters are in one result only: friction and masses are compared instead; {_COMPARED}",
        "{shared} of {total} parameters are in all results: {why}",
        "compare friction at given speeds (--speeds) and masses, and predictions of the same logs (--log)",
    ),
    "logs-differ": care(
        f"results that were validated on different logs cannot be compared: {_COMPARED}",
        "the results were validated on different logs: their errors cannot be compared",
        "let all predict the same logs: `dynid compare RESULT RESULT --log FILE`",
    ),
    "robots-differ": care(
        f"results for different robots cannot be compared: {_COMPARED}",
        "the results are for different robots, {names}: their errors cannot be compared",
        "if it is one robot described twice, give logs that both predict with --log",
    ),
}

SIMULATION = {
    "no-drive-values": note(
        "drive terms, and payloads that are not mounted, without a value are zero",
        "no value for {names}: taken as zero",
        "give values under `parameters:` of the simulation file",
        planned=(
            "no value for {names}: taken as zero",
            "give values with --prior FILE or --after RESULT, or reduce the limits `tau` by the friction",
        ),
    ),
    "no-priors": note(
        "a controller without priors uses the true values",
        "the description has no priors, so the controller uses the true parameters",
        "give `prior:` for the bodies",
    ),
    "no-controller": care(
        "the engine `inverse` follows the motion exactly: controller settings have no effect",
        "engine 'inverse' follows the motion exactly: the controller is not simulated",
        "use engine `dynid` or `mujoco`",
    ),
    "controller-efforts": care(
        "the corrections of a simulated controller are larger than the efforts of the motion. It is unstable,"
        " or its model of the robot is far off",
        "the controller's corrections are larger than the efforts that the motion needs: '{motor}' applies up"
        " to {applied:.3g} {unit}, the motion needs {needed:.3g} {unit}; the controller is probably unstable",
        "lower the controller's `bandwidth`, raise its `rate`, use smaller steps, or give it a better model",
    ),
    "loose-cables": care(
        "a simulated cable leaves its tension range, or would have to push: the motion is too large or too"
        " fast, or no range is given",
        "the tension of '{cable}' would be {tension:.4g} N, range {low:g} to {high:g} N",
        "reduce the motion, change `tension:`, or set `limits: {{cables: {{tension: [20, 400]}}}}`",
    ),
    "efforts-beyond-limits": care(
        "the simulated efforts exceed effort limits of the description: the real robot cannot follow this"
        " motion",
        "the motion needs more than the motors give: {shown}",
        "simulate a slower motion (`dynid excite` designs one within all limits), or correct `limits:`",
    ),
    "random-instead": note(
        "a file that an experiment lists does not exist: a rehearsal gives this log a random motion",
        "there is no file '{file}': {log} follows a random motion",
        "correct the path if the log or trajectory exists; else nothing to do",
    ),
    "limits-narrowed": note(
        "a generated motion of a closed robot uses a part of its limits only: about as far as a random walk"
        " from the start pose goes on its branch",
        "'{joint}' moves within {low:.3g} to {high:.3g} {unit}, although its limits are {least:.3g} to"
        " {most:.3g}: this is about as far as a random walk of the closed robot from its start pose goes",
        "to move further, give a trajectory of your own (`motion:` of the simulation), or another `start:`",
    ),
    "limits-unused": care(
        "limits of the robot file that have no effect on an exciting trajectory, e.g. `tau` of a joint"
        " without motor",
        "limits that were ignored, because they do not apply to this motion: {names}",
        "give `tau` for motors, and ranges for joints, motors and bodies",
    ),
    "limits-implausible": care(
        "limits of the robot are placeholders, as converters write them: one huge number for every joint."
        " An exciting trajectory keeps to careful limits instead; see"
        " [limits](../howto/excite.md#limits)",
        "limits of the description are not those of a real robot: {found}. Do not run the motion before you"
        " gave the real ones: mechanical stops are not known either",
        "{remedy}",
        rank="input",
    ),
    "acceleration-assumed": care(
        "no acceleration limit is given, as in every URDF: a careful one is assumed; see"
        " [limits](../howto/excite.md#limits)",
        "{names} without a limit of acceleration: {shown} is assumed",
        "{remedy}",
        rank="input",
    ),
    "efforts-unchecked": care(
        "effort limits cannot be checked without priors",
        "effort limits are not checked: predicting efforts needs a prior of every body",
        "give `bodies: {{NAME: {{prior: ...}}}}` in the robot file or values with --prior, or check the"
        " efforts before you run the robot",
    ),
    "collisions-off": care(
        "an exciting trajectory was designed with `--no-collisions`",
        "collisions are not checked: bodies may hit each other or the floor",
        "leave out --no-collisions, or watch the motion before you run the robot",
    ),
    "collisions-unchecked": care(
        "the description of a closed robot has no capsules and no collision shapes, or no two bodies that"
        " could meet",
        "collisions between bodies are not checked: no two bodies with capsules could meet",
        "give `capsules:` in the robot file, or watch the motion before you run the robot",
    ),
    "bodies-unchecked": care(
        "bodies have no capsules, no collision shapes and no centre of mass to assume a capsule from",
        "collisions of {names} with other bodies and the floor are not checked: they have no capsules",
        "give `capsules:` in the robot file, or watch the motion before you run the robot",
    ),
    "meshes-unread": care(
        "collision meshes of the URDF or MJCF are not there, damaged, too large, or neither STL nor OBJ",
        "collision meshes of {names} were not read: {why}",
        "{remedy}, or give `capsules:` in the robot file",
    ),
    "capsules-assumed": care(
        "bodies without readable collision shapes are checked as slender capsules along their links, the last"
        " one to twice its centre of mass. Real bodies may be thicker",
        "collisions of {names} are checked with slender capsules along the links: real bodies may be thicker",
        "give `capsules:` in the robot file, or watch the motion before you run the robot",
    ),
    "always-touching": note(
        "capsules of bodies that are closer than the clearance in all poses",
        "not checked for collisions, because their capsules are always closer than the clearance: {names}",
        "give smaller `capsules:` in the robot file",
    ),
    "floor-assumed": note(
        "no `--floor` was given: bodies stay above the plane of the base frame, or above the lowest point of"
        " the robot at rest if that is lower ([rule](../howto/excite.md#floor))",
        "the floor is assumed at height {height} m in the base frame: not above the base, and not above the"
        " robot at rest",
        "give the real height with --floor Z: a lower floor allows more motion",
    ),
    "floor-unchecked": care(
        "the floor is switched off, or its height does not follow from the description"
        " ([rule](../howto/excite.md#floor)): the robot may hit the ground or its table",
        "the floor is not checked: {why}",
        "give its height with --floor Z: --floor 0 if the robot stands on the origin of the base frame",
    ),
    "home-moved": note(
        "no straight move from the start pose of the description to the motion keeps the limits. The run"
        " begins and ends in the middle of the joint ranges instead",
        "the run begins in the middle of the joint ranges: from the start pose it would violate a limit:"
        " {missed}",
        "give another pose with --home",
    ),
    "no-approach": care(
        "no straight move from the start pose of the description, or from the middle of the joint ranges, to"
        " the motion keeps the limits. The run begins at the first pose of the motion",
        "the run has no approach move from the start pose, which would violate a limit: {missed}",
        "give a safe pose with --home, or move the robot to the first pose of the motion by hand",
    ),
    "promised-by-another-model": note(
        "sigma is predicted for another model than the robot's own (`power` for `energy`, whose windows carry"
        " less information)",
        "sigma is predicted for model '{promised}', not for '{model}' of the robot file{more}",
        "run dynid rehearse to predict sigma for the real experiment",
    ),
    "sigma-too-small": care(
        f"errors of simulated identifications are larger than their sigma: {_REHEARSED}",
        "sigma is too small for {names}; worst: {worst}, by a factor of {ratio:.2g}",
        "try another filter: coloured noise, encoder steps or delays may not be modelled",
    ),
    "sigma-too-large": note(
        f"errors of simulated identifications are smaller than their sigma: {_REHEARSED}",
        "the reported sigma is too large: the median error is {ratio:.2f} times sigma",
        "use longer logs or more runs; use `uncertainty: classical` where noise is white",
    ),
    "bias": care(
        f"estimates of simulated identifications are biased: {_REHEARSED}",
        "estimates are biased for {names}, by more than {sigmas:g} sigma",
        "check for missing model terms: friction, delays, filter settings",
    ),
}
