"""Names of parameters in plain words: beside a name in a table, and behind a name in a sentence."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from dynid.base.grouping import listed, spoken
from dynid.mechanism.drive_terms import drive_term
from dynid.mechanism.inertia import SYMBOLS
from dynid.mechanism.parameters import Parameter

if TYPE_CHECKING:
    from markupsafe import Markup

    from dynid.statistics.estimate import ParameterEstimate

_MOST = 2  # owners of grouped parameters that are named


def owner_of(name: str) -> str:
    """The body or joint in a parameter's name: `ZZ_link2_R` belongs to `link2`."""
    owner = name.partition("_")[2].removesuffix("_R")
    return owner or "extra terms"


def in_words(name: str, grouping: str = "") -> str:
    """`inertia of link3 about x, with parts of link4 and link5`; empty for a name that no table explains.

    Args:
        name: Of a base parameter.
        grouping: Its relation, empty if nothing is grouped into it.
    """
    symbol, owner = name.partition("_")[0], owner_of(name)
    entry, per_mass, _ = symbol.partition("/")
    kind = "inertial" if entry in SYMBOLS else "drive"
    text = spoken(Parameter(name, entry, owner, "", kind)).removeprefix("the ")
    if text == name:
        return ""
    if per_mass:
        text += ", per kilogram"
    members = [word for word in grouping.split() if _is_parameter(word)]
    others = [other for other in dict.fromkeys(map(owner_of, members)) if other != owner]
    if others:
        text += f", with parts of {listed(others, _MOST)}"
    return text + (", with other entries of it" if members[2:] and not others else "")


def _is_parameter(word: str) -> bool:
    symbol, _, owner = word.partition("_")
    return bool(owner) and (symbol in SYMBOLS or drive_term(symbol) is not None)


def meanings(parameters: Iterable[ParameterEstimate]) -> dict[str, str]:
    """Name -> its words, of those that have words."""
    words = {p.name: in_words(p.name, p.grouping) for p in parameters}
    return {name: text for name, text in words.items() if text}


def named(text: str, words: Mapping[str, str]) -> dict[str, str]:
    """The parameters that a text names, with their words."""
    seen = set(re.split(r"[\s,;:()]+", text))
    return {name: meaning for name, meaning in words.items() if name in seen}


def explained(shown: Markup, words: Mapping[str, str]) -> Markup:
    """Escaped text with the words of each parameter behind its name, shown on hover."""
    from markupsafe import Markup, escape

    found = named(re.sub(r"<[^>]*>", " ", str(shown)), {str(escape(name)): words[name] for name in words})
    if not found:
        return shown
    pattern = "|".join(map(re.escape, sorted(found, key=len, reverse=True)))
    mark = Markup('<abbr title="{}">{}</abbr>')

    def with_title(match: re.Match[str]) -> str:
        return str(mark.format(found[match[0]], Markup(match[0])))  # noqa: S704 (a part of escaped text)

    return Markup(re.sub(rf"(?<![\w/<&])(?:{pattern})(?![\w/>;=])", with_title, str(shown)))  # noqa: S704
