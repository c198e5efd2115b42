#!/usr/bin/env python3
"""Registers passkeys and signs in with them by fido2: its client is the browser, its server judges every answer, too.

    passkeys.py http://127.0.0.1:8080 --email admin@... --password-file FILE

The authenticator is software. Answers with one fault each must be refused by the installation and by fido2's server.
"""
import argparse
import os
from dataclasses import dataclass

import jwt
from fido2.attestation import PackedAttestation
from fido2.client import ClientError
from fido2.server import Fido2Server
from fido2.utils import websafe_decode, websafe_encode
from fido2.webauthn import AttestedCredentialData, PublicKeyCredentialCreationOptions, PublicKeyCredentialRequestOptions

from accounts import People, Rest
from checks import Checks
from software_key import FLAG, VERIFIED, Changes, SoftwareKey

REFUSED_ATTESTATION = (400, "INVALID_ATTESTATION")
REFUSED_ASSERTION = (401, "INVALID_ASSERTION")


@dataclass(frozen=True)
class Journey:
    """A person who adds passkeys and signs in with them."""

    checks: Checks
    rest: Rest
    person: object
    token: str
    origin: str

    # ------------------------------------------------------------ ceremonies

    def begin_registration(self):
        return self.begin("/api/passkey/register/options", {"display_name": "Key"}, self.token)

    def register(self, transaction, response):
        body = {"transaction_id": transaction, "attestation_response": response}
        return self.rest.send("POST", "/api/passkey/register/verify", body, self.token)

    def begin_sign_in(self):
        return self.begin("/api/auth/passkey/assertion/options", {})

    def sign_in(self, transaction, response):
        body = {"transaction_id": transaction, "assertion_response": response}
        return self.rest.send("POST", "/api/auth/passkey/assertion/verify", body)

    def begin_second_step(self, login):
        return self.begin("/api/auth/verify-passkey/options", {"login_token": login})

    def second_step(self, login, transaction, response):
        body = {"login_token": login, "transaction_id": transaction, "assertion_response": response}
        return self.rest.send("POST", "/api/auth/verify-passkey", body)

    def begin(self, path, body, token=None):
        begun = self.rest.expect(200, "POST", path, body, token)
        return begun["transaction_id"], begun["options"]

    def add(self, key):
        """A passkey that fido2's client adds; ends the program when it is refused."""
        transaction, options = self.begin_registration()
        response = dict(key.browser(self.origin).make_credential(PublicKeyCredentialCreationOptions.from_dict(options)))
        answer = self.register(transaction, response)
        if answer.status != 201:
            raise SystemExit(f"the passkey was not added: {answer}")
        return key

    def listed(self):
        return self.rest.expect(200, "GET", "/api/passkey/credentials", token=self.token)


def verify_packed(attestation_object, client_data_hash):
    PackedAttestation().verify(attestation_object.att_stmt, attestation_object.auth_data, client_data_hash)


def server_for(options, origin, attestation=None):
    """fido2's server in the place of the installation, and its state after these options."""
    rp = options.get("rp") or {"id": options["rpId"], "name": "installation"}
    verify = verify_packed if attestation == "direct" else None
    server = Fido2Server(rp, attestation=attestation, verify_origin=lambda found: found == origin, verify_attestation=verify)
    return server, {"challenge": options["challenge"], "user_verification": "required"}


def judged_by_server(act):
    """Whether fido2's server accepts, and else its reason."""
    try:
        act()
        return "accepted"
    except Exception as error:  # noqa: BLE001
        return f"refused: {error!r}"


def registered_by_server(options, origin, response, attestation=None):
    server, state = server_for(options, origin, attestation)
    return judged_by_server(lambda: server.register_complete(state, response))


def authenticated_by_server(options, origin, response, key):
    server, state = server_for(options, origin)
    credential = AttestedCredentialData.create(b"\0" * 16, key.credential_id, key.public)
    return judged_by_server(lambda: server.authenticate_complete(state, [credential], response))


# ---------------------------------------------------------------- honest passkeys


def judge_options(journey):
    """What an authenticator is asked for, as fido2 reads it."""
    checks, (_, options) = journey.checks, journey.begin_registration()
    read = PublicKeyCredentialCreationOptions.from_dict(options)
    checks.equal("the challenge has 32 bytes", len(read.challenge), 32)
    checks.equal("the user handle has 16 bytes, without the address", len(read.user.id), 16)
    checks.equal("the algorithms", [each.alg for each in read.pub_key_cred_params], [-7, -8, -257])
    checks.equal("verification of the person is required", str(read.authenticator_selection.user_verification), "required")
    _, options = journey.begin_sign_in()
    read = PublicKeyCredentialRequestOptions.from_dict(options)
    checks.equal("a sign-in names no passkey", read.allow_credentials or [], [])
    checks.equal("and requires verification", str(read.user_verification), "required")


