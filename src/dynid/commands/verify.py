"""`dynid verify`: whether a result, its inputs and the versions are as they were."""

from __future__ import annotations

from pathlib import Path

import click

from dynid.common.errors import InputError
from dynid.report.terminal import printable


@click.command(short_help="Check that a result and its inputs are unchanged.")
@click.argument("result", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def verify(result: Path, as_json: bool) -> None:
    """Compare a result (result.json or its folder) with its digests, its inputs and the versions in use.

    Exit codes: 0 intact; 2 something differs.
    """
    from dataclasses import asdict

    from dynid.report.json_file import json_text
    from dynid.report.seal import verify as verified

    verdict = verified(result)
    if as_json:
        click.echo(json_text({"intact": verdict.intact, **asdict(verdict)}), nl=False)
    else:
        for label, lines in (
            ("same", verdict.checked),
            ("not checked", verdict.unchecked),
            ("differs", verdict.differences),
        ):
            for line in lines:
                click.echo(f"{label}: {printable(line)}")
        click.echo("intact" if verdict.intact else "this result is not intact")
    if not verdict.intact:
        click.get_current_context().exit(InputError.exit_code)
