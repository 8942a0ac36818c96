"""Messages name options on the command line, and the arguments of the same meaning in Python."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from pathlib import Path

import click
import pytest

from dynid.cli import main
from dynid.common.audience import for_python
from dynid.common.errors import InputError
from dynid.common.notices import notice
from tests.fabricated import estimate

SOURCES = sorted((Path(__file__).resolve().parents[1] / "src/dynid").rglob("*.py"))


@pytest.mark.parametrize(
    ("message", "python"),
    [
        ("map them: --column 'tau_{i}=NAME_{i}'", "map them: columns={'tau_{i}': 'NAME_{i}'}"),
        ("give --column 'q_1=b*-1' --column 'q_2=a';", "give columns={'q_1': 'b*-1', 'q_2': 'a'};"),
        ("name it t, or map it: --column t=NAME, or", "name it t, or map it: columns={'t': 'NAME'}, or"),
        ("e.g. --known finger=0 (rad or m)", "e.g. known={'finger': 0} (rad or m)"),
        ("--payload box; if not: --payload none", "payloads=['box']; if not: payloads=[]"),
        ("use --payload merge, or identify", "use payload='merge', or identify"),
        ("choose another --out", "choose another `out`"),
        ("e.g. --period 10", "e.g. period=10"),
        ("use --drop-bad-rows to drop them", "use drop_bad_rows=True to drop them"),
        ("leave out --no-collisions", "leave out collisions=False"),
        ("`dynid excite --after LOG` designs it", "`dynid excite --after LOG` designs it"),
        ("a - b, 1--2", "a - b, 1--2"),
    ],
)
def test_an_option_is_an_argument_in_python(message: str, python: str) -> None:
    assert for_python(message) == python


def test_an_error_is_worded_for_its_reader() -> None:
    error = InputError("no effort column", remedy="map it: --column 'tau_1=NAME'")
    assert str(error) == "no effort column\n  remedy: map it: columns={'tau_1': 'NAME'}"
    assert error.message == "no effort column\n  remedy: map it: --column 'tau_1=NAME'"


def test_a_summary_is_worded_for_python() -> None:
    current = notice("effort-from-current", names="I_1", also="")
    whole = replace(estimate(), warnings=(current,))
    whole = replace(whole, verdict=replace(whole.verdict, level="care", reasons=(current,)))
    for shown in (whole.summary().text, whole.summary().html):
        assert "--column" not in shown
        assert "columns={" in shown


def options() -> set[str]:
    """Options of all commands."""
    commands = [main, *main.commands.values()]
    groups = [command for command in commands if isinstance(command, click.Group)]
    commands += [inner for group in groups for inner in group.commands.values()]
    return {name for command in commands for param in command.params for name in param.opts}


def test_messages_name_options_that_exist() -> None:
    """A message outside of the commands, with an option that no command has, helps nobody."""
    known, seen = {*options(), "--help"}, 0
    for file in SOURCES:
        if "commands" in file.parts or file.name in ("cli.py", "audience.py", "compiled.py"):
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", node.value))
                assert named <= known, f"{file.name}:{node.lineno}: {sorted(named - known)}"
                seen += len(named)
    assert seen > 50
