#!/usr/bin/env python3
"""Judges the official cases of JSON Schema 2020-12 by `jsonschema`, and writes them for other validators.

    python3 schema_suite.py CASES_FILE

The cases (JSON-Schema-Test-Suite) come with the source distribution of jsonschema, which pip downloads into dist/suites
unless it is there. Every line of CASES_FILE is one group: {file, description, schema, tests: [{description, data,
valid}]}.
"""

import io
import json
import pathlib
import subprocess
import sys
import tarfile

from jsonschema import Draft202012Validator, FormatChecker
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

VERSION = "4.26.0"
SUITES = pathlib.Path(__file__).resolve().parents[2] / "dist" / "suites"
ARCHIVE = SUITES / f"jsonschema-{VERSION}.tar.gz"
TESTS = f"jsonschema-{VERSION}/json/tests/draft2020-12/"
FORMATS = ("date", "date-time", "email", "json-pointer", "time", "uri", "uuid")

# jsonschema checks these formats less closely than their standards demand.
OTHER_FORMATS = ("date-time", "email", "time")

# Addresses that the suite gives to its own shared schemas.
REMOTES = f"jsonschema-{VERSION}/json/remotes/"
HOST = "http://localhost:1234/"


def archive() -> bytes:
    if not ARCHIVE.exists():
        SUITES.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        subprocess.run([*command, "--no-binary", "jsonschema", "--dest", str(SUITES), f"jsonschema=={VERSION}"], check=True)
    return ARCHIVE.read_bytes()


def is_chosen(name: str) -> bool:
    if "/" not in name:
        return name.endswith(".json")
    return name in {f"optional/format/{each}.json" for each in FORMATS}


def read() -> tuple:
    """All groups of cases, and the registry of the suite's shared schemas."""
    groups, remotes = [], []
    with tarfile.open(fileobj=io.BytesIO(archive()), mode="r:gz") as tar:
        for member in sorted(tar.getmembers(), key=lambda each: each.name):
            name = member.name.removeprefix(TESTS)
            if not member.isfile() or not member.name.endswith(".json"):
                continue
            if member.name.startswith(REMOTES):
                uri = HOST + member.name.removeprefix(REMOTES)
                schema = json.load(tar.extractfile(member))
                remotes.append((uri, Resource.from_contents(schema, default_specification=DRAFT202012)))
            elif member.name.startswith(TESTS) and is_chosen(name):
                groups += [{"file": name, **group} for group in json.load(tar.extractfile(member))]
    return groups, Registry().with_resources(remotes)


def judge(group: dict, data, registry: Registry) -> bool:
    validator = Draft202012Validator(group["schema"], registry=registry, format_checker=checker_of(group))
    return validator.is_valid(data)


def checker_of(group: dict):
    """Formats are asserted in the cases that are about them alone."""
    if not group["file"].startswith("optional/format/"):
        return None
    return FormatChecker(formats=[each for each in FORMATS if each in FormatChecker.checkers])


def is_judged(group: dict) -> bool:
    """Checkers of some formats need packages that are not installed; those cases are written, not judged."""
    name = pathlib.PurePath(group["file"])
    if name.parent.name == "format":
        return name.stem in FormatChecker.checkers and name.stem not in OTHER_FORMATS
    # jsonschema has every vocabulary, whatever the dialect of a schema says.
    return group["description"] != "schema that uses custom metaschema with with no validation vocabulary"


def main() -> int:
    passed, failed = 0, 0
    groups, registry = read()
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        for group in groups:
            out.write(json.dumps(group) + "\n")
            for test in group["tests"] if is_judged(group) else []:
                if judge(group, test["data"], registry) == test["valid"]:
                    passed += 1
                else:
                    failed += 1
                    print(f"NOT {group['file']}: {group['description']}: {test['description']}")
    print(f"{passed} passed, {failed} failed")
    return 0 if failed == 0 and passed > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
