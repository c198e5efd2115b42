#!/usr/bin/env python3
"""Opens with jwcrypto the groups of an envelope, and makes groups for the same keys.

    groups_jose.py EXCHANGE

EXCHANGE is JSON: `registerId`, `envelope`, `keys` (private JWKs by `kid`), `views` (the data that each key reads). The
program adds `made`: groups with one recipient each and one with all, which another program opens.

Needs the package `jwcrypto`.
"""
import hashlib
import json
import sys

from jwcrypto import jwe, jwk
from jwcrypto.common import base64url_decode, base64url_encode

from ledger_formats import jcs

MADE = {"made": "by jwcrypto", "n": 1}


class Report:
    passed = failed = 0

    def outcome(self, what, holds):
        print(f"{'ok ' if holds else 'NOT'} {what}")
        self.passed, self.failed = self.passed + bool(holds), self.failed + (not holds)


def open_group(group, kid, key):
    """The plaintext for one recipient, picked by its key id."""
    [recipient] = [each for each in group["jwe"]["recipients"] if each["header"]["kid"] == kid]
    token = jwe.JWE()
    token.deserialize(json.dumps({**group["jwe"], "recipients": [recipient]}), key)
    return token.payload


def check_opened(exchange, keys, report):
    envelope = exchange["envelope"]
    for kid, view in exchange["views"].items():
        groups = [g for g in envelope["groups"] if kid in [r["header"]["kid"] for r in g["jwe"]["recipients"]]]
        report.outcome(f"{kid} is in one group", len(groups) == 1)
        plaintext = open_group(groups[0], kid, keys[kid])
        committed = "sha256:" + hashlib.sha256(plaintext).hexdigest() == groups[0]["commitment"]
        value = json.loads(plaintext)
        report.outcome(f"{kid} opens its group, which fits its commitment", committed and value["data"] == view)
        report.outcome(f"{kid}: the plaintext is canonical and salted", jcs(value) == plaintext and len(base64url_decode(value["salt"])) == 32)
        place = "|".join((exchange["registerId"], envelope["instanceId"], envelope["actionId"], groups[0]["groupId"]))
        report.outcome(f"{kid}: the group is bound to its action", base64url_decode(groups[0]["jwe"]["aad"]) == place.encode())


def make_group(exchange, keys, group_id):
    envelope = exchange["envelope"]
    plaintext = jcs({"salt": base64url_encode(b"s" * 32), "fields": ["/*"], "data": MADE})
    place = "|".join((exchange["registerId"], envelope["instanceId"], envelope["actionId"], group_id))
    header = json.dumps({"enc": "A256GCM", "typ": "disclosure-group+jwe"})
    token = jwe.JWE(plaintext, protected=header, aad=place.encode())
    for kid, key in keys.items():
        alg = "RSA-OAEP-256" if key["kty"] == "RSA" else "ECDH-ES+A256KW"
        token.add_recipient(key, header=json.dumps({"alg": alg, "kid": kid}))
    value = json.loads(token.serialize())
    if "recipients" not in value:
        value["recipients"] = [{"header": value.pop("header"), "encrypted_key": value.pop("encrypted_key")}]
    return {"groupId": group_id, "commitment": "sha256:" + hashlib.sha256(plaintext).hexdigest(), "jwe": value}


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        exchange = json.load(file)
    keys = {kid: jwk.JWK(**key) for kid, key in exchange["keys"].items()}
    report = Report()
    check_opened(exchange, keys, report)
    single = [make_group(exchange, {kid: key}, f"one-{index}") for index, (kid, key) in enumerate(keys.items())]
    exchange["made"] = [*single, make_group(exchange, keys, "all")]
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        json.dump(exchange, file)
    print(f"{report.passed} passed, {report.failed} failed")
    sys.exit(1 if report.failed else 0)


if __name__ == "__main__":
    main()
