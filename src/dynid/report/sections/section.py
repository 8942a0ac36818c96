"""Content of a section of the report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markupsafe import Markup


@dataclass(frozen=True)
class Section:
    """One part of the page: `anchor` for links, `title` for the contents, `body` escaped HTML."""

    anchor: str
    title: str
    body: Markup
