"""User text for a terminal: characters that would control the terminal are shown as escapes."""

from __future__ import annotations

import unicodedata

# Control and format characters (escape sequences, writing direction), lone surrogates, other line ends.
_STEERING = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
_KEPT = "\n\t"


def printable(text: str) -> str:
    """`text` without characters that move the cursor, set colours, rename windows or change the direction."""
    if text.isprintable():
        return text
    return "".join(_escaped(c) if _steers(c) else c for c in text)


def _steers(character: str) -> bool:
    return character not in _KEPT and unicodedata.category(character) in _STEERING


def _escaped(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
