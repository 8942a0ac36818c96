"""Warnings about the physical consistency and the scale of a result."""

from __future__ import annotations

from dynid.common.catalogue.entry import care, note, stop

_READ = "see [physically consistent parameters](../howto/consistent.md#read-the-warnings)"

PHYSICS = {
    "not-physical": stop(
        f"no rigid bodies have these base parameters, beyond their sigma: {_READ}",
        "these base parameters are not physically consistent: the closest consistent set is {rms:.2g} sigma"
        " away (rms over {count} parameters)",
        "use {change}, and check for missing model terms before using single parameters",
        rank="symptom",
        traits=("impossible",),
    ),
    "rotor-not-felt": care(
        f"the efforts contain no rotor inertia: {_READ}",
        "rotor inertia comes out negative at {names} and positive at no joint: a torque sensor on the link"
        " side does not measure the rotor",
        "remove Ia from `drive:` if a torque sensor gives the effort; else check drive gain and delay",
        traits=("impossible",),
    ),
    "not-consistent": stop(
        f"no physically consistent parameters were found: {_READ}",
        "{status}: {reason}. The parameters shown are those of the linear fit",
        "give priors or `mass` (an upper limit in kg), and check known values, ties and bounds",
        traits=("impossible",),
        standard=(
            "no standard set, {status}: {reason}",
            "give priors or `mass` (an upper limit in kg), and check known values, ties and bounds",
        ),
    ),
    "consistency-costs": care(
        f"physically consistent parameters fit the data worse: {_READ}",
        "physically consistent parameters fit the data {percent:.1f} % worse than unconstrained ones: rigid"
        " bodies and these drive terms do not explain all of the data",
        "compare friction models, check delay and effort scale, or give a larger `spread`",
    ),
    "at-bound": note(
        f"parameters at the lower bound zero: {_READ}",
        "{names}: at the lower bound zero; sigma does not account for the bound",
        "check for a missing friction term, a delay, or efforts measured on the link side",
    ),
    "at-edge": care(
        f"bodies at the limit of physical consistency: {_READ}",
        "{names}: at the limit of physical consistency (a flat or massless body)",
        "excite these links more, or give a `margin`",
    ),
    "generic-prior": note(
        f"bodies without prior follow a generic body where the data give no information: {_READ}",
        "no prior for {names}: generic bodies are used where the data give no information",
        "give them a prior (URDF inertial, or `bodies:`)",
        traits=("parameters",),
    ),
    "placeholder-prior": care(
        f"all priors are the same body: {_READ}",
        "all {count} priors are the same body of {mass:g} kg: probably placeholders",
        "do not use entries `from: prior`; give true values",
    ),
    "scale-differs": stop(
        "all masses differ from their priors by the same large factor: check drive gains and units, or"
        " identify the [gains](../howto/drive_gains.md). One rounded mass for all bodies (1 kg per link) is a"
        " placeholder and is not compared",
        "inertial parameters are {factor:.3g} times their priors (median of {count} accurate ones){unit}",
        "check drive gains, gear ratios and units of the efforts (`columns: {{tau_1: {{unit:"
        " ...}}}}`): without a known mass the scale is not identifiable; use runs with a weighed payload:"
        " `gains: all`",
        rank="part",
        traits=("log",),
    ),
    "scale-implausible": stop(
        "the masses are implausible for a robot of this size: most likely the efforts are in another unit"
        " (mA, N mm, kN). The size is that of the links, including loops and rods; the travel of prismatic"
        " joints only widens the allowed range",
        "these parameters are too {size} for a robot {reach:.2g} m long (mass over length cubed {density:.2g}"
        " kg/m^3; robots have 0.4 to 50){unit}",
        "check the unit of the efforts (`columns: {{tau_1: {{unit: ...}}}}`), gear ratios and gains:"
        " the fit does not depend on the scale",
        rank="part",
        traits=("log",),
        limits=(
            "the efforts are {times:.3g} times what the drives of the description can give (middle of all"
            " drives with a limit){unit}",
            "check the unit of the efforts (`columns: {{tau_1: {{unit: ...}}}}`), and `limits:` of the"
            " description: the fit does not depend on the scale",
        ),
        single=(
            "the effort of '{effort}' seems to be in {unit}, those of the others not",
            "give its unit in the experiment file: {change}",
        ),
        part=(
            "the efforts of the {what} joints seem to be in {unit}, those of the others not",
            "give their unit in the experiment file: {change}",
        ),
    ),
    "differs-from-description": note(
        "single parameters with small sigma differ from their priors: by a factor of two, by 5 sigma and by"
        " 5 % of an effort. Check the inertials of the description, a missing tool, gravity",
        "well-determined parameters differ from the description: {shown}{more}; the largest difference is"
        " {percent:.0f} % of an effort",
        "check the inertial values of the description (missing tool, wrong frame of a centre of mass, unit);"
        " if they are right, check gravity, joint zeros and drive gains",
        traits=("parameters",),
    ),
}
