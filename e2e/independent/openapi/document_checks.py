#!/usr/bin/env python3
"""Judges the OpenAPI document of an installation with openapi-spec-validator and with Python's regular expressions.

    document_checks.py http://127.0.0.1:8080

The document is valid OpenAPI 3.1; every operation has an id of its own and a documented success; every pattern
compiles in Python; values beside a pattern match it; identifiers of every installation match each pattern of
identifiers. Then one fault is made in the document for each of these checks, which has to find it.
"""
import argparse
import json
import pathlib
import re
import sys
import uuid

from openapi_spec_validator import OpenAPIV31SpecValidator

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from api_document import WELL_KNOWN_IDS, fetch_document, load, operations_of, walk_schemas  # noqa: E402
from checks import Checks  # noqa: E402

SAMPLE_IDS = (str(uuid.UUID(int=0x1B4E28BA2FA14FD2883F0016D3CCA427)), "0196f3a1-7c1e-7000-8000-0123456789ab")


def pattern_schemas(document):
    """Schemas with a pattern. A member called `pattern` of another object, such as a property, is not one."""
    for pointer, value in walk_schemas(document):
        if isinstance(value.get("pattern"), str) and not pointer.endswith("/properties"):
            yield pointer, value


def compiled(pattern):
    try:
        return re.compile(pattern)
    except re.error:
        return None


def pattern_faults(document):
    """Patterns that Python refuses, by pattern, with the first place of each."""
    faults = {}
    for pointer, schema in pattern_schemas(document):
        try:
            re.compile(schema["pattern"])
        except re.error as error:
            faults.setdefault(schema["pattern"], f"{schema['pattern']}: {error}, at #{pointer}")
    return list(faults.values())


def shown_values(schema):
    """Texts beside a pattern: its examples, default or enumerated values."""
    values = [*schema.get("examples", []), *schema.get("enum", [])]
    values += [schema[name] for name in ("example", "default", "const") if name in schema]
    return [value for value in values if isinstance(value, str)]


def example_faults(document):
    """Examples, defaults and enumerated values that the pattern beside them refuses."""
    for pointer, schema in pattern_schemas(document):
        pattern = compiled(schema["pattern"])
        for value in shown_values(schema):
            if pattern and not pattern.search(value):
                yield f"{value!r} does not match {schema['pattern']}, at #{pointer}"


def identifier_faults(document):
    """Patterns that take identifiers as installations draw them, and refuse one that every installation has."""
    faults = {}
    for pointer, schema in pattern_schemas(document):
        pattern = compiled(schema["pattern"])
        if pattern and all(pattern.search(value) for value in SAMPLE_IDS):
            refused = [f"{value} ({name})" for name, value in WELL_KNOWN_IDS.items() if not pattern.search(value)]
            if refused:
                faults.setdefault(schema["pattern"], f"{refused[0]} does not match {schema['pattern']}, at #{pointer}")
    return list(faults.values())


def operation_id_faults(operations):
    """Operations without an id, ids that are no name in most languages, ids given twice (whatever their case)."""
    owners = {}
    for operation in operations:
        given = operation.value.get("operationId")
        if given is None:
            yield f"{operation.name} has no operationId"
        elif not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", given):
            yield f"{operation.name}: {given} is not a name"
        elif owners.setdefault(given.lower(), operation.name) != operation.name:
            yield f"{operation.name} and {owners[given.lower()]} are both called {given}"


def success_faults(operations):
    """Operations without a documented success. One that is not implemented says so by 501."""
    for operation in operations:
        if not any(re.match("[23]|501", status) for status in operation.value["responses"]):
            yield f"{operation.name} documents {', '.join(operation.value['responses'])}"


def validity_faults(document):
    for error in OpenAPIV31SpecValidator(document).iter_errors():
        yield f"{error.message[:300]}, at #/{'/'.join(map(str, error.absolute_path))}"


JUDGES = {
    "openapi-spec-validator accepts the document": validity_faults,
    "every operation has an id of its own": lambda document: operation_id_faults(operations_of(document)),
    "every operation documents a success": lambda document: success_faults(operations_of(document)),
    "every pattern compiles in Python": pattern_faults,
    "examples, defaults and enumerated values match their patterns": example_faults,
    "the identifiers of every installation match the patterns of identifiers": identifier_faults,
}


def spoilt_documents(document):
    """The document with one fault for each check: (the check that has to find it, a part of its message, the document)."""
    validity, ids, success, compiles, examples, identifiers = JUDGES

    def spoilt(judge, words, change):
        copy = json.loads(json.dumps(document))
        change(copy, operations_of(copy))
        return judge, words, copy

    def with_pattern(pattern, **others):
        parameter = {"name": "spoilt", "in": "query", "schema": {"type": "string", "pattern": pattern, **others}}
        return lambda _, operations: operations[0].value.setdefault("parameters", []).append(parameter)

    strict = "^[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$"
    yield spoilt(validity, "is a required property", lambda copy, _: copy.pop("info"))
    yield spoilt(ids, "no operationId", lambda _, operations: operations[0].value.pop("operationId", None))
    yield spoilt(ids, "both called same", lambda _, two: [one.value.update(operationId="same") for one in two[:2]])
    yield spoilt(ids, "is not a name", lambda _, operations: operations[0].value.update(operationId="get /a"))
    yield spoilt(success, "documents default", lambda _, operations: operations[0].value.update(responses={"default": {}}))
    yield spoilt(compiles, r"bad escape \P", with_pattern(r"^\P{Cc}*$"))
    yield spoilt(examples, "'A' does not match ^[a-z]$", with_pattern("^[a-z]$", examples=["A"]))
    yield spoilt(identifiers, "System organisation", with_pattern(strict))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("base_url")
    document = load(fetch_document(parser.parse_args().base_url))
    checks = Checks()
    checks.outcome(f"the document has operations ({len(operations_of(document))})", len(operations_of(document)) > 100)
    for what, judge in JUDGES.items():
        checks.nothing(what, list(judge(document)))
    for what, words, copy in spoilt_documents(document):
        found = list(JUDGES[what](copy))
        checks.outcome(f"finds a document with a fault ({words})", any(words in fault for fault in found), found[:3])
    checks.close()


if __name__ == "__main__":
    main()
