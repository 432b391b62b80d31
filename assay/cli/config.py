"""`assay config`: the settings in force and where each comes from."""

from __future__ import annotations

import re
from typing import Any, Final

import typer

from assay.cli.common import print_json, print_table
from assay.cli.options import JsonOption
from assay.settings import ENVIRONMENT, config_path, resolve

_USER: Final = re.compile(r"(\b[a-zA-Z][a-zA-Z0-9+.-]*://)[^/\s,@?#]*@")
"""A scheme, and a user with or without a password: what is shown here is sent to others who help."""

app = typer.Typer(no_args_is_help=True, help="Settings: default < file < environment < flag.")


@app.command("show", epilog='Example: assay config show --json  ->  {"settings": {NAME: {"value", "source"}}}')
def show(as_json: JsonOption = False) -> None:
    """List every setting, its value and its source."""
    found = resolve()
    values = {name: _shown(value) for name, value in found.settings.model_dump(mode="json").items()}
    if as_json:
        print_json({"settings": {n: {"value": v, "source": found.sources[n]} for n, v in values.items()}})
        return
    rows = [(n, "-" if v is None else v, found.sources[n], ENVIRONMENT[n]) for n, v in values.items()]
    print_table(f"Settings ({config_path()})", ["setting", "value", "source", "variable"], rows)


def _shown(value: Any) -> Any:
    """A value as others may see it: what a URL has before its host may hold a password."""
    return _USER.sub(r"\1***@", value) if isinstance(value, str) else value


@app.command("validate", epilog='Example: assay config validate --json  ->  {"valid": true, "file": ...}')
def validate(as_json: JsonOption = False) -> None:
    """Check the configuration file and the environment; prints nothing when all is well, unless asked for JSON."""
    resolve()
    if as_json:
        print_json({"valid": True, "file": config_path()})
