#!/usr/bin/env python3
"""Fuzzes a small server with known faults, and insists that the report names each of them and no other.

    fuzz_self_check.py
"""
import argparse
import collections
import pathlib
import sys
import http.server
import json
import tempfile
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from checks import Checks  # noqa: E402
from fuzz import call_operations  # noqa: E402

PROBLEM = {"application/problem+json": {"schema": {"type": "object", "required": ["code"]}}}
NUMBER = {"application/json": {"schema": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}}}

# path: the answer (status, media type, body), and the expected text of the report
ANSWERS = {
    "/sound": ((200, "application/json", b'{"n": 1}'), []),
    "/busy": ((503, "application/problem+json", b'{"code": "BUSY"}'), []),
    "/broken": ((500, "application/problem+json", b'{"code": "X"}'), ["not_a_server_error"]),
    "/gateway": ((502, "application/problem+json", b'{"code": "X"}'), ["not_a_server_error"]),
    "/created": ((201, "application/problem+json", b'{"code": "X"}'), ["documented_success"]),
    "/shape": ((200, "application/json", b'{"n": "one"}'), ["response_schema_conformance"]),
    "/problem": ((400, "application/problem+json", b"{}"), ["response_schema_conformance"]),
    "/text": ((200, "text/plain", b"one"), ["content_type_conformance"]),
    "/silent": (None, ["answer"]),
}


def document():
    responses = {"200": {"description": "a number", "content": NUMBER}, "default": {"description": "no", "content": PROBLEM}}
    parameter = {"name": "q", "in": "query", "schema": {"type": "integer"}}
    operation = {"responses": responses, "parameters": [parameter]}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Known faults", "version": "1"},
        "paths": {path: {"get": operation} for path in ANSWERS},
    }


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        answer, _ = ANSWERS.get(self.path.partition("?")[0], ((404, "application/problem+json", b'{"code": "X"}'), []))
        if answer is None:
            self.close_connection = True
            return
        status, media_type, body = answer
        self.send_response(status)
        if media_type:
            self.send_header("Content-Type", media_type)
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments):
        """The calls are in the report."""


def main():
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    checks, server = Checks(), http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    options = argparse.Namespace(base_url=url, seconds=60, seed=17, examples=3, phases="coverage")
    with tempfile.TemporaryDirectory(prefix="chancery-fuzz-") as folder:
        report, printed = call_operations(options, folder, document(), None)
    server.shutdown()
    if checks.outcome("schemathesis runs", report is not None, printed[-2000:]):
        found = collections.defaultdict(set)
        for fault in report.faults.values():
            found[fault.operation].add(fault.check)
        for path, (_, expected) in ANSWERS.items():
            named = sorted(found[f"GET {path}"])
            checks.outcome(f"{path}: {', '.join(expected) or 'no fault'}", named == expected, json.dumps(named))
    checks.close()


main()
