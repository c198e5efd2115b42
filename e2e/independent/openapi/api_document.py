"""The OpenAPI document that the gateway serves, and the identifiers that every installation has."""
import json
import time
import urllib.error
import urllib.request
from dataclasses import dataclass

METHODS = ("get", "put", "post", "delete", "patch", "head", "options", "trace")

WELL_KNOWN_IDS = {
    "System organisation": "00000000-0000-0000-0000-000000000001",
    "Public organisation": "00000000-0000-0000-0000-000000000002",
    "first administrator": "00000000-0000-0000-0001-000000000001",
    "blueprint service": "00000000-0000-0000-0002-000000000001",
    "wallet service": "00000000-0000-0000-0002-000000000002",
    "register service": "00000000-0000-0000-0002-000000000003",
    "credential service": "00000000-0000-0000-0002-000000000007",
}


@dataclass(frozen=True)
class Operation:
    method: str
    path: str
    value: dict

    @property
    def name(self):
        return f"{self.method.upper()} {self.path}"

    def documents(self, status):
        """Whether a status is documented by its own number or range; `default` counts for refusals alone."""
        named = {str(status), f"{str(status)[0]}XX"} & set(self.value["responses"])
        return bool(named) or (status >= 400 and "default" in self.value["responses"])


def fetch_document(base_url, deadline_s=30):
    """The bytes of the document; waits while the gateway has not yet collected those of all services."""
    deadline = time.monotonic() + deadline_s
    while True:
        try:
            with urllib.request.urlopen(f"{base_url}/openapi.json", timeout=30) as response:
                return response.read()
        except urllib.error.HTTPError as error:
            if error.code != 503 or time.monotonic() > deadline:
                raise SystemExit(f"GET /openapi.json: {error.code} {error.read().decode(errors='replace')}") from None
        time.sleep(0.2)


def operations_of(document):
    """Every operation of the document, in its order."""
    return [
        Operation(method, path, item[method])
        for path, item in document["paths"].items()
        for method in METHODS
        if method in item
    ]


def walk_schemas(value, pointer=""):
    """Every object of the document with its JSON pointer."""
    if isinstance(value, dict):
        yield pointer, value
        for name, member in value.items():
            yield from walk_schemas(member, f"{pointer}/{name.replace('~', '~0').replace('/', '~1')}")
    elif isinstance(value, list):
        for index, member in enumerate(value):
            yield from walk_schemas(member, f"{pointer}/{index}")


def load(data):
    return json.loads(data)
