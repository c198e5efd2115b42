#!/usr/bin/env python3
"""Verifies an access token of Chancery with PyJWT against the published keys, and refuses altered ones.

    tokens_verify.py http://127.0.0.1:8080 --email admin@... --password-file FILE --installation NAME
"""
import argparse
import json
import sys
import urllib.parse
import urllib.request

import jwt


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("base_url")
    parser.add_argument("--email", required=True)
    parser.add_argument("--password-file", required=True)
    parser.add_argument("--installation", required=True)
    args = parser.parse_args()
    with open(args.password_file, encoding="utf-8") as file:
        form = {"grant_type": "password", "username": args.email, "password": file.read().strip()}
    request = urllib.request.Request(f"{args.base_url}/api/service-auth/token", urllib.parse.urlencode(form).encode())
    with urllib.request.urlopen(request, timeout=30) as response:
        answer = json.load(response)
    token = answer["access_token"]
    keys = jwt.PyJWKClient(f"{args.base_url}/.well-known/jwks.json")
    expected = {
        "algorithms": ["ES256"],
        "issuer": f"urn:platform:{args.installation}",
        "options": {"require": ["iss", "aud", "iat", "exp", "jti", "sub", "client_id"]},
    }

    def verify(text, audience):
        key = keys.get_signing_key_from_jwt(text)
        return jwt.decode(text, key.key, audience=audience, **expected)

    passed = failed = 0

    def outcome(what, holds):
        nonlocal passed, failed
        print(f"{'ok ' if holds else 'NOT'} {what}")
        passed, failed = passed + holds, failed + (not holds)

    claims = verify(token, f"{args.installation}:platform")
    header = jwt.get_unverified_header(token)
    outcome("signature, issuer and audience verify", True)
    outcome("typ is at+jwt", header["typ"] == "at+jwt")
    outcome("lifetime is 3600 s", claims["exp"] - claims["iat"] == 3600 == answer["expires_in"])
    outcome("the administrator's claims are there", claims["platform_user_id"] and "SystemAdmin" in claims["roles"])

    def refused(text, audience):
        try:
            verify(text, audience)
            return False
        except jwt.PyJWTError:
            return True

    head, body, signature = token.split(".")
    flipped = body[:20] + ("A" if body[20] != "A" else "B") + body[21:]
    outcome("an altered body is refused", refused(f"{head}.{flipped}.{signature}", f"{args.installation}:platform"))
    outcome("another audience is refused", refused(token, f"{args.installation}:service"))
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
