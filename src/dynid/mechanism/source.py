"""Robots in XML: a URDF or an MJCF, distinguished by the root element, never by the file name."""

from __future__ import annotations

from dataclasses import replace

from dynid.common.strict_yaml import BYTE_LIMIT, PathLike
from dynid.mechanism.mechanism import Mechanism
from dynid.mechanism.mjcf.mjcf import build_mjcf, mjcf_parts
from dynid.mechanism.mjcf.tree import MjcfModel, mjcf_model
from dynid.mechanism.parts import Parts
from dynid.mechanism.robot_file.scope import Scope
from dynid.mechanism.urdf.tree import LINK_LIMIT, UrdfModel, urdf_model
from dynid.mechanism.urdf.urdf import build_urdf, urdf_parts
from dynid.mechanism.xml_elements import read_elements

Source = UrdfModel | MjcfModel
SUFFIXES = (".urdf", ".xml", ".mjcf")


def read_source(file: PathLike, *, link_limit: int = LINK_LIMIT, byte_limit: int = BYTE_LIMIT) -> Source:
    """Read and check the tree of a URDF or MJCF."""
    root = read_elements(file, byte_limit=byte_limit, count_limit=link_limit)
    if root.tag == "mujoco":
        return mjcf_model(root, link_limit=link_limit, byte_limit=byte_limit)
    return urdf_model(root)


def source_parts(source: Source, scope: Scope) -> Parts:
    """Content of the source, with its dimensions in `scope`."""
    return mjcf_parts(source, scope) if isinstance(source, MjcfModel) else urdf_parts(source, scope)


def source_files(source: Source) -> tuple[str, ...]:
    """The file of a URDF or MJCF, and those that it includes."""
    inside = (one.file for one in source.root.walk()) if isinstance(source, MjcfModel) else ()
    return tuple(dict.fromkeys([source.file, *inside]))


def load_source(file: PathLike) -> Mechanism:
    """The mechanism of a URDF or MJCF alone."""
    source = read_source(file)
    robot = build_mjcf(source, {}) if isinstance(source, MjcfModel) else build_urdf(source, {})
    return replace(robot, sources=source_files(source))
