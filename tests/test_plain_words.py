"""No archaic or private word is in what users read: pages, templates, messages, help, docstrings."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.test_docs import PAGES, ROOT, relative

# Words that are not used, and what is written instead.
WORDS = {
    r"foret(?:old|ells?|elling)": "predicted",
    r"tell(?:s|ing)?\b|told": "show, report",
    r"accus\w+|acquit\w*": "flagged, passed",
    r"no say": "ignores",
    r"stands? (?:under|in)\b": "is in, see",
    r"known to better than": "standard deviation below",
    r"whilst|hence|thus|hitherto|thereof|herein|wherein|therein|whereupon|nought|naught|lest": "plain words",
    r"beyond noise": "model error, or: larger than the noise",
}
_WORDS = {re.compile(rf"\b(?:{pattern})", re.IGNORECASE): instead for pattern, instead in WORDS.items()}
_ANY_WORD = re.compile(rf"\b(?:{'|'.join(WORDS)})", re.IGNORECASE)
_TEMPLATES = sorted((ROOT / "src" / "dynid").rglob("templates/*.html"))
_SOURCES = sorted((ROOT / "src" / "dynid").rglob("*.py"))


def found_in(text: str) -> list[str]:
    return [
        f"'{match[0]}' (write: {instead})"
        for word, instead in (_WORDS.items() if _ANY_WORD.search(text) else ())
        for match in word.finditer(text)
    ]


def strings(file: Path) -> Iterator[tuple[int, str]]:
    """Texts of a module with their lines: messages, help and docstrings."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.lineno, node.value


@pytest.mark.parametrize("page", [*PAGES, *_TEMPLATES], ids=relative)
def test_pages_and_templates_use_plain_words(page: Path) -> None:
    assert found_in(page.read_text(encoding="utf-8")) == []


def test_messages_help_and_docstrings_use_plain_words() -> None:
    bad = [
        f"{relative(file)}:{line}: {word}"
        for file in _SOURCES
        for line, text in strings(file)
        for word in found_in(text)
    ]
    assert bad == []