def judge_honest(journey, key):
    """A passkey is registered, signs in by itself, and completes a sign-in by password."""
    checks, origin = journey.checks, journey.origin
    name = f"{key.algorithm}, attestation {key.attestation}"
    transaction, options = journey.begin_registration()
    response = dict(key.browser(origin).make_credential(PublicKeyCredentialCreationOptions.from_dict(options)))
    direct = "direct" if key.attestation == "packed" else None
    checks.equal(f"{name}: fido2's server registers it", registered_by_server(options, origin, response, direct), "accepted")
    answer = journey.register(transaction, response)
    checks.equal(f"{name}: it is added", answer.status, 201)

    transaction, options = journey.begin_sign_in()
    response = dict(key.browser(origin).get_assertion(PublicKeyCredentialRequestOptions.from_dict(options)).get_response(0))
    checks.equal(f"{name}: fido2's server accepts it", authenticated_by_server(options, origin, response, key), "accepted")
    answer = journey.sign_in(transaction, response)
    if checks.outcome(f"{name}: it signs in", answer.status == 200, answer):
        claims = jwt.decode(answer.body["access_token"], options={"verify_signature": False})
        checks.equal(f"{name}: as its person", claims["email"], journey.person.email)
        checks.equal(f"{name}: by a strong proof", (claims["acr"], claims["amr"]), ("strong", ["hwk", "user", "mfa"]))
        checks.outcome(f"{name}: the signals name it", websafe_encode(key.credential_id) in answer.body["signals"]["all_accepted_credential_ids"])

    login = journey.person.login()
    checks.outcome(f"{name}: the password asks for it", "passkey" in login.get("available_methods", []), login)
    transaction, options = journey.begin_second_step(login["login_token"])
    checks.outcome(f"{name}: the second step names it", websafe_encode(key.credential_id) in [each["id"] for each in options["allowCredentials"]])
    response = dict(key.browser(origin).get_assertion(PublicKeyCredentialRequestOptions.from_dict(options)).get_response(0))
    checks.equal(f"{name}: it completes the sign-in", journey.second_step(login["login_token"], transaction, response).status, 200)


def judge_known(journey, key):
    """A known passkey is excluded by the client, and refused when a client ignores that."""
    transaction, options = journey.begin_registration()
    try:
        key.browser(journey.origin).make_credential(PublicKeyCredentialCreationOptions.from_dict(options))
        code = None
    except ClientError as error:
        code = error.code
    journey.checks.equal("the client excludes a known passkey", code, ClientError.ERR.DEVICE_INELIGIBLE)
    answer = journey.register(transaction, key.registration(options, journey.origin, Changes()))
    journey.checks.equal("a known passkey is refused", answer.code, (409, "KNOWN_CREDENTIAL"))


# ---------------------------------------------------------------- faults


def next_port(origin):
    host, port = origin.rsplit(":", 1)
    return f"{host}:{int(port) + 1}"


# Changes of an honest answer, by origin and options; fido2's server refuses each of them, too.
FAULTS = {
    "another port": lambda origin, _: Changes(origin=next_port(origin)),
    "another host": lambda *_: Changes(origin="https://localhost.example"),
    "another scheme": lambda origin, _: Changes(origin=origin.replace("http:", "https:")),
    "an origin that begins alike": lambda origin, _: Changes(origin=f"{origin}.example"),
    "another rp.id": lambda *_: Changes(rp_id="example.org"),
    "an rp.id below": lambda *_: Changes(rp_id="login.localhost"),
    "no verification of the person": lambda *_: Changes(flags=FLAG.UP),
    "no presence of the person": lambda *_: Changes(flags=FLAG.UV),
    "another challenge": lambda *_: Changes(challenge=os.urandom(32)),
    "a challenge that is cut": lambda _, options: Changes(challenge=websafe_decode(options["challenge"])[:31]),
    "the type of the other ceremony": lambda _, options: Changes(type="webauthn.create" if "rpId" in options else "webauthn.get"),
    "a type that does not exist": lambda *_: Changes(type="payment.get"),
}
# fido2's server does not look for this one (WebAuthn Level 3, 7.1 and 7.2: BS without BE).
BACKED_UP_ALONE = Changes(flags=VERIFIED | FLAG.BS)


