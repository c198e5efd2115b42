"""Accounts of people, each made for one journey, and calls whose refusals are answers."""
import json
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from typing import Any

PASSWORD = "a long enough phrase 42"


@dataclass(frozen=True)
class Answer:
    status: int
    body: Any

    @property
    def code(self):
        """The status with the code of the refusal, as `(401, "INVALID_ASSERTION")`."""
        return self.status, (self.body.get("code") or self.body.get("error")) if isinstance(self.body, dict) else None


class Rest:
    """The REST interface of an installation; an answer of any status is returned."""

    def __init__(self, base_url):
        self.base_url = base_url.rstrip("/")

    def send(self, method, path, body=None, token=None):
        return self.request(method, path, None if body is None else json.dumps(body).encode(), "application/json", token)

    def form(self, path, fields, token=None):
        return self.request("POST", path, urllib.parse.urlencode(fields).encode(), "application/x-www-form-urlencoded", token)

    def request(self, method, path, data, media_type, token):
        headers = {"Accept": "application/json", "Content-Type": media_type} if data is not None else {"Accept": "application/json"}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        request = urllib.request.Request(self.base_url + path, data=data, headers=headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=30) as response:
                return Answer(response.status, parsed(response.read()))
        except urllib.error.HTTPError as error:
            return Answer(error.code, parsed(error.read()))

    def expect(self, status, method, path, body=None, token=None):
        """The body of an answer that a journey depends on; the program ends when it has another status."""
        answer = self.send(method, path, body, token)
        if answer.status != status:
            raise SystemExit(f"{method} {path} answered {answer.status}, expected {status}: {answer.body}")
        return answer.body

    def origin(self):
        """The public origin of the installation, which passkeys are bound to."""
        metadata = self.expect(200, "GET", "/.well-known/oauth-authorization-server/api/service-auth")
        parts = urllib.parse.urlsplit(metadata["token_endpoint"])
        return f"{parts.scheme}://{parts.netloc}"


def parsed(content):
    try:
        return json.loads(content)
    except ValueError:
        return content.decode(errors="replace")


@dataclass(frozen=True)
class Person:
    rest: Rest
    email: str
    organisation: str
    subdomain: str

    def login(self):
        """The body of a sign-in by password: tokens, or what the second step needs."""
        body = {"email": self.email, "password": PASSWORD, "organizationSubdomain": self.subdomain}
        return self.rest.expect(200, "POST", "/api/auth/login", body)

    def token(self):
        return self.login()["access_token"]

    def login_token(self):
        return self.login()["login_token"]


class People:
    """Makes people of an organisation of their own."""

    def __init__(self, rest, email, password_file):
        self.rest = rest
        with open(password_file, encoding="utf-8") as file:
            body = {"email": email, "password": file.read().strip()}
        self.root = rest.expect(200, "POST", "/api/auth/login", body)["access_token"]
        self.subdomain = f"judged-{time.time_ns():x}"
        made = rest.expect(201, "POST", "/api/organizations", {"name": "Judged", "subdomain": self.subdomain}, self.root)
        self.organisation = made["id"]

    def person(self, name, roles=("User",)):
        email = f"{name}@{self.subdomain}.example"
        body = {"email": email, "password": PASSWORD, "displayName": name, "roles": list(roles)}
        self.rest.expect(201, "POST", f"/api/organizations/{self.organisation}/users", body, self.root)
        return Person(self.rest, email, self.organisation, self.subdomain)
