"""JSON over HTTP, for programs that judge how people sign in."""
import argparse
import json
import sys
import urllib.error
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from checks import Checks  # noqa: E402

__all__ = ["Checks", "Client", "arguments"]


def arguments(description):
    """The address of an installation, and the account of a person who has a password alone."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("base_url")
    parser.add_argument("--email", required=True)
    parser.add_argument("--password-file", required=True)
    return parser


class Client:
    def __init__(self, base):
        self.base = base.rstrip("/")
        self.token = None

    def call(self, method, path, body=None):
        """Status and parsed body of an answer, whatever its status."""
        headers = {"Accept": "application/json"}
        if self.token is not None:
            headers["Authorization"] = f"Bearer {self.token}"
        data = None
        if body is not None:
            headers["Content-Type"] = "application/json"
            data = json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data=data, headers=headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=30) as response:
                return response.status, parsed(response.read())
        except urllib.error.HTTPError as refusal:
            return refusal.code, parsed(refusal.read())

    def post(self, path, body, expected=200):
        """The body of an answer; ends the program when its status is another one."""
        status, answer = self.call("POST", path, body)
        if status != expected:
            raise SystemExit(f"POST {path}: {status} {answer}, expected {expected}")
        return answer

    def sign_in(self, email, password):
        """The tokens, or what a second factor needs."""
        return self.post("/api/auth/login", {"email": email, "password": password})


def parsed(text):
    return json.loads(text) if text else None
