"""Messages to the user that do not stop the work: the `warnings` of a result."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Notice:
    """One warning: a stable code, what was found (with values), and what to do about it."""

    code: str
    text: str
    remedy: str = ""
