#!/usr/bin/env python3
"""Performs every OAuth call of the tenant service with authlib, and verifies tokens with it against the published keys.

    oauth_client.py .chancery/local.json

Metadata (RFC 8414), grants (RFC 6749), client credentials by secret and by X.509-SVID, introspection (RFC 7662),
revocation (RFC 7009), token exchange (RFC 8693), access tokens (RFC 9068).
"""
import argparse
import hmac
import json
import os
import pathlib
import ssl
import tempfile
import time

import requests
from authlib.integrations.base_client import OAuthError
from authlib.integrations.requests_client import OAuth2Session
from authlib.oauth2.rfc6750.errors import InvalidTokenError
from authlib.oauth2.rfc8414 import AuthorizationServerMetadata, get_well_known_url
from authlib.oauth2.rfc9068 import JWTBearerTokenValidator
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from joserfc import jwt
from joserfc.jwk import ECKey, KeySet
from joserfc.util import urlsafe_b64encode
from requests.adapters import HTTPAdapter
from spiffe import WorkloadApiClient

from accounts import PASSWORD, People, Rest
from checks import Checks

CLIENT, OTHER_CLIENT = "service-register", "service-wallet"
EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"


class Validator(JWTBearerTokenValidator):
    """RFC 9068 as a resource server of the installation."""

    def __init__(self, issuer, audience, keys):
        super().__init__(issuer, audience)
        self.keys = keys

    def get_jwks(self):
        return KeySet.import_key_set(self.keys)

    def claims(self, token):
        found = self.authenticate_token(token)
        self.validate_token(found, [], None)
        return found

    def refuses(self, token):
        try:
            self.claims(token)
            return False
        except InvalidTokenError:
            return True


def error_of(act):
    """The `error` of a refused call, as authlib reads it; None when it was accepted."""
    try:
        act()
        return None
    except OAuthError as error:
        return error.error


class Installation:
    """What a client finds by the metadata, and the internal listeners of local mode."""

    def __init__(self, state):
        self.state = state
        self.rest = Rest(state["gatewayUrl"])
        url = get_well_known_url(f"{state['gatewayUrl']}/api/service-auth", external=True)
        self.metadata = AuthorizationServerMetadata(requests.get(url, timeout=30).json())
        self.keys = requests.get(self.metadata["jwks_uri"], timeout=30).json()
        self.issuer = f"urn:platform:{state['installation']}"

    def validator(self, tier):
        return Validator(self.issuer, f"{self.state['installation']}:{tier}", self.keys)

    def session(self, **more):
        """A client of the public endpoint, which has no credential."""
        metadata = {name: self.metadata[name] for name in ("token_endpoint", "revocation_endpoint")}
        return OAuth2Session("first-party", token_endpoint_auth_method="none", default_timeout=30, **metadata, **more)

    def service(self, client_id, method="client_secret_basic"):
        secret = pathlib.Path(self.state["serviceSecretsDir"], client_id).read_text(encoding="utf-8").strip()
        endpoint = self.state["internalTokenUrl"]
        return OAuth2Session(client_id, secret, token_endpoint_auth_method=method, token_endpoint=endpoint, default_timeout=30)

    def sign_in(self, person):
        """A session with the tokens of the password grant."""
        session = self.session()
        session.fetch_token(username=person.email, password=PASSWORD, organization_subdomain=person.subdomain)
        return session

    def introspect(self, caller, token):
        """The answer to a service, which authenticates by its own access token (RFC 7662, 2.1)."""
        return caller.introspect_token(self.metadata["introspection_endpoint"], token=token, auth=caller.token_auth)

    def is_active(self, caller, token):
        return self.introspect(caller, token).json()["active"]

    def ends(self, caller, token):
        """Whether a token is inactive, within the time that revocations take."""
        return within(15, lambda: not self.is_active(caller, token))