def judge_registration_faults(journey):
    """Each fault is refused, the honest answer after it is accepted once."""
    checks, origin = journey.checks, journey.origin
    for name, changes in FAULTS.items():
        transaction, options = journey.begin_registration()
        response = SoftwareKey().registration(options, origin, changes(origin, options))
        checks.outcome(f"registration, {name}: fido2's server refuses it", registered_by_server(options, origin, response) != "accepted")
        checks.equal(f"registration, {name}: is refused", journey.register(transaction, response).code, REFUSED_ATTESTATION)
    transaction, options = journey.begin_registration()
    unasked = SoftwareKey("ES384").registration(options, origin, Changes())
    checks.equal("registration, an algorithm that was not asked for", journey.register(transaction, unasked).code, REFUSED_ATTESTATION)
    backed_up = SoftwareKey().registration(options, origin, BACKED_UP_ALONE)
    checks.equal("registration, backed up and not eligible for it", journey.register(transaction, backed_up).code, REFUSED_ATTESTATION)
    packed = SoftwareKey(attestation="packed").registration(options, origin, Changes(spoils_signature=True))
    checks.outcome("registration, a spoiled attestation: fido2's server refuses it", registered_by_server(options, origin, packed, "direct") != "accepted")
    checks.equal("registration, a spoiled attestation", journey.register(transaction, packed).code, REFUSED_ATTESTATION)
    honest = SoftwareKey()
    checks.equal("registration, honest after faults", journey.register(transaction, honest.registration(options, origin, Changes())).status, 201)
    again = SoftwareKey().registration(options, origin, Changes())
    checks.equal("registration, a challenge used twice", journey.register(transaction, again).code, REFUSED_ATTESTATION)
    transaction, options = journey.begin_sign_in()
    options = {**options, "rp": {"id": options["rpId"]}}
    crossed = SoftwareKey().registration(options, origin, Changes())
    checks.equal("registration, with the challenge of a sign-in", journey.register(transaction, crossed).code, REFUSED_ATTESTATION)


def judge_sign_in_faults(journey, key):
    """Faults of a discoverable sign-in."""
    checks, origin = journey.checks, journey.origin
    spoiled = {"a spoiled signature": lambda *_: Changes(spoils_signature=True)}
    for name, changes in {**FAULTS, **spoiled}.items():
        transaction, options = journey.begin_sign_in()
        response = key.assertion(options, origin, changes(origin, options))
        checks.outcome(f"sign-in, {name}: fido2's server refuses it", authenticated_by_server(options, origin, response, key) != "accepted")
        checks.equal(f"sign-in, {name}: is refused", journey.sign_in(transaction, response).code, REFUSED_ASSERTION)
    unseen = {
        "the handle of another account": Changes(user_handle=os.urandom(16)),
        "no handle": Changes(user_handle=b""),
        "backed up and not eligible for it": BACKED_UP_ALONE,
    }
    for name, changes in unseen.items():
        transaction, options = journey.begin_sign_in()
        response = key.assertion(options, origin, changes)
        checks.equal(f"sign-in, {name}", journey.sign_in(transaction, response).code, REFUSED_ASSERTION)
    transaction, options = journey.begin_sign_in()
    unknown = SoftwareKey(user_id=key.user_id).assertion(options, origin, Changes())
    checks.equal("sign-in, an unknown passkey", journey.sign_in(transaction, unknown).code, (401, "UNKNOWN_CREDENTIAL"))
    response = key.assertion(options, origin, Changes())
    checks.equal("sign-in, honest after faults", journey.sign_in(transaction, response).status, 200)
    checks.equal("sign-in, an answer used twice", journey.sign_in(transaction, response).code, REFUSED_ASSERTION)
    response = key.assertion(options, origin, Changes())
    checks.equal("sign-in, a challenge used twice", journey.sign_in(transaction, response).code, REFUSED_ASSERTION)


