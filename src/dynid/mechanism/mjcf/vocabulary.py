"""What an MJCF may contain: known and ignored elements, typing errors, paths of meshes."""

from __future__ import annotations

from dynid.common.notices import Notice
from dynid.mechanism.urdf.vocabulary import check_path, unknown_parts, words
from dynid.mechanism.xml_elements import Element

ACTUATORS = words(
    "general motor position velocity intvelocity orientation pid damper cylinder muscle adhesion",
    "dcmotor plugin",
)
ORIENTATIONS = ("quat", "axisangle", "xyaxes", "zaxis", "euler")
# Elements that generate bodies: the generated bodies must be written explicitly.
GENERATORS = ("composite", "flexcomp", "replicate", "attach")
_PLACE = ("name", "pos", *ORIENTATIONS)
_IN_BODY = words("body inertial joint freejoint geom site camera light frame plugin", *GENERATORS)
_CHILDREN = {
    "mujoco": words(
        "compiler option size statistic visual default extension asset worldbody deformable contact",
        "tendon equality actuator sensor custom keyframe",
    ),
    "worldbody": _IN_BODY,
    "body": _IN_BODY,
    "frame": _IN_BODY,
    "default": words(
        "default mesh texture material joint geom site camera light pair equality tendon", *ACTUATORS
    ),
    "equality": words("connect weld joint tendon flex flexstrain flexvert distance"),
    "actuator": ACTUATORS,
    "keyframe": ("key",),
    "compiler": ("lengthrange",),
    "option": ("flag",),
}
_JOINT = words(
    "name class type group pos axis springdamper limited actuatorfrclimited solreflimit solimplimit",
    "solreffriction solimpfriction stiffness range actuatorfrcrange actuatorgravcomp margin ref springref",
    "armature damping frictionloss user springyield",
)
_EQUALITY = words("name class active solref solimp")
_ACTUATOR = words(
    "name class group joint jointinparent tendon site refsite body cranksite slidersite cranklength gear",
    "ctrllimited ctrlrange forcelimited forcerange actlimited actrange lengthrange user delay nsample",
    "interp armature damping actdim actearly dyntype dynprm gaintype gainprm biastype biasprm kp kv ki",
    "dampratio timeconst inheritrange area bias diameter scale range force lmin lmax vmax fpmax fvmax",
    "tausmooth plugin instance gain input ffrange velrange posrange imax slewmax",
)
_ATTRIBUTES = {
    "compiler": words(
        "autolimits boundmass boundinertia settotalmass balanceinertia strippath coordinate angle",
        "fitaabb eulerseq meshdir texturedir assetdir discardvisual usethread fusestatic inertiafromgeom",
        "inertiagrouprange alignfree saveinertial conflict passthrough savecanonical savecompiled",
    ),
    "default": ("class",),
    "body": words(*_PLACE, "childclass mocap gravcomp user sleep"),
    "frame": (*_PLACE, "childclass"),
    "freejoint": ("name", "group", "align"),
    "inertial": words("pos mass diaginertia fullinertia", *ORIENTATIONS),
    "site": words(*_PLACE, "class type group material size fromto rgba user mesh"),
    "body/joint": _JOINT,
    "frame/joint": _JOINT,
    "default/joint": _JOINT,
    "equality/connect": words(*_EQUALITY, "body1 body2 anchor site1 site2"),
    "equality/weld": words(*_EQUALITY, "body1 body2 relpose anchor site1 site2 torquescale"),
    "equality/joint": words(*_EQUALITY, "joint1 joint2 polycoef"),
    "key": words("name time qpos qvel act mpos mquat ctrl plastic"),
    # Control attributes of a motor are not checked: an unknown one is not reported as a typing error.
    "actuator/motor": _ACTUATOR,
    "actuator/position": _ACTUATOR,
    "actuator/velocity": _ACTUATOR,
    "actuator/general": _ACTUATOR,
}


def unknown_mjcf_parts(root: Element) -> tuple[Notice, ...]:
    """Notices about elements and attributes that MJCF does not define."""
    return unknown_parts(root, _CHILDREN, _ATTRIBUTES)


def check_assets(root: Element) -> None:
    """Refuse paths of meshes, textures and the like that leave the model's folder; none is opened."""
    folders: dict[str, str] = {}
    for compiler in root.children:
        if compiler.tag == "compiler":
            folders |= {key: value for key, value in compiler.attributes.items() if key.endswith("dir")}
            stripped = compiler.attributes.get("strippath") == "true"
            folders |= {"strip": "yes"} if stripped else {}
    both = folders.get("assetdir", "")
    for section in root.children:
        for element in section.walk() if section.tag == "asset" else ():
            folder = folders.get("texturedir" if element.tag == "texture" else "meshdir", both)
            for key, name in element.attributes.items():
                if key.startswith("file") and name:
                    bare = name.replace("\\", "/").rsplit("/", 1)[-1] if "strip" in folders else name
                    check_path(element, f"{folder.rstrip('/')}/{bare}" if folder else bare, root.file)