def within(seconds, holds):
    """Whether a condition holds within so many seconds: revocations of access tokens spread by events."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def is_refused(session, url):
    """Whether a resource refuses the token of a session, within the time that revocations take."""
    return within(15, lambda: session.get(url).status_code == 401)


# ---------------------------------------------------------------- metadata and keys


def judge_metadata(checks, at):
    """Every rule of authlib for RFC 8414 holds but one: without an authorization endpoint there are no response types."""
    faults = []
    for name in AuthorizationServerMetadata.REGISTRY_KEYS:
        try:
            getattr(at.metadata, f"validate_{name}", lambda: None)()
        except ValueError as error:
            faults.append(str(error))
    checks.equal("the metadata are those of RFC 8414, without response types", faults, ['"response_types_supported" is required'])
    checks.equal("the issuer is that of the tokens", at.metadata["issuer"], at.issuer)
    checks.equal("the grants", at.metadata["grant_types_supported"], ["password", "refresh_token"])
    keys = KeySet.import_key_set(at.keys)
    checks.outcome("two keys at least are published, none of them private", len(keys.keys) >= 2 and not any("d" in each for each in at.keys["keys"]))
    checks.nothing("each kid is the thumbprint of RFC 7638", [each.kid for each in keys.keys if each.kid != each.thumbprint()])


# ---------------------------------------------------------------- people


def judge_access_token(checks, at, session, person):
    """RFC 9068 by authlib; forged tokens are refused by authlib and by the installation."""
    token, validator = session.token["access_token"], at.validator("platform")
    claims = validator.claims(token)
    checks.equal("the access token is of the person", (claims["email"], claims["client_id"]), (person.email, "first-party"))
    checks.equal("its lifetime is that of the answer", claims["exp"] - claims["iat"], session.token["expires_in"])
    checks.equal("its header", (claims.header["typ"], claims.header["alg"]), ("at+jwt", "ES256"))
    checks.outcome("another audience is refused", at.validator("service").refuses(token))
    me = f"{at.rest.base_url}/api/auth/me"
    checks.equal("authlib's bearer is accepted", session.get(me).status_code, 200)
    for name, forged in forgeries(at, claims).items():
        checks.outcome(f"{name}: authlib refuses it", validator.refuses(forged))
        checks.equal(f"{name}: the installation refuses it", at.rest.send("GET", "/api/auth/me", token=forged).status, 401)


def forgeries(at, claims):
    """Tokens with the claims of a genuine one that another signs, or that none signs."""
    published, content = at.keys["keys"][0], dict(claims)
    header = {"typ": "at+jwt", "kid": claims.header["kid"]}
    key = ECKey.generate_key("P-256")
    public = ECKey.import_key(published).as_pem(private=False)
    return {
        "a token of another key with a published kid": jwt.encode({**header, "alg": "ES256"}, content, key),
        "a token with its own key in the header": jwt.encode({**header, "alg": "ES256", "jwk": key.as_dict(private=False)}, content, key),
        "a token by HMAC with a public key": by_hand({**header, "alg": "HS256"}, content, lambda text: hmac.digest(public, text, "sha256")),
        "a token without a signature": by_hand({**header, "alg": "none"}, content, lambda _: b""),
    }


def by_hand(header, content, sign):
    """A token that joserfc refuses to make."""
    text = b".".join(urlsafe_b64encode(json.dumps(part).encode()) for part in (header, content))
    return b".".join((text, urlsafe_b64encode(sign(text)))).decode()


def judge_password_grant(checks, at, person):
    session = at.session()

    def grant(**fields):
        return error_of(lambda: session.fetch_token(**{"grant_type": "password", "username": person.email, "password": PASSWORD, **fields}))

    checks.equal("a wrong password", grant(password="another long phrase 42"), "invalid_grant")
    checks.equal("an unknown address", grant(username=f"no-{person.email}"), "invalid_grant")
    checks.equal("a grant that is not served", grant(grant_type="authorization_code", redirect_uri="https://example.org", code="x"), "unsupported_grant_type")
    checks.equal("client credentials at the public endpoint", grant(grant_type="client_credentials"), "unsupported_grant_type")
    checks.equal("a tier that does not exist", grant(tier="root"), "invalid_request")
    checks.equal("without a grant", error_of(lambda: session.fetch_token(grant_type="")), "invalid_request")
    twice = at.rest.request("POST", "/api/service-auth/token", b"grant_type=password&grant_type=password", "application/x-www-form-urlencoded", None)
    checks.equal("a repeated parameter", twice.code, (400, "invalid_request"))


def judge_refresh(checks, at, person, service):
    """Rotation, the repetition of a lost answer, and the end of the session by a copied token (RFC 9700, 2.2.2)."""
    session = at.sign_in(person)
    first = session.token["refresh_token"]
    second = session.refresh_token()["refresh_token"]
    checks.outcome("a refresh token rotates", first != second)
    checks.equal("its access token is of the same person", at.validator("platform").claims(session.token["access_token"])["email"], person.email)
    checks.equal("a repetition within 10 s gets the same answer", session.refresh_token(refresh_token=first)["refresh_token"], second)
    third = session.refresh_token(refresh_token=second)["refresh_token"]
    checks.outcome("the newest one is active", at.is_active(service, third))
    checks.outcome("an earlier one is not", not at.is_active(service, first))
    access = session.token["access_token"]
    checks.equal("an earlier one is refused", error_of(lambda: session.refresh_token(refresh_token=first)), "invalid_grant")
    checks.equal("its use ended the newest one", error_of(lambda: session.refresh_token(refresh_token=third)), "invalid_grant")
    checks.outcome("and the access token", at.ends(service, access))
    for name, text in {"another text": "x", "a changed MAC": third[:-2] + "AA", "an access token": access}.items():
        checks.equal(f"{name} is no refresh token", error_of(lambda text=text: session.refresh_token(refresh_token=text)), "invalid_grant")


# ---------------------------------------------------------------- services


class SvidAdapter(HTTPAdapter):
    """Mutual TLS by an X.509-SVID; SVIDs name no host, so the chain alone is verified."""

    def __init__(self, context):
        self.context = context
        super().__init__()

    def init_poolmanager(self, *args, **more):
        super().init_poolmanager(*args, ssl_context=self.context, assert_hostname=False, **more)

    def cert_verify(self, conn, url, verify, cert):
        """The context has the authority and the certificate."""


def context_of(socket):
    with WorkloadApiClient(socket_path=f"unix:{socket}") as client, tempfile.TemporaryDirectory() as folder:
        context = client.fetch_x509_context()
        svid = context.default_svid
        bundle = context.x509_bundle_set.get_bundle_for_trust_domain(svid.spiffe_id.trust_domain)
        chain, authority = pathlib.Path(folder, "svid.pem"), b"".join(one.public_bytes(Encoding.PEM) for one in bundle.x509_authorities)
        key = svid.private_key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        with open(os.open(chain, os.O_CREAT | os.O_WRONLY, 0o600), "wb") as file:
            file.write(key + b"".join(one.public_bytes(Encoding.PEM) for one in svid.cert_chain))
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        made.check_hostname = False
        made.load_verify_locations(cadata=authority.decode())
        made.load_cert_chain(chain)
    return made


def judge_client_credentials(checks, at):
    """By secret in both ways of RFC 6749, 2.3.1, and by certificate; returns a session with a token."""
    validator = at.validator("service")
    for method in ("client_secret_basic", "client_secret_post"):
        service = at.service(CLIENT, method)
        token = service.fetch_token(grant_type="client_credentials")
        claims = validator.claims(token["access_token"])
        checks.equal(f"{method}: the token is of the service", (claims["client_id"], claims["scope"]), (CLIENT, token["scope"]))
        checks.outcome(f"{method}: no refresh token (RFC 6749, 4.4.3)", "refresh_token" not in token)
    scope = token["scope"].split()[0]
    narrow = service.fetch_token(grant_type="client_credentials", scope=scope)
    checks.equal("a requested scope alone is granted", (narrow["scope"], validator.claims(narrow["access_token"])["scope"]), (scope, scope))
    checks.equal("a scope that the client has not", error_of(lambda: service.fetch_token(grant_type="client_credentials", scope="inbox:write")), "invalid_scope")
    checks.equal("the password grant", error_of(lambda: service.fetch_token(grant_type="password", username="a", password="b")), "unsupported_grant_type")
    for name, client_id in {"a wrong secret": CLIENT, "an unknown client": "service-none"}.items():
        wrong = OAuth2Session(client_id, "wrong", token_endpoint=at.state["internalTokenUrl"], default_timeout=30)
        checks.equal(name, error_of(lambda wrong=wrong: wrong.fetch_token(grant_type="client_credentials")), "invalid_client")
        answer = requests.post(at.state["internalTokenUrl"], data={"grant_type": "client_credentials"}, auth=(client_id, "wrong"), timeout=30)
        checks.equal(f"{name}: status and scheme", (answer.status_code, answer.headers["WWW-Authenticate"].split()[0]), (401, "Basic"))
    judge_certificate(checks, at, validator)
    service.fetch_token(grant_type="client_credentials")
    return service


def judge_certificate(checks, at, validator):
    context = context_of(at.state["spiffeSockets"][CLIENT])

    def session_of(client_id):
        session = OAuth2Session(client_id, token_endpoint_auth_method="none", token_endpoint=at.state["mtlsTokenUrl"], default_timeout=30)
        session.mount("https://", SvidAdapter(context))
        return session

    token = session_of(CLIENT).fetch_token(grant_type="client_credentials")
    checks.equal("a certificate alone gets a token of its service", validator.claims(token["access_token"])["client_id"], CLIENT)
    other = error_of(lambda: session_of(OTHER_CLIENT).fetch_token(grant_type="client_credentials"))
    checks.equal("it gets none of another service", other, "invalid_client")


def judge_introspection(checks, at, session, service):
    access, refresh = session.token["access_token"], session.token["refresh_token"]
    claims = at.validator("platform").claims(access)
    found = at.introspect(service, access).json()
    names = ("sub", "iss", "aud", "exp", "iat", "nbf", "jti", "client_id", "tier", "org_id")
    checks.equal("introspection has the claims of the token", {name: found.get(name) for name in names}, {name: claims[name] for name in names})
    checks.equal("an access token is active", (found["active"], found["token_type"], found["username"]), (True, "Bearer", claims["email"]))
    found = at.introspect(service, refresh).json()
    checks.equal("a refresh token is active", (found["active"], found["token_type"], found["sub"]), (True, "refresh_token", claims["sub"]))
    for name, text in {"another text": "x", "a changed token": access[:-4] + "AAAA", "a changed refresh token": refresh[:-2] + "AA"}.items():
        checks.equal(f"{name} is not active, and nothing more is said", at.introspect(service, text).json(), {"active": False})
    hinted = service.introspect_token(at.metadata["introspection_endpoint"], token=access, token_type_hint="refresh_token", auth=service.token_auth)
    checks.equal("a wrong hint changes nothing (RFC 7662, 2.1)", hinted.json()["active"], True)
    checks.equal("a person may not introspect", at.introspect(session, access).status_code, 403)
    anonymous = at.rest.form("/api/auth/token/introspect", {"token": access})
    checks.equal("a client without a token may not", anonymous.status, 401)
    missing = service.post(at.metadata["introspection_endpoint"], data={"token_type_hint": "access_token"})
    checks.equal("without a token", (missing.status_code, missing.json()["error"]), (400, "invalid_request"))


def judge_revocation(checks, at, people, service):
    person, endpoint = people.person("revoked"), at.metadata["revocation_endpoint"]
    session = at.sign_in(person)
    access, refresh = session.token["access_token"], session.token["refresh_token"]
    for name, token, auth in (("refresh token", f"{refresh[:-2]}AA", None), ("access token", "unknown", session.token_auth)):
        answer = session.revoke_token(endpoint, token=token, auth=auth)
        checks.equal(f"an unknown {name} is answered alike (RFC 7009, 2.2)", answer.status_code, 200)
    foreign = at.sign_in(people.person("foreign"))
    foreign.revoke_token(endpoint, token=access, auth=foreign.token_auth)
    checks.outcome("a token of another person stays active", at.is_active(service, access))
    alone = session.revoke_token(endpoint, token=access)
    checks.equal("an access token is revoked by its person alone", (alone.status_code, at.is_active(service, access)), (401, True))
    own = session.revoke_token(endpoint, token=access, token_type_hint="access_token", auth=session.token_auth)
    checks.equal("by its person", (own.status_code, at.ends(service, access)), (200, True))
    checks.outcome("resources refuse it", is_refused(session, f"{at.rest.base_url}/api/wallets"))
    checks.outcome("the session continues with a new one", at.is_active(service, session.refresh_token()["access_token"]))
    access, refresh = session.token["access_token"], session.token["refresh_token"]
    answer = session.revoke_token(endpoint, token=refresh, token_type_hint="refresh_token")
    checks.equal("a refresh token needs no bearer", (answer.status_code, at.is_active(service, refresh)), (200, False))
    checks.outcome("its access token ends with it", at.ends(service, access))
    checks.outcome("resources refuse that, too", is_refused(session, f"{at.rest.base_url}/api/wallets"))
    checks.equal("it refreshes nothing", error_of(session.refresh_token), "invalid_grant")
    checks.equal("a second revocation is answered alike", session.revoke_token(endpoint, token=refresh).status_code, 200)


def judge_exchange(checks, at, people):
    """A service acts for a person by the person's own token."""
    session, service = at.sign_in(people.person("delegating")), at.service(CLIENT)
    subject = session.token["access_token"]
    url = f"{at.state['internalTokenUrl']}/delegated"

    def exchange(token, **more):
        return service.fetch_token(url, grant_type=EXCHANGE, subject_token=token, subject_token_type=ACCESS_TOKEN, **more)

    answer = exchange(subject, scope="wallets:sign")
    claims, own = at.validator("service").claims(answer["access_token"]), at.validator("platform").claims(subject)
    checks.equal("the token names service and person", (claims["client_id"], claims["delegated_user_id"]), (CLIENT, own["sub"]))
    checks.equal("it has the requested scope alone", (claims["scope"], answer["scope"]), ("wallets:sign", "wallets:sign"))
    checks.equal("the answer names the type of the token (RFC 8693, 2.2.1)", answer.get("issued_token_type"), ACCESS_TOKEN)
    service.fetch_token(grant_type="client_credentials")
    caller = service
    checks.outcome("it is active", at.is_active(caller, answer["access_token"]))
    for name, text in {"another text": "x", "a service's own token": caller.token["access_token"], "a refresh token": session.token["refresh_token"]}.items():
        checks.equal(f"{name} is no subject", error_of(lambda text=text: exchange(text)), "invalid_grant")
    checks.equal("a scope that the client has not, for a person", error_of(lambda: exchange(subject, scope="inbox:write")), "invalid_scope")
    checks.equal("without a subject", error_of(lambda: service.fetch_token(url, grant_type=EXCHANGE)), "invalid_request")
    service.fetch_token(grant_type="client_credentials")
    session.revoke_token(at.metadata["revocation_endpoint"], token=session.token["refresh_token"])
    checks.outcome("it ends with the session of the person", at.ends(service, answer["access_token"]))
    checks.equal("a revoked token is no subject", error_of(lambda: exchange(subject)), "invalid_grant")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("state", help="local.json of a local mode")
    # Local mode serves the public endpoints without TLS.
    os.environ["AUTHLIB_INSECURE_TRANSPORT"] = "1"
    with open(parser.parse_args().state, encoding="utf-8") as file:
        at = Installation(json.load(file))
    checks, people = Checks(), People(at.rest, at.state["adminEmail"], at.state["adminPasswordFile"])
    person = people.person("client")
    judge_metadata(checks, at)
    session = at.sign_in(person)
    judge_access_token(checks, at, session, person)
    judge_password_grant(checks, at, person)
    service = judge_client_credentials(checks, at)
    judge_introspection(checks, at, session, service)
    judge_refresh(checks, at, person, service)
    judge_revocation(checks, at, people, service)
    judge_exchange(checks, at, people)
    checks.close()


if __name__ == "__main__":
    main()
