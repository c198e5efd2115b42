"""Loaded by schemathesis: bodies of lines of JSON, which it has no serializer for."""
import json

import schemathesis


@schemathesis.serializer("application/x-ndjson", "application/jsonl")
def lines_of_json(_context, value):
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    items = value if isinstance(value, list) else [value]
    return "".join(f"{json.dumps(item)}\n" for item in items).encode()
