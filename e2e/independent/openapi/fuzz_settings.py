"""Settings of schemathesis: operations that are left out and why, existing values, correct answers."""
import json
import re
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass

# Operations that would end the run, or change the installation during it. A row that names no operation of
# the document is an error.
LEFT_OUT = {
    "POST /api/auth/logout": "ends the session of the run's own token",
    "DELETE /api/me/sessions/{id}": "ends the run's own session: schemathesis takes the ids that the list of sessions answers",
    "POST /api/platform/users/{platformUserId}/reset-factors": "may end the sessions of the run's own user",
    "POST /api/auth/token/revoke-user": "revokes the run's own token when it names the own user",
    "POST /api/auth/token/revoke-organization": "revokes the run's own token when it names the own organisation",
    "POST /api/organizations/{organizationId}/users/{userId}/suspend": "may suspend the run's own user",
    "PUT /api/organizations/{organizationId}/users/{userId}/role": "may take the run's own role away",
    "DELETE /api/organizations/{organizationId}/users/{userId}": "may remove the run's own user",
    "PUT /api/platform/organizations/{orgId}/status": "may suspend the run's own organisation",
    "PUT /api/admin/config": "changes limits and intervals of all validators",
    "POST /api/admin/validation/stop/{registerId}": "stops validation of the registers that other calls write to",
    "POST /api/admin/validation/pause/{registerId}": "pauses validation of the registers that other calls write to",
}

CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"

# Existing values let calls pass 404 and reach the code behind it.
SHARE_OF_KNOWN_VALUES = 0.6


class Reader:
    """Reads the content of an installation as the caller of the run; unreadable content counts as absent."""

    def __init__(self, base_url, token):
        self.base_url, self.token = base_url, token

    def get(self, path):
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        request = urllib.request.Request(self.base_url + path, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=30) as response:
                return json.loads(response.read())
        except urllib.error.HTTPError:
            return {}

    def values(self, path, *names):
        """The values that members of these names have anywhere in an answer, each once, in their order."""
        return list(dict.fromkeys(members_of(self.get(path), set(names))))


def members_of(value, names):
    if isinstance(value, dict):
        for name, member in value.items():
            if name in names and isinstance(member, (str, int)) and not isinstance(member, bool):
                yield str(member)
            yield from members_of(member, names)
    elif isinstance(value, list):
        for member in value:
            yield from members_of(member, names)


def sign_in(base_url, email, password):
    """An access token by the password grant."""
    form = urllib.parse.urlencode({"grant_type": "password", "username": email, "password": password})
    with urllib.request.urlopen(f"{base_url}/api/service-auth/token", form.encode(), timeout=30) as response:
        return json.loads(response.read())["access_token"]


def is_signed_in(base_url, token):
    return bool(Reader(base_url, token).get("/api/auth/me"))


@dataclass(frozen=True)
class Known:
    """Values that exist, for parameters of paths and members of bodies of these names.

    `operations`: a regular expression of `METHOD /path`.
    """

    names: tuple
    values: list
    operations: str = ".*"

    def bindings(self, operation):
        """The parameters of an operation that may have such a value, as schemathesis names them."""
        if not self.values or not re.fullmatch(self.operations, operation.name):
            return []
        in_path = [f"path.{name}" for name in self.names if f"{{{name}}}" in operation.path]
        return in_path + [f"body.{name}" for name in self.names if name in body_members(operation)]


def body_members(operation):
    """The members of a body of JSON, where its schema names them."""
    content = operation.value.get("requestBody", {}).get("content", {})
    return content.get("application/json", {}).get("schema", {}).get("properties", {})


def known_values(base_url, token):
    """The content of the installation that the caller of the run can read."""
    reader = Reader(base_url, token)
    registers = reader.values("/api/registers?pageSize=5", "id", "registerId")[:3]
    organisations = reader.values("/api/organizations", "id")[:3]
    subdomains = reader.values("/api/organizations", "subdomain")[:3]
    users = [one for each in organisations[:1] for one in reader.values(f"/api/organizations/{each}/users", "userId", "id")]
    wallets = reader.values("/api/wallets?pageSize=5", "id", "walletAddress")[:6]
    addresses = reader.values("/api/wallets?pageSize=5", "walletAddress")
    transactions = [one for each in registers for one in reader.values(f"/api/registers/{each}/transactions?pageSize=3", "txId")]
    validators = [one for each in registers for one in reader.values(f"/api/validators/{each}", "validatorId")]
    return [
        Known(("registerId", "RegisterId"), registers),
        Known(("organizationId", "orgId"), organisations),
        Known(("userId",), users),
        Known(("orgSubdomain", "subdomain"), subdomains, r".* /api/(auth/.*|organizations/by-subdomain/.*)"),
        Known(("txId", "transactionId", "previousTransactionId", "PreviousTransactionId"), transactions),
        Known(("docketId",), ["0", "1", "latest"]),
        Known(("validatorId",), validators),
        Known(("blueprintId",), reader.values("/api/system-register/blueprints", "blueprintId", "id")),
        Known(("address", "senderAddress", "walletAddress"), addresses),
        Known(("id",), organisations, r".* /api/organizations/\{id\}"),
        Known(("id",), wallets, r".* /api(/v1)?/wallets/\{id\}.*"),
        Known(("id",), reader.values("/api/me/inbox", "id"), r".* /api/me/inbox/\{id\}.*"),
    ]


def settings_text(operations, known, token, hooks):
    """The file schemathesis.toml of a run."""
    lines = [
        "color = false",
        f"hooks = {quoted(hooks)}",
        # without this, schemathesis would create an account of its own when it has no token
        "[auth]",
        "auto-signup = false",
        "[generation]",
        "allow-x00 = true",
        "[checks.not_a_server_error]",
        # 501: not implemented; 503: a service is busy or stops. Both are documented answers
        'expected-statuses = ["2xx", "3xx", "4xx", 501, 503]',
    ]
    if token:
        lines += ["[headers]", f"Authorization = {quoted(f'Bearer {token}')}"]
    for operation in operations:
        lines += operation_lines(operation, known)
    for index, one in enumerate(known):
        if one.values:
            lines += [f"[dictionaries.known{index}]", f"values = {json.dumps(one.values)}"]
    return "\n".join(lines) + "\n"


def operation_lines(operation, known):
    """Settings of one operation: none, that it is left out, or existing values for it."""
    if operation.name in LEFT_OUT:
        return ["[[operations]]", f"include-name = {quoted(operation.name)}", "enabled = false"]
    bound = [
        f"{quoted(name)} = {{ dictionary = {quoted(f'known{index}')}, probability = {SHARE_OF_KNOWN_VALUES} }}"
        for index, one in enumerate(known)
        for name in one.bindings(operation)
    ]
    return ["[[operations]]", f"include-name = {quoted(operation.name)}", "[operations.parameters]", *bound] if bound else []


def quoted(text):
    """A basic string of TOML; JSON's escapes are among those of TOML."""
    return json.dumps(text)
