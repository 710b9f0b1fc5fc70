# SPDX-License-Identifier: Apache-2.0
"""``dutperf plan``: checks a plan without measuring, and splits it into jobs that are independent of each other."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer
import yaml

from dutperf.cli import options, plan_file
from dutperf.cli.errors import reported
from dutperf.cli.help_screen import command_of, group
from dutperf.cli.output import terminal
from dutperf.procedures import every, find
from dutperf.setup import yaml_text
from dutperf.setup.conditions import Conditions, WithFrameSizes
from dutperf.setup.configuration import ConfigError
from dutperf.setup.size_mix import is_mix

app = group("plan", no_args_is_help=True, help="Check a plan, or split it into jobs.")

PlanFile = Annotated[Path, typer.Argument(metavar="PLAN.yaml", help="The plan: a YAML file.")]
Into = Annotated[Path, typer.Option("--into", metavar="DIR", help="Directory for the plans of the jobs; a new one.")]
DIVIDED = ((("frame-size", "frame-sizes"), ""), (("networks",), "networks"), (("foreground",), "foreground"))
"""Options whose values are measured one by one: their keys in a plan, and what precedes a value in a job's name."""


@command_of(app, "check")
def check(plan: PlanFile, as_json: options.Json = False) -> None:
    """Check a plan, and list its measurements in their order. Nothing is measured."""
    with reported():
        planned = plan_file.load(plan)
        planned.source.check()
        names = [(definition.name, _frame_sizes(conditions)) for definition, conditions in planned.wanted]
        if as_json:
            typer.echo(json.dumps([{"procedure": name, "frame_sizes": sizes} for name, sizes in names]))
            return
        for name, sizes in names:
            terminal.line(
                f"{name}: {', '.join(map(str, sizes)) or 'frame sizes of the standard'}" if sizes is not None else name
            )


def _frame_sizes(conditions: Conditions) -> tuple[int, ...] | None:
    """None: they are not chosen."""
    return conditions.frame_sizes if isinstance(conditions, WithFrameSizes) else None


@command_of(app, "split")
def split(plan: PlanFile, into: Into) -> None:
    """Write a plan for each frame size and traffic mix: jobs for several testbeds, or for a scheduler.

    What is measured in all jobs together is what the plan measures. A job measures the throughput that its other
    procedures need, so none waits for another.
    """
    with reported():
        plan_file.load(plan)
        mapping: Any = yaml_text.read(plan.read_text(encoding="utf-8"))[0]
        jobs = {f"{plan.stem}-{name}": job for name, job in jobs_of(mapping, plan.parent)}
        with TemporaryDirectory() as checked:
            for job in jobs.values():
                plan_file.load(_written(job, Path(checked) / "job.yaml"))
        into.mkdir(parents=True, exist_ok=True)
        if any(into.iterdir()):
            raise ConfigError(f"{into} is not empty", "--into")
        for name, job in jobs.items():
            terminal.line(str(_written(job, into / f"{name}.yaml")))


def _written(job: Mapping[str, Any], file: Path) -> Path:
    file.write_text(yaml.safe_dump(job, sort_keys=False), encoding="utf-8")
    return file


def jobs_of(plan: Mapping[str, Any], directory: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The plans of the jobs with their names: one for each frame size and mix. A file that the plan names relative to
    ``directory`` is absolute there."""
    jobs: list[tuple[list[str], dict[str, Any]]] = [([], _with_absolute_paths(plan, directory))]
    for keys, prefix in DIVIDED:
        jobs = [one for names, job in jobs for one in _divided(names, job, keys, prefix)]
    for names, job in jobs:
        yield "-".join(names) or "all", job


def _with_absolute_paths(plan: Mapping[str, Any], directory: Path) -> dict[str, Any]:
    offered = {key: one for definition in every() for key, one in plan_file.options_of_procedure(definition).items()}
    paths = {"config", *(key for key, one in offered.items() if one.is_path)}

    def absolute(members: Mapping[str, Any]) -> dict[str, Any]:
        return {key: str((directory / str(one)).resolve()) if key in paths else one for key, one in members.items()}

    measured = {name: own and absolute(own) for name, own in plan["procedures"].items()}
    of_all = {"all": plan["all"] and absolute(plan["all"])} if "all" in plan else {}
    return absolute(plan) | of_all | {"procedures": measured}


def _divided(
    names: list[str], job: dict[str, Any], keys: Sequence[str], prefix: str
) -> Iterator[tuple[list[str], dict[str, Any]]]:
    shared = dict(job.get("all") or {})
    key = next((one for one in keys if one in shared), "")
    values = _listed(shared.get(key))
    has_own = any(one in (own or {}) for own in job["procedures"].values() for one in keys)
    varied = {name: own for name, own in job["procedures"].items() if key in plan_file.options_of_procedure(find(name))}
    if len(values) < 2 or has_own or not varied:  # a procedure with values of its own is not divided
        yield names, job
        return
    measured = job["procedures"]  # what does not vary is measured in the first job alone
    for value in values:
        label = re.sub(r"[^A-Za-z0-9.]+", "to", str(value))
        yield [*names, f"{prefix}{label}"], {**job, "all": {**shared, key: value}, "procedures": measured}
        measured = varied


def _listed(value: object) -> list[Any]:
    if isinstance(value, str) and is_mix(value):
        return [value]  # its commas are its own
    if isinstance(value, str):
        return [part.strip() for part in value.split(",")]
    return list(value) if isinstance(value, list) else []
