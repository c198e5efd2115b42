#!/usr/bin/env python3
"""Passkeys of an authenticator made with python-fido2, its server as a judge of what the installation asks for.

    passkeys.py http://localhost:8080 --email ada@example.org --password-file FILE
"""
import base64
import os
from pathlib import Path
from urllib.parse import urlsplit

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from fido2.cose import ES256
from fido2.server import Fido2Server
from fido2.webauthn import (
    AttestationObject,
    AttestedCredentialData,
    AuthenticatorData,
    CollectedClientData,
    PublicKeyCredentialCreationOptions,
    PublicKeyCredentialRequestOptions,
    PublicKeyCredentialRpEntity,
)

from client import Checks, Client, arguments

FLAG = AuthenticatorData.FLAG
VERIFIED = FLAG.UP | FLAG.UV


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def sha256(data):
    digest = hashes.Hash(hashes.SHA256())
    digest.update(data)
    return digest.finalize()


class Authenticator:
    """One passkey, for one domain. Each answer may differ from a right one in what `faults` names."""

    def __init__(self, rp_id, origin):
        self.rp_id, self.origin = rp_id, origin
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.id, self.counter, self.user = os.urandom(32), 0, b""

    def client_data(self, kind, challenge, origin):
        return CollectedClientData.create(kind, challenge, origin or self.origin)

    def create(self, options, origin=None, rp_id=None, flags=VERIFIED):
        self.user = options.user.id
        client_data = self.client_data(CollectedClientData.TYPE.CREATE, options.challenge, origin)
        public = ES256.from_cryptography_key(self.key.public_key())
        data = AuthenticatorData.create(
            sha256((rp_id or self.rp_id).encode()),
            flags | FLAG.AT,
            self.counter,
            AttestedCredentialData.create(bytes(16), self.id, public),
        )
        attestation = AttestationObject.create("none", data, {})
        response = {"clientDataJSON": b64(client_data), "attestationObject": b64(attestation)}
        return self.credential(response)

    def get(self, options, origin=None, rp_id=None, flags=VERIFIED, counter=None):
        self.counter = self.counter + 1 if counter is None else counter
        client_data = self.client_data(CollectedClientData.TYPE.GET, options.challenge, origin)
        data = AuthenticatorData.create(sha256((rp_id or self.rp_id).encode()), flags, self.counter)
        signature = self.key.sign(data + client_data.hash, ec.ECDSA(hashes.SHA256()))
        return self.credential(
            {
                "clientDataJSON": b64(client_data),
                "authenticatorData": b64(data),
                "signature": b64(signature),
                "userHandle": b64(self.user),
            }
        )

    def credential(self, response):
        return {"id": b64(self.id), "rawId": b64(self.id), "type": "public-key", "response": response}


def main():
    args = arguments(__doc__).parse_args()
    password = Path(args.password_file).read_text(encoding="utf-8").strip()
    client, checks = Client(args.base_url), Checks()
    address = urlsplit(args.base_url)
    rp_id, origin = address.hostname, f"{address.scheme}://{address.netloc}"
    client.token = client.sign_in(args.email, password)["access_token"]

    def creation():
        begun = client.post("/api/passkey/register/options", {"display_name": "Judge"})
        return begun["transaction_id"], PublicKeyCredentialCreationOptions.from_dict(begun["options"])

    def register(authenticator, **faults):
        transaction, options = creation()
        body = {"transaction_id": transaction, "attestation_response": authenticator.create(options, **faults)}
        return options, client.call("POST", "/api/passkey/register/verify", body), body

    authenticator = Authenticator(rp_id, origin)
    _, options = creation()
    checks.equal("the options are for the domain of the installation", options.rp.id, rp_id)
    checks.outcome("ES256 is among the algorithms", any(one.alg == ES256.ALGORITHM for one in options.pub_key_cred_params))
    checks.outcome("a challenge has 16 bytes at least", len(options.challenge) >= 16)
    checks.equal("the person is verified", options.authenticator_selection.user_verification, "required")
    for what, faults in {
        "for another origin": {"origin": "https://evil.example"},
        "for another domain": {"rp_id": "evil.example"},
        "without verification of the person": {"flags": FLAG.UP},
        "without presence of the person": {"flags": FLAG.UV},
    }.items():
        _, (status, answer), _ = register(authenticator, **faults)
        checks.equal(f"a credential {what} is refused", status, 400)
    options, (status, made), body = register(authenticator)
    checks.outcome("a right credential is added", status == 201 and made["status"] == "Active", (status, made))
    checks.equal("an answer acts once", client.call("POST", "/api/passkey/register/verify", body)[0], 400)
    # The same answer, judged by the server of python-fido2.
    server = Fido2Server(PublicKeyCredentialRpEntity(id=rp_id, name="judge"), verify_origin=lambda one: one == origin)
    state = {"challenge": b64(options.challenge), "user_verification": options.authenticator_selection.user_verification}
    accepted = server.register_complete(state, body["attestation_response"])
    checks.equal("python-fido2 accepts it, too", accepted.credential_data.credential_id, authenticator.id)
    _, (status, _), _ = register(authenticator)
    checks.equal("a credential that is known is refused", status, 409)
    client.token = None

    def request(path, body):
        begun = client.post(path, body)
        return begun["transaction_id"], PublicKeyCredentialRequestOptions.from_dict(begun["options"])

    def sign_in(**faults):
        transaction, options = request("/api/auth/passkey/assertion/options", {})
        body = {"transaction_id": transaction, "assertion_response": authenticator.get(options, **faults)}
        return options, client.call("POST", "/api/auth/passkey/assertion/verify", body), body

    for what, faults in {
        "for another origin": {"origin": "https://evil.example"},
        "for another domain": {"rp_id": "evil.example"},
        "without verification of the person": {"flags": FLAG.UP},
    }.items():
        _, (status, answer), _ = sign_in(**faults)
        checks.equal(f"an assertion {what} is refused", status, 401)
    options, (status, tokens), body = sign_in()
    checks.outcome("a right assertion signs in", status == 200 and "access_token" in tokens, (status, tokens))
    checks.equal("an assertion acts once", client.call("POST", "/api/auth/passkey/assertion/verify", body)[0], 401)
    state = {"challenge": b64(options.challenge), "user_verification": options.user_verification}
    found = server.authenticate_complete(state, [accepted.credential_data], body["assertion_response"])
    checks.equal("python-fido2 accepts it, too", found.credential_id, authenticator.id)

    begun = client.sign_in(args.email, password)
    checks.outcome("the passkey is a second factor", "passkey" in begun["available_methods"], begun)
    login_token = begun["login_token"]
    transaction, options = request("/api/auth/verify-passkey/options", {"login_token": login_token})
    checks.equal("whose options name it", [one.id for one in options.allow_credentials or []], [authenticator.id])
    confirmation = {"login_token": login_token, "transaction_id": transaction, "assertion_response": authenticator.get(options)}
    checks.equal("it completes a sign-in", client.call("POST", "/api/auth/verify-passkey", confirmation)[0], 200)

    _, (status, _), _ = sign_in(counter=1)
    checks.equal("a counter that goes back is refused", status, 401)
    _, (status, _), _ = sign_in(counter=1000)
    checks.equal("and disables the passkey", status, 401)
    checks.close()


if __name__ == "__main__":
    main()
