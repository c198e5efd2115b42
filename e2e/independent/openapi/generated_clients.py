#!/usr/bin/env python3
"""Generates a Python client with each generator, imports all of it and performs a journey from sign-in to an inclusion proof.

    generated_clients.py http://127.0.0.1:8080 --email admin@... --password-file FILE
        [--openapi-generator openapi-generator-cli-7.25.0.jar] [--keep FOLDER]

Without the jar, or without Java, openapi-generator is reported as skipped.
"""
import argparse
import importlib
import json
import os
import pathlib
import pkgutil
import shutil
import subprocess
import sys
import tempfile
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from api_document import fetch_document, load, operations_of  # noqa: E402
from checks import Checks  # noqa: E402
from client_walk import walk  # noqa: E402
from openapi_generator_adapter import OpenApiGeneratorClient  # noqa: E402
from openapi_python_client_adapter import OpenApiPythonClient  # noqa: E402

GENERATORS = (OpenApiPythonClient, OpenApiGeneratorClient)


def generate(checks, generator, document_file, folder, options):
    """Runs a generator; True when it ended well and refused no part of the document."""
    arguments = generator.command(document_file, folder, options)
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=180, check=False)
    output = (done.stdout + done.stderr).strip()
    return checks.outcome(
        f"{generator.name} generates a client", done.returncode == 0, f"exit code {done.returncode}\n{shortened(output)}"
    )


def shortened(output, lines=40, width=240):
    """The last lines of a generator's output, which contain its error."""
    told = [line[:width] for line in output.splitlines() if line.strip()]
    return "\n".join(f"      {line}" for line in told[-lines:])


def modules_of(package):
    yield package.__name__
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        yield found.name


def import_all(checks, generator, operations):
    """Imports every module of a generated package; those that cannot be imported are faults."""
    faults, count = [], 0
    for name in modules_of(importlib.import_module(generator.package)):
        try:
            importlib.import_module(name)
            count += 1
        except Exception as error:  # generated code may fail in any way; each failure is counted as a fault
            reason = generator.upstream_fault(name, error, operations)
            if reason:
                print(f"left out: {name}: {reason}")
            else:
                faults.append(f"{name}: {type(error).__name__}: {error}")
    checks.nothing(f"every module of the client can be imported ({count})", faults)
    return not faults


def missing_operations(client, operations):
    return [one.name for one in operations if not client.has(one.method, one.path)]


def run(checks, generator, document_file, folder, options):
    reason = generator.left_out(options)
    if reason:
        print(f"left out: {generator.name}: {reason}")
        return
    if not generate(checks, generator, document_file, folder, options):
        return
    importlib.invalidate_caches()
    document = load(pathlib.Path(document_file).read_bytes())
    operations = operations_of(document)
    if not import_all(checks, generator, operations):
        return
    client = generator(options.base_url)
    checks.nothing("the client has every operation of the document", missing_operations(client, operations))
    try:
        walk(checks, client, document, options.email, options.password)
    except Exception as error:  # whatever stops the walk is one failed check, and the next generator still has its turn
        traceback.print_exc(file=sys.stdout)
        checks.outcome(f"the walk with {generator.name} comes to its end", False, f"{type(error).__name__}: {error}")


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("base_url")
    parser.add_argument("--email", required=True)
    parser.add_argument("--password-file", required=True)
    parser.add_argument("--openapi-generator", help="file of openapi-generator-cli")
    parser.add_argument("--document", help="a file instead of the document that the gateway serves")
    parser.add_argument("--keep", help="folder that keeps the generated code")
    options = parser.parse_args()
    with open(options.password_file, encoding="utf-8") as file:
        options.password = file.read().strip()
    return options


def main():
    options = parse_options()
    folder = options.keep or tempfile.mkdtemp(prefix="chancery-clients-")
    try:
        os.makedirs(folder, exist_ok=True)
        document = pathlib.Path(options.document).read_bytes() if options.document else fetch_document(options.base_url)
        document_file = os.path.join(folder, "openapi.json")
        pathlib.Path(document_file).write_text(json.dumps(load(document)), encoding="utf-8")
        sys.path.insert(0, folder)
        checks = Checks()
        for generator in GENERATORS:
            print(f"-- {generator.name}")
            run(checks, generator, document_file, folder, options)
        checks.close()
    finally:
        if not options.keep:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
