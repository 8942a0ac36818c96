"""Names and texts of a robot as parts of programs: whatever they contain, they break nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable
from keyword import iskeyword

_SIGNS = {"+": "_plus", "-": "_minus"}
_ODD = re.compile(r"[^A-Za-z0-9_]")
# A comment keeps what cannot end it: no star, backslash, quote, question mark (trigraphs), line end.
_LOUD = re.compile(r"[^A-Za-z0-9 _.,:;=+%()\[\]<>^/&|#$~{}-]")
_LONGEST = 24  # of a robot's name: all function names stay below the 63 characters that C99 compares
# A line of every file; what is behind the colon is replaced by the figure once the file was read back.
CERTIFICATE = "certificate: CERTIFICATE-OF-DYNID"
_TAKEN = ("math", "numpy")  # files that the code itself includes or imports


def identifier(name: str, longest: int = _LONGEST) -> str:
    """A valid identifier of C and Python for any name."""
    text = _ODD.sub("_", name)[:longest].strip("_")
    if not text:
        return "robot"
    if not text[0].isalpha() or iskeyword(text) or text in _TAKEN:
        return f"robot_{text}"
    return text


def parameter_names(names: Iterable[str]) -> list[str]:
    """Unique identifiers of parameters: `Fv+_sx` becomes `Fv_plus_sx`."""
    taken: list[str] = []
    for name in names:
        symbol, _, owner = name.partition("_")
        for sign, word in _SIGNS.items():
            symbol = symbol.replace(sign, word)
        text = _ODD.sub("_", f"{symbol}_{owner}" if owner else symbol)[:48]
        unique, k = text, 2
        while unique in taken:
            unique, k = f"{text}_{k}", k + 1
        taken.append(unique)
    return taken


def comment(text: str) -> str:
    """Text for a comment or docstring, on one line."""
    return _LOUD.sub("_", text)
