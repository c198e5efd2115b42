#!/usr/bin/env python3
"""Calls every operation of the document with data that schemathesis makes up, right and wrong, and judges the answers.

    fuzz.py http://127.0.0.1:8080 [--email admin@... --password-file FILE] [--seconds 60] [--seed 17] [--log FILE]

No 5xx but 501 and 503, no undocumented status or media type, no body against its schema. Without an account nobody is
signed in. Changes the installation: run it against one that is thrown away.
"""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from api_document import fetch_document, load, operations_of
from checks import Checks
from fuzz_report import print_fault, read_events
from fuzz_settings import CHECKS, LEFT_OUT, known_values, settings_text, sign_in

HOOKS = pathlib.Path(__file__).resolve().parent / "fuzz_hooks.py"


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("base_url")
    parser.add_argument("--email")
    parser.add_argument("--password-file")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--seed", type=int, default=17)
    parser.add_argument("--examples", type=int, default=15, help="at most so many of an operation in one round")
    parser.add_argument("--phases", default="coverage,fuzzing", help="of schemathesis; fuzzing fills the time that is left")
    parser.add_argument("--log", help="log of the services, searched for the traces of failed calls")
    parser.add_argument("--document", help="a file instead of the document that the gateway serves")
    parser.add_argument("--keep", help="folder that keeps what schemathesis wrote")
    return parser.parse_args()


def token_of(options):
    if not options.email:
        return None
    with open(options.password_file, encoding="utf-8") as file:
        return sign_in(options.base_url, options.email, file.read().strip())


def call_operations(options, folder, document, token):
    """Runs schemathesis over a document; returns its report, or None with what it printed."""
    operations = operations_of(document)
    document_file, settings_file = os.path.join(folder, "openapi.json"), os.path.join(folder, "schemathesis.toml")
    events = os.path.join(folder, "events.ndjson")
    pathlib.Path(document_file).write_text(json.dumps(document), encoding="utf-8")
    settings = settings_text(operations, known_values(options.base_url, token), token, str(HOOKS))
    with open(os.open(settings_file, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.write(settings)
    program = os.path.join(os.path.dirname(sys.executable), "schemathesis")
    arguments = [program, "--config-file", settings_file, "run", document_file, "--url", options.base_url]
    arguments += ["--phases", options.phases, "--checks", CHECKS, "--seed", str(options.seed)]
    arguments += ["--max-time", str(options.seconds), "-n", str(options.examples), "--request-timeout", "30"]
    arguments += ["--no-shrink", "--continue-on-failure", "--generation-database", "none", "--warnings", "off"]
    done = subprocess.run(
        [*arguments, "--report-ndjson-path", events],
        cwd=folder, capture_output=True, text=True, timeout=options.seconds + 120, check=False,
    )
    if not os.path.exists(events):
        return None, done.stdout + done.stderr
    with open(events, encoding="utf-8") as file:
        return read_events(file, operations), done.stdout


def judge(checks, report, selected, log):
    """One check an operation, and those of the run as a whole."""
    failed = {fault.operation for fault in report.faults.values()}
    for fault in sorted(report.faults.values(), key=lambda one: (one.operation, one.check)):
        print_fault(fault, log)
        checks.failed += 1
    names = [operation.name for operation in selected]
    unreached = [name for name in names if not report.reached[name] and name not in failed]
    checks.nothing("every operation was called", unreached)
    checks.outcome(f"the run came to its end ({report.stop_reason})", report.stop_reason in ("max_time", "completed"))
    checks.passed += len([name for name in names if report.reached[name] and name not in failed])
    statuses = ", ".join(f"{status}: {times}" for status, times in sorted(report.statuses.items()))
    print(f"{report.requests} requests, {len(report.reached)} of {len(names)} operations called, {len(report.succeeded)} succeeded")
    print(f"answers by status: {statuses}")
    print(f"never succeeded: {'; '.join(sorted(set(names) - report.succeeded)) or 'none'}")


def fuzz(options, folder):
    checks = Checks()
    document = load(pathlib.Path(options.document).read_bytes() if options.document else fetch_document(options.base_url))
    operations = operations_of(document)
    unknown = sorted(set(LEFT_OUT) - {operation.name for operation in operations})
    checks.nothing("every row of operations left out names one of the document", unknown)
    for name, reason in LEFT_OUT.items():
        print(f"left out: {name}: {reason}")
    print(f"seed {options.seed}, {options.seconds} s, as {options.email or 'nobody'}", flush=True)
    report, printed = call_operations(options, folder, document, token_of(options))
    if checks.outcome("schemathesis runs", report is not None, f"\n{printed[-3000:]}"):
        judge(checks, report, [one for one in operations if one.name not in LEFT_OUT], options.log)
    checks.close()


def main():
    options = parse_options()
    folder = options.keep or tempfile.mkdtemp(prefix="chancery-fuzz-")
    try:
        os.makedirs(folder, exist_ok=True)
        fuzz(options, folder)
    finally:
        if not options.keep:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