def judge_second_step_faults(journey, key, other):
    """Faults of a second step; each wrong answer is one of the five that a login token has."""
    checks, origin = journey.checks, journey.origin
    chosen = ["another port", "another rp.id", "no verification of the person", "another challenge"]
    login = journey.person.login_token()
    for name in chosen:
        transaction, options = journey.begin_second_step(login)
        response = key.assertion(options, origin, FAULTS[name](origin, options))
        checks.equal(f"second step, {name}", journey.second_step(login, transaction, response).code, REFUSED_ASSERTION)
    transaction, options = journey.begin_second_step(login)
    response = key.assertion(options, origin, Changes())
    checks.equal("second step, honest after four faults", journey.second_step(login, transaction, response).status, 200)
    checks.equal("second step, the login token again", journey.second_step(login, transaction, response).code, (401, "INVALID_LOGIN_TOKEN"))

    first, second = journey.person.login_token(), journey.person.login_token()
    transaction, options = journey.begin_second_step(first)
    response = key.assertion(options, origin, Changes())
    checks.equal("second step, begun with another login token", journey.second_step(second, transaction, response).code, REFUSED_ASSERTION)
    transaction, options = journey.begin_sign_in()
    response = key.assertion(options, origin, Changes())
    checks.equal("second step, with the challenge of a sign-in", journey.second_step(second, transaction, response).code, REFUSED_ASSERTION)
    transaction, options = journey.begin_second_step(second)
    response = other.assertion(options, origin, Changes())
    checks.equal("second step, the passkey of another person", journey.second_step(second, transaction, response).code, REFUSED_ASSERTION)
    transaction, options = journey.begin_second_step(second)
    response = key.assertion(options, origin, Changes())
    checks.equal("the challenge of a second step opens no sign-in", journey.sign_in(transaction, response).code, REFUSED_ASSERTION)
    for _ in range(2):
        transaction, options = journey.begin_second_step(second)
        journey.second_step(second, transaction, key.assertion(options, origin, Changes(spoils_signature=True)))
    answer = journey.rest.send("POST", "/api/auth/verify-passkey/options", {"login_token": second})
    checks.equal("second step, after five wrong answers", answer.status, 429)


# ---------------------------------------------------------------- counters


def judge_synchronised(journey):
    """A passkey that is synchronised has counter 0 always, and signs in more than once."""
    key = journey.add(SoftwareKey(counts=False))
    for time in ("first", "second"):
        transaction, options = journey.begin_sign_in()
        answer = journey.sign_in(transaction, key.assertion(options, journey.origin, Changes()))
        journey.checks.equal(f"a passkey without a counter signs in a {time} time", answer.status, 200)
    kinds = [each["device_type"] for each in journey.listed()["credentials"]]
    journey.checks.equal("it is listed as one of several devices", kinds, ["multiDevice"])


def judge_counter(journey, regression, name):
    """A counter that goes back or stands still disables the passkey."""
    checks, origin = journey.checks, journey.origin
    key = journey.add(SoftwareKey(counter=40))
    transaction, options = journey.begin_sign_in()
    checks.equal(f"counter, {name}: 41 after 40 signs in", journey.sign_in(transaction, key.assertion(options, origin, Changes())).status, 200)
    key.counter -= regression + 1
    transaction, options = journey.begin_sign_in()
    response = key.assertion(options, origin, Changes())
    checks.equal(f"counter, {name}: is refused", journey.sign_in(transaction, response).code, REFUSED_ASSERTION)
    key.counter += 100
    transaction, options = journey.begin_sign_in()
    response = key.assertion(options, origin, Changes())
    checks.equal(f"counter, {name}: the passkey stays refused", journey.sign_in(transaction, response).code, REFUSED_ASSERTION)
    listed = journey.listed()
    disabled = [each for each in listed["credentials"] if each["disabled_reason"] == "counter-regression"]
    checks.outcome(f"counter, {name}: it is listed as disabled", [each["status"] for each in disabled] == ["Disabled"], listed["credentials"])
    checks.outcome(f"counter, {name}: authenticators are to hide it", websafe_encode(key.credential_id) not in listed["all_accepted_credential_ids"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("base_url")
    parser.add_argument("--email", required=True)
    parser.add_argument("--password-file", required=True)
    args = parser.parse_args()
    checks, rest = Checks(), Rest(args.base_url)
    people, origin = People(rest, args.email, args.password_file), rest.origin()

    def journey_of(name):
        person = people.person(name)
        return Journey(checks, rest, person, person.token(), origin)

    honest = journey_of("honest")
    judge_options(honest)
    keys = [SoftwareKey(algorithm, form) for algorithm in ("ES256", "EdDSA", "RS256") for form in ("none", "packed")]
    for key in keys:
        judge_honest(honest, key)
    judge_known(honest, keys[0])
    faulty = journey_of("faulty")
    judge_registration_faults(faulty)
    key = faulty.add(SoftwareKey())
    judge_sign_in_faults(faulty, key)
    judge_second_step_faults(faulty, key, keys[0])
    judge_synchronised(journey_of("synchronised"))
    judge_counter(journey_of("back"), 5, "back by five")
    judge_counter(journey_of("still"), 0, "standing still")
    checks.close()


if __name__ == "__main__":
    main()
