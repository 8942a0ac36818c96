"""Data frames of pandas, which is not a dependency."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from dynid.common.errors import InputError


def pandas() -> Any:
    """The package pandas, or an error that names it."""
    try:
        return import_module("pandas")
    except ImportError:
        raise InputError("pandas is not installed", remedy="pip install pandas") from None
