"""The reference page of all warnings: `python -m dynid.common.catalogue > docs/reference/warnings.md`."""

from __future__ import annotations

from collections.abc import Iterator

from dynid.common.catalogue import MEANING, STAGES

_HEAD = """# Warnings

Each warning has a code, a severity, a text with numbers and names, and usually a remedy. Warnings come first in the summary and the report, and are listed under `warnings` in `result.json`. This page lists all codes, in the order of the processing steps. Codes and severities are stable; texts are not.

| severity | consequence |
|---|---|
"""  # noqa: E501


def page() -> str:
    """The page as Markdown."""
    severities = "\n".join(f"| `{severity}` | {meaning} |" for severity, meaning in MEANING.items())
    return "\n".join([_HEAD + severities, *_tables()]) + "\n"


def _tables() -> Iterator[str]:
    for stage, entries in STAGES.items():
        yield f"\n## {stage}\n\n| code | severity | meaning, and what to do first |\n|---|---|---|"
        for code, entry in entries.items():
            yield f"| `{code}` | {entry.severity} | {entry.meaning} |"


if __name__ == "__main__":
    print(page(), end="")
