"""Versions of dynid and of the packages that it uses."""

from __future__ import annotations

from functools import cache


@cache
def version_of(package: str = "dynid") -> str:
    """Version of an installed package; ImportError where there is none of this name."""
    from importlib.metadata import version  # takes longer to import than a short command runs

    return version(package)
