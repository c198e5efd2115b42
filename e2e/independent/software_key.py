"""An authenticator in software (CTAP2, WebAuthn Level 3, 6) of fido2's types, behind which fido2's client is the browser."""
import os
from dataclasses import dataclass, field

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from fido2 import cbor
from fido2.client import DefaultClientDataCollector, Fido2Client
from fido2.cose import CoseKey
from fido2.ctap import CtapDevice, CtapError
from fido2.ctap2 import Ctap2
from fido2.hid import CAPABILITY, CTAPHID
from fido2.utils import sha256, websafe_encode
from fido2.webauthn import Aaguid, AttestationObject, AttestedCredentialData, AuthenticatorData, CollectedClientData

FLAG = AuthenticatorData.FLAG
VERIFIED = FLAG.UP | FLAG.UV
BACKED_UP = FLAG.BE | FLAG.BS

# by the name of the algorithm: a new private key, and the arguments of its signatures
ALGORITHMS = {
    "ES256": (lambda: ec.generate_private_key(ec.SECP256R1()), lambda: [ec.ECDSA(hashes.SHA256())]),
    "ES384": (lambda: ec.generate_private_key(ec.SECP384R1()), lambda: [ec.ECDSA(hashes.SHA384())]),
    "EdDSA": (ed25519.Ed25519PrivateKey.generate, list),
    "RS256": (lambda: rsa.generate_private_key(65537, 2048), lambda: [padding.PKCS1v15(), hashes.SHA256()]),
}


@dataclass
class Changes:
    """What differs from an honest answer; None changes nothing."""

    origin: str | None = None
    rp_id: str | None = None
    challenge: bytes | None = None
    type: str | None = None
    flags: int | None = None
    user_handle: bytes | None = None
    spoils_signature: bool = False


@dataclass
class SoftwareKey(CtapDevice):
    """Holds one passkey. `counts`: false for a passkey that is synchronised, whose counter stays 0."""

    algorithm: str = "ES256"
    attestation: str = "none"
    counts: bool = True
    counter: int = 0
    rp_id: str = ""
    user_id: bytes = b""
    credential_id: bytes = field(default_factory=lambda: os.urandom(32))
    capabilities = CAPABILITY.CBOR

    def __post_init__(self):
        create, self.signing = ALGORITHMS[self.algorithm]
        self.private = create()
        self.public = CoseKey.for_name(self.algorithm).from_cryptography_key(self.private.public_key())

    @classmethod
    def list_devices(cls):
        return iter(())

    def browser(self, origin):
        return Fido2Client(self, DefaultClientDataCollector(origin))

    def call(self, cmd, data=b"", event=None, on_keepalive=None):
        """One command of CTAP2."""
        if cmd != CTAPHID.CBOR:
            return bytes([CtapError.ERR.INVALID_COMMAND])
        commands = {
            Ctap2.CMD.GET_INFO: self.info,
            Ctap2.CMD.MAKE_CREDENTIAL: self.make_credential,
            Ctap2.CMD.GET_ASSERTION: self.get_assertion,
        }
        try:
            return b"\0" + cbor.encode(commands[data[0]](cbor.decode(data[1:]) if data[1:] else {}))
        except CtapError as error:
            return bytes([error.code])

    def info(self, _parameters):
        return {1: ["FIDO_2_0"], 3: bytes(Aaguid.NONE), 4: {"rk": True, "up": True, "uv": True}, 5: 4096, 6: [2]}

    def make_credential(self, parameters):
        if any(each["id"] == self.credential_id for each in parameters.get(5, [])):
            raise CtapError(CtapError.ERR.CREDENTIAL_EXCLUDED)
        if self.public.ALGORITHM not in [each["alg"] for each in parameters[4]]:
            raise CtapError(CtapError.ERR.UNSUPPORTED_ALGORITHM)
        self.rp_id, self.user_id = parameters[2]["id"], parameters[3]["id"]
        made = self.attest(parameters[1], self.rp_id, VERIFIED)
        return {1: made.fmt, 2: bytes(made.auth_data), 3: made.att_stmt}

    def get_assertion(self, parameters):
        allowed = [each["id"] for each in parameters.get(3, [])]
        if parameters[1] != self.rp_id or (allowed and self.credential_id not in allowed):
            raise CtapError(CtapError.ERR.NO_CREDENTIALS)
        options = parameters.get(5, {})
        flags = (FLAG.UP if options.get("up", True) else 0) | (FLAG.UV if options.get("uv") else 0)
        data, signature = self.sign(parameters[2], self.rp_id, flags)
        return {1: {"id": self.credential_id, "type": "public-key"}, 2: bytes(data), 3: signature, 4: {"id": self.user_id}}

    def attest(self, client_data_hash, rp_id, flags):
        credential = AttestedCredentialData.create(Aaguid.NONE, self.credential_id, self.public)
        data = AuthenticatorData.create(sha256(rp_id.encode()), self.with_backup(flags) | FLAG.AT, self.counter, credential)
        if self.attestation == "none":
            return AttestationObject.create("none", data, {})
        signature = self.private.sign(data + client_data_hash, *self.signing())
        return AttestationObject.create("packed", data, {"alg": self.public.ALGORITHM, "sig": signature})

    def with_backup(self, flags):
        return flags if self.counts else flags | BACKED_UP

    def sign(self, client_data_hash, rp_id, flags):
        self.counter += bool(self.counts and flags & FLAG.UP)
        data = AuthenticatorData.create(sha256(rp_id.encode()), self.with_backup(flags), self.counter)
        return data, self.private.sign(data + client_data_hash, *self.signing())

    # ------------------------------------------------------------ answers that a browser would not give

    def registration(self, options, origin, changes):
        """`RegistrationResponseJSON` with changes."""
        data = client_data(CollectedClientData.TYPE.CREATE, options, origin, changes)
        flags = VERIFIED if changes.flags is None else changes.flags
        made = self.attest(data.hash, changes.rp_id or options["rp"]["id"], flags)
        if changes.spoils_signature:
            made = AttestationObject.create(made.fmt, made.auth_data, {**made.att_stmt, "sig": spoiled(made.att_stmt["sig"])})
        return self.answer({"clientDataJSON": data.b64, "attestationObject": websafe_encode(made)})

    def assertion(self, options, origin, changes):
        """`AuthenticationResponseJSON` with changes."""
        data = client_data(CollectedClientData.TYPE.GET, options, origin, changes)
        flags = VERIFIED if changes.flags is None else changes.flags
        authenticator, signature = self.sign(data.hash, changes.rp_id or options["rpId"], flags)
        handle = self.user_id if changes.user_handle is None else changes.user_handle
        return self.answer(
            {
                "clientDataJSON": data.b64,
                "authenticatorData": websafe_encode(authenticator),
                "signature": websafe_encode(spoiled(signature) if changes.spoils_signature else signature),
                "userHandle": websafe_encode(handle),
            }
        )

    def answer(self, response):
        name = websafe_encode(self.credential_id)
        return {"id": name, "rawId": name, "type": "public-key", "clientExtensionResults": {}, "response": response}


def client_data(kind, options, origin, changes):
    challenge = changes.challenge or options["challenge"]
    return CollectedClientData.create(changes.type or str(kind), challenge, changes.origin or origin)


def spoiled(signature):
    return signature[:-1] + bytes([signature[-1] ^ 1])
