#!/usr/bin/env python3
"""Every OAuth call by Authlib, and its validator of access tokens (RFC 9068).

    oauth_client.py http://127.0.0.1:8080 --email admin@... --password-file FILE --installation NAME \
      --internal-token-url http://127.0.0.1:8081/api/internal/service-auth/token --secrets-dir DIR
"""
import json
import os
import urllib.request
from pathlib import Path

# The local mode has no TLS in front of it.
os.environ["AUTHLIB_INSECURE_TRANSPORT"] = "1"

from authlib.integrations.base_client.errors import OAuthError  # noqa: E402
from authlib.integrations.requests_client import OAuth2Session  # noqa: E402
from authlib.oauth2.rfc6750 import InvalidTokenError  # noqa: E402
from authlib.oauth2.rfc8414 import AuthorizationServerMetadata  # noqa: E402
from authlib.oauth2.rfc9068 import JWTBearerTokenValidator  # noqa: E402

from client import Checks, arguments  # noqa: E402

SERVICE = "service-register"


def read_json(address):
    with urllib.request.urlopen(address, timeout=30) as response:
        return json.load(response)


def validator_of(metadata, audience):
    class Validator(JWTBearerTokenValidator):
        def get_jwks(self):
            return read_json(metadata["jwks_uri"])

    return Validator(issuer=metadata["issuer"], resource_server=audience)


def main():
    parser = arguments(__doc__)
    parser.add_argument("--installation", required=True)
    parser.add_argument("--internal-token-url", required=True)
    parser.add_argument("--secrets-dir", required=True)
    args = parser.parse_args()
    password = Path(args.password_file).read_text(encoding="utf-8").strip()
    base, checks = args.base_url.rstrip("/"), Checks()

    metadata = AuthorizationServerMetadata(read_json(f"{base}/.well-known/oauth-authorization-server/api/service-auth"))
    # The issuer is the `iss` of the tokens, a URN, which Authlib wants to be an https address (RFC 8414, 2).
    for name in (
        "token_endpoint",
        "jwks_uri",
        "grant_types_supported",
        "token_endpoint_auth_methods_supported",
        "revocation_endpoint",
        "introspection_endpoint",
    ):
        getattr(metadata, f"validate_{name}")()
        checks.outcome(f"the metadata has a valid {name}", True)

    person = OAuth2Session(token_endpoint_auth_method="none")
    tokens = dict(person.fetch_token(metadata["token_endpoint"], username=args.email, password=password))
    checks.equal("the password gives a bearer", tokens["token_type"], "Bearer")
    claims = None
    validator = validator_of(metadata, f"{args.installation}:platform")
    try:
        claims = validator.authenticate_token(tokens["access_token"])
        validator.validate_token(claims, [], None)
    except InvalidTokenError as error:
        checks.outcome("the token is an access token by RFC 9068", False, error)
    checks.outcome("the token is an access token by RFC 9068", claims is not None and claims["client_id"] == "first-party")
    other = validator_of(metadata, f"{args.installation}:service").authenticate_token(tokens["access_token"])
    checks.outcome("and of no other resource server", refuses(lambda: other.validate()))

    renewed = dict(person.refresh_token(metadata["token_endpoint"], refresh_token=tokens["refresh_token"]))
    checks.outcome("a refresh token rotates", renewed["refresh_token"] != tokens["refresh_token"])
    checks.outcome(
        "a wrong password is invalid_grant",
        refuses(lambda: person.fetch_token(metadata["token_endpoint"], username=args.email, password="wrong"), "invalid_grant"),
    )
    checks.outcome(
        "an unknown grant is unsupported_grant_type",
        refuses(lambda: person.fetch_token(metadata["token_endpoint"], grant_type="client_credentials"), "unsupported_grant_type"),
    )

    secret = (Path(args.secrets_dir) / SERVICE).read_text(encoding="utf-8").strip()
    service = OAuth2Session(SERVICE, secret, token_endpoint_auth_method="client_secret_post")
    service_token = service.fetch_token(args.internal_token_url, grant_type="client_credentials")
    checks.equal("a service gets a token by its secret", service_token["token_type"], "Bearer")

    def introspect(token):
        # The gateway is no way for tokens of services to internal routes; introspection is a public one.
        answer = service.post(metadata["introspection_endpoint"], data={"token": token})
        return answer.json()

    found = introspect(renewed["access_token"])
    checks.equal("introspection knows it", (found["active"], found["sub"]), (True, claims["sub"]))
    checks.equal("and the refresh token", introspect(renewed["refresh_token"])["active"], True)
    checks.equal("introspection tells nothing of another text", introspect("text"), {"active": False})
    answer = person.revoke_token(metadata["revocation_endpoint"], token=renewed["refresh_token"], token_type_hint="refresh_token")
    checks.equal("a refresh token is revoked", answer.status_code, 200)
    checks.equal("and its session has ended", introspect(renewed["access_token"]), {"active": False})
    checks.outcome(
        "it gives no token any more",
        refuses(lambda: person.refresh_token(metadata["token_endpoint"], refresh_token=renewed["refresh_token"]), "invalid_grant"),
    )
    checks.close()


def refuses(call, code=None):
    try:
        call()
    except OAuthError as error:
        return code is None or error.error == code
    except Exception:  # noqa: BLE001  Authlib's claims raise errors of their own
        return code is None
    return False


if __name__ == "__main__":
    main()
