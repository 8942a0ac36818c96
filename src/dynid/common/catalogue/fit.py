"""Warnings about the linear fit, its estimators, and unknowns around it."""

from __future__ import annotations

from dynid.common.catalogue.entry import care, note, stop

_FRICTION = "see [friction](../howto/friction.md)"
_SERVOS = "see [actuators](../howto/actuators.md)"
_GAINS = "see [drive gains](../howto/drive_gains.md)"

FIT = {
    "not-excited": care(
        "add motion of the joints in the text, or accept the grouped parameters",
        "these data determine {found} of {total} base parameters; not excited: {names}",
        "add motion of these joints; otherwise see the groupings of the parameters that include these",
        rank="data",
        traits=("parameters", "unknown"),
    ),
    "rank-undecided": care(
        "some columns are almost dependent, and the number of base parameters is ambiguous; excite more",
        "the rank of {what} is ambiguous: the smallest relative residual of the {rank} kept columns is"
        " {kept:.1e}, the largest of the dropped columns {dropped:.1e}{gap}",
        "use a more exciting motion; parameters near the threshold may be unreliable",
        rank="data",
        traits=("unknown",),
        rounding=(
            "the number of base parameters is undecided between {new} and {old}. The dimensions of the robot"
            " description are rounded to {rounding:.0e} of the largest one; {count} columns of the structural"
            " regressor may be independent only because of this",
            "write dimensions and axes with full precision (12 digits), as arithmetic over `symbols:`",
        ),
    ),
    "ill-conditioned": care(
        "some columns are almost dependent in these data; excite more",
        "the condition number of the scaled regressor is {condition:.1e}: about {digits:.0f} of 16 digits are"
        " lost",
        "excite the robot more, or fix parameters that are known",
        rank="data",
    ),
    "nothing-chosen": note(
        "the logs are too short to compare settings by held-out error. Cutoff, mask, velocities and friction"
        " terms follow their single rules, as with `auto: off`. See [settings chosen by held-out"
        " error](../howto/filter_and_mask.md#settings-chosen-by-held-out-error)",
        "settings were not chosen by held-out error: {why}",
        "record longer logs, or several; or set `filter`, `mask`, `drive` and `estimator` yourself",
    ),
    "correlated": note(
        "two parameters have almost the same effect: use the combination in the text, or a motion that"
        " separates them",
        "hardly separable with these data: {shown}{more}",
        "excite the two differently, tie or fix one of them, or use only their combination",
        traits=("parameters",),
    ),
    "poor-fit": stop(
        "half of the measured efforts is unexplained, and no other log is predicted much better. Start with"
        " the joint in the text: columns, signs, branch of the loops, contacts",
        "the fit leaves {percent:.3g} % of the measured efforts unexplained{worst}",
        "do not use these parameters yet: check position and effort columns, units and signs of that joint,"
        " the branch of its loops, and contacts",
        rank="symptom",
    ),
    "weak-parameters": care(
        "parameters whose sigma exceeds their value. Other motion in the ranges of the logs would be"
        " predicted with an error above 5 % of an effort: excite more, or request"
        " [essential parameters](../howto/essential.md). A value that is zero within a narrow interval is"
        " well known, and not listed",
        "not determined well, but other motion needs them: {names}",
        "record a motion that excites these parameters more, or use essential parameters",
        rank="use",
        traits=("parameters", "unknown"),
        # Not physically consistent with parameters set to zero.
        consistent=(
            "not determined well, but other motion needs them: {names}",
            "record a motion that excites these parameters more",
        ),
        rehearsed=(
            "sigma exceeds the value itself for {names}",
            "use a motion that excites them more (dynid excite), more periods, or less noise",
        ),
    ),
    "not-general": care(
        "the fit explains its logs up to their noise, but unseen motion is not predicted: the logs do not"
        " determine what it needs; add motion",
        "the fit explains its logs up to their noise, but unseen motion is predicted worse: {row} {error:.3g}"
        " {unit} rms ({times:.0f} times the noise, model error {percent:.2g} % of its peak){also}",
        "add a log of another motion (`dynid excite --after` designs it), or tie or fix parameters that are"
        " known",
        rank="data",
    ),
    "negative-parameter": care(
        "the interval of a mass, rotor inertia or friction is below zero. Look for a wrong sign, a delay"
        " between position and effort, or a missing friction term",
        "{shown}: cannot be negative. Do not use these values alone, in a simulation or beyond these speeds",
        "look for a wrong sign, a delay between position and effort, or a missing friction term;"
        " `estimator: consistent` keeps them above zero",
        rank="data",
        traits=("impossible",),
    ),
    "essential-bias": care(
        "parameters set to zero: compare with the full set",
        "set to zero: {names}; the residual norm changed by {growth:+.2g} %. The sigma of the other"
        " parameters does not include the resulting bias",
        "compare with the full set before using single parameters",
        predicted=(
            "the result has set {names} to zero; sigma does not include the resulting bias",
            "compare with a result of all parameters",
        ),
    ),
    "tie-rejected": care(
        "the data reject a tie",
        "tie {name} is {found}",
        "identify without it and compare",
        rank="signal",
    ),
    "tie-idle": note(
        "a tie that removes no parameter",
        "tie {name} has no effect: it does not reduce the number of base parameters",
        "apply it after regrouping if that is intended, e.g. `ties: [{{name: ..., apply: regrouped}}]`",
    ),
    "weights-not-converged": stop(
        "the parameters still change by more than 1e-3 of their sigma at the iteration limit: use `ols`, or"
        " more data",
        "the group weights have not converged after {passes} iterations: the parameters still change by"
        " {step:.1e} sigma",
        "use more data, or the estimator 'ols'",
        joints=(
            "the covariance between joints has not converged after {passes} iterations",
            "use weights: joint",
        ),
        gtls=(
            "effort noise and solution do not converge",
            "give the standard deviation of the efforts: `estimator: {{name: gtls, effort: ...}}`",
        ),
    ),
    "robust-not-converged": stop(
        "the robust weights still change at the iteration limit: use `huber`, or more data",
        "the robust weights have not converged after {passes} iterations",
        "use function: huber, or check the log for a part with a different load, contact or fault",
    ),
    "outliers": care(
        "samples that a `robust` fit almost ignores",
        "outliers above five standard deviations, with low weight in the fit: {shown}",
        "check the residuals for spikes, lost samples, contact or saturation",
        traits=("log",),
    ),
    "iv-differs": care(
        "noise of the positions reaches `W`",
        "{name} differs by {sigmas:.1f} sigma from weighted least squares: position noise affects W, or the"
        " low-pass filter removes motion",
        "compare other values of filter.cutoff, and use one at which both estimators agree",
    ),
    "position-noise-too-large": care(
        "the noise assumed for `gtls` is too large",
        "the noise assumed in the positions exceeds the residual of {names}",
        "give the standard deviation of the encoders: `estimator: {{name: gtls, position: ...}}`",
    ),
    "parameters-changed": care(
        "estimator `recursive`: the parameters changed; the text gives time and names",
        "the parameters change {seconds:.1f} s after the start (in {log}){more}: earlier data do not predict"
        " later data{largest}",
        "check for a payload picked up, a contact, or friction that changes with temperature",
    ),
    "loads-open": care(
        f"the loads of friction `Fl` did not converge: {_FRICTION}",
        "the loads of friction Fl have not converged: Fl still changes by {step:.2g} per refit",
        "leave Fl out for joints with small loads",
    ),
    "loads-weak": care(
        f"the loads of friction `Fl` are predicted inaccurately: {_FRICTION}",
        "loads of friction Fl are predicted by a fit of condition {condition:.1e} (scaled columns). They are"
        " inaccurate, and the intervals of Fl do not include this",
        "use model: inverse, excite more, or leave Fl out",
    ),
    "stribeck-open": note(
        f"these data do not determine a Stribeck speed: {_FRICTION}",
        "the Stribeck speed of '{owner}' is poorly determined: {found}; speeds in the logs: {least:.3g} to"
        " {most:.3g} {unit}",
        "record slow motion to determine it, or leave Fk out of `drive:`",
    ),
    "refinement-adds-nothing": note(
        "the linear estimate is kept: see [refinement](../howto/refine.md)",
        "refinement does not improve the fit: the error of held-out windows is {before:.4g} standard"
        " deviations with the linear estimate and {after:.4g} after refinement",
        "keep the linear estimate; refinement helps if slow sampling or noise affects accelerations",
    ),
    "refinement-failed": care(
        "the motion cannot be simulated, and the linear estimate is kept: see"
        " [refinement](../howto/refine.md)",
        "the free motion cannot be simulated with the linear estimate ({error}): it is not refined",
        "use shorter windows, or improve the linear estimate first: more runs, other equilibria",
    ),
    "gain-weak": care(
        f"the logs hardly determine a drive gain: {_GAINS}",
        "the drive gain is poorly determined by these logs: {names} (sigma in percent)",
        "move these joints so that the known mass loads them, use a larger mass, or keep their gain fixed:"
        " `gains: {{unknown: [...]}}`",
    ),
    "servo-lost": care(
        f"these logs do not determine part of a PD law: {_SERVOS}",
        "not identifiable from these logs, and kept at its start: {names}",
        "a bias is seen only through known bodies: give `pd: {{bodies: known}}` if the description has good"
        " masses; a delay needs commands that move",
    ),
    "servo-weak": care(
        f"the logs hardly determine a gain of a PD law: {_SERVOS}",
        "poorly determined by these logs: {names} (sigma in percent)",
        "command larger and faster motions, or give the gain as a number under `pd:`",
    ),
    "gain-motions": care(
        f"too few motions to estimate drive gains: {_GAINS}",
        "the drive gains are estimated from {motions}: too few to show how much model errors (friction) bias"
        " them",
        "record {enough} or more different motions, each with and without the known mass; with fewer, the"
        " intervals of the gains are a lower bound",
    ),
    "gain-sign": stop(
        f"a drive gain is negative: {_GAINS}",
        "the drive gain of {names} is negative: its effort has the opposite sign of +q, or columns are"
        " swapped",
        "check sign and order of the effort columns",
        rank="signal",
        traits=("log",),
    ),
    "mass-prior": care(
        f"a part of the weighed mass is taken from priors: {_GAINS}",
        "only a part of the weighed {total:.4g} kg acts on the efforts: {priors:.3g} kg are taken from the"
        " priors of {names}; a 1 % error of these priors changes the scale by {percent:.2g} %, which is not"
        " included in the intervals",
        "weigh only bodies that load the motors (`total_mass: {{kg: ..., bodies: [...]}}`), or use a weighed"
        " payload",
    ),
    "unloaded-incomplete": care(
        "the unloaded result does not determine parameters that the loaded log depends on: see"
        " [payloads](../howto/payload.md)",
        "the result without load does not determine {names}: set to zero, which biases the payload if they"
        " act in the loaded log",
        "use the same motion as in the logs without load",
    ),
}
