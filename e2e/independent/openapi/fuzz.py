#!/usr/bin/env python3
"""Calls every operation of the document with data that schemathesis makes up, right and wrong, and judges the answers.

    fuzz.py http://127.0.0.1:8080 [--email admin@... --password-file FILE] [--seconds 60] [--seed 17] [--log FILE]

No 5xx but 501 and 503, no undocumented status or media type, no body against its schema. Without an account nobody is
signed in. Changes the installation: run it against one that is thrown away.
"""
import argparse
import glob
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
    parser.add_argument("--log", help="log of the services, searched for the traces of failed calls")
    parser.add_argument("--document", help="a file instead of the document that the gateway serves")
    parser.add_argument("--keep", help="folder that keeps what schemathesis wrote")
    return parser.parse_args()


def token_of(options):
    if not options.email:
        return None
    with open(options.password_file, encoding="utf-8") as file:
        return sign_in(options.base_url, options.email, file.read().strip())


def run_schemathesis(options, folder, document_file):
    """Runs the program; returns the file of its events and what it printed."""
    events = os.path.join(folder, "events.ndjson")
    program = os.path.join(os.path.dirname(sys.executable), "schemathesis")
    arguments = [program, "--config-file", os.path.join(folder, "schemathesis.toml")]
    arguments += ["run", document_file, "--url", options.base_url, "--phases", "coverage,fuzzing", "--checks", CHECKS]
    arguments += ["--seed", str(options.seed), "--max-time", str(options.seconds), "-n", str(options.examples)]
    arguments += ["--no-shrink", "--continue-on-failure", "--generation-database", "none", "--request-timeout", "30"]
    arguments += ["--warnings", "off", "--report-ndjson-path", events]
    done = subprocess.run(
        arguments, cwd=folder, capture_output=True, text=True, timeout=options.seconds + 120, check=False
    )
    return events, done.stdout + done.stderr


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
    data = pathlib.Path(options.document).read_bytes() if options.document else fetch_document(options.base_url)
    operations = operations_of(load(data))
    names = {operation.name for operation in operations}
    checks.nothing("every row of operations left out names one of the document", sorted(set(LEFT_OUT) - names))
    for name, reason in LEFT_OUT.items():
        print(f"left out: {name}: {reason}")
    document_file = os.path.join(folder, "openapi.json")
    pathlib.Path(document_file).write_text(json.dumps(load(data)), encoding="utf-8")
    token = token_of(options)
    known = known_values(options.base_url, token)
    settings = settings_text(operations, known, token, str(HOOKS))
    pathlib.Path(folder, "schemathesis.toml").write_text(settings, encoding="utf-8")
    os.chmod(os.path.join(folder, "schemathesis.toml"), 0o600)
    print(f"seed {options.seed}, {options.seconds} s, as {options.email or 'nobody'}", flush=True)
    events, printed = run_schemathesis(options, folder, document_file)
    if not glob.glob(events):
        checks.outcome("schemathesis runs", False, f"\n{printed[-3000:]}")
        checks.close()
    with open(events, encoding="utf-8") as file:
        report = read_events(file, operations)
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
