#!/usr/bin/env python3
"""Opens with jwcrypto what the wallet service wraps, and makes with jwcrypto what it opens.

    jose_wallet.py make http://127.0.0.1:8080 --email admin@... --password-file FILE --file EXCHANGE
    jose_wallet.py check --file EXCHANGE

`make` creates a wallet of each key type, derives the keys of their mnemonics itself (BIP-39, SLIP-0010) and exchanges
JWEs in both directions over the REST interface. It writes JWEs for several recipients to a file; another program has
their content keys unwrapped over gRPC and adds them to the file, and `check` opens the contents with these.
"""
import argparse
import hashlib
import hmac
import json
import os
import sys
import urllib.error
import urllib.request

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric import ec, x25519
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_der_public_key
from jwcrypto import jwe, jwk
from jwcrypto.common import base64url_decode, base64url_encode

from ledger_formats import b64, unb64
from rest_interface import Api

PAYLOAD_ENCRYPTION = "platform:payload-encryption"
PRIMARY_SLOT, PAYLOAD_SLOT = 0, 110
P256_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
TEXTS = ["Grüße, 世界", " ", "a\0b", "x" * 100_000]
PARTIES = [{}, {"apu": base64url_encode("Alice"), "apv": base64url_encode("Bob")}, {"apv": base64url_encode("é" * 40)}]


# ---------------------------------------------------------------- keys of a mnemonic


def seed_of(mnemonic):
    return hashlib.pbkdf2_hmac("sha512", mnemonic.encode(), b"mnemonic", 2048)


def derived(curve, seed, slot):
    """The private key of m/44'/0'/0'/0'/{slot}' (SLIP-0010)."""
    node = hmac.digest(curve, seed, "sha512")
    for level in (44, 0, 0, 0, slot):
        data = b"\0" + node[:32] + (level + 0x80000000).to_bytes(4, "big")
        child = hmac.digest(node[32:], data, "sha512")
        if curve == b"Nist256p1 seed":
            scalar = (int.from_bytes(child[:32], "big") + int.from_bytes(node[:32], "big")) % P256_ORDER
            child = scalar.to_bytes(32, "big") + child[32:]
        node = child
    return node[:32]


def private_key(key_type, mnemonic, slot):
    if key_type == "NISTP256":
        scalar = derived(b"Nist256p1 seed", seed_of(mnemonic), slot)
        return ec.derive_private_key(int.from_bytes(scalar, "big"), ec.SECP256R1())
    ed25519_seed = derived(b"ed25519 seed", seed_of(mnemonic), slot)
    # The scalar of an Ed25519 key (RFC 8032, section 5.1.5) is the X25519 key, which clamps it by itself.
    return x25519.X25519PrivateKey.from_private_bytes(hashlib.sha512(ed25519_seed).digest()[:32])


def public_bytes(key):
    public = key.public_key()
    if isinstance(public, x25519.X25519PublicKey):
        return public.public_bytes(Encoding.Raw, PublicFormat.Raw)
    return public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def jwk_of(key):
    return jwk.JWK.from_pyca(key)


class Wallet:
    """A new wallet, its keys by slot, and the keys that others encrypt to by `kid`."""

    def __init__(self, api, key_type):
        made = api.post("/api/wallets", {"title": f"JOSE {key_type}", "keyType": key_type})
        self.id, self.address, self.key_type = made["id"], made["walletAddress"], key_type
        self.alg = "RSA-OAEP-256" if key_type == "RSA" else "ECDH-ES+A256KW"
        self.made = made
        self.payload_kid = self.address if key_type == "RSA" else f"{self.address}#{PAYLOAD_ENCRYPTION}"
        if key_type == "RSA":
            self.private, self.public = {}, {self.address: jwk_of(load_der_public_key(unb64(made["publicKey"])))}
            return
        kids = {self.address: PRIMARY_SLOT, self.payload_kid: PAYLOAD_SLOT}
        self.private = {kid: private_key(key_type, made["mnemonic"], slot) for kid, slot in kids.items()}
        self.public = {kid: jwk_of(key.public_key()) for kid, key in self.private.items()}

    def header(self, kid, **more):
        return {"alg": self.alg, "kid": kid, **more}


# ---------------------------------------------------------------- checks


class Report:
    passed = failed = 0

    def outcome(self, what, holds):
        print(f"{'ok ' if holds else 'NOT'} {what}")
        self.passed, self.failed = self.passed + bool(holds), self.failed + (not holds)

    def close(self):
        print(f"{self.passed} passed, {self.failed} failed")
        sys.exit(1 if self.failed else 0)


def status_of(api, path, value):
    """Status and body of a POST that may be refused."""
    request = urllib.request.Request(api.base + path, json.dumps(value).encode(), method="POST")
    request.add_header("Content-Type", "application/json")
    request.add_header("Authorization", f"Bearer {api.token}")
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read() or b"{}")


def encrypted_by_the_wallet(api, report, wallet):
    """What the wallet service wraps for a wallet is opened by the key of its mnemonic."""
    for text in TEXTS:
        body = {"data": text, "recipientWalletId": wallet.address}
        token = api.post(f"/api/wallets/{wallet.id}/encrypt", body)["encryptedData"]
        opened = jwe.JWE()
        opened.deserialize(token)
        header = json.loads(opened.objects["protected"])
        names = (header["alg"], header["enc"], header["kid"]) == (wallet.alg, "A256GCM", wallet.payload_kid)
        if wallet.key_type == "RSA":
            # The private key never leaves the service.
            holds = len(opened.objects["encrypted_key"]) == 512
        else:
            opened.decrypt(jwk_of(wallet.private[wallet.payload_kid]))
            holds = opened.payload == text.encode()
        report.outcome(f"{wallet.key_type}: wrapped by the wallet, {len(text)} characters", names and holds)


def made_by_jwcrypto(api, report, wallet):
    """What jwcrypto makes for each key of a wallet is opened by the wallet service; what was changed is refused."""
    path = f"/api/wallets/{wallet.id}/decrypt"
    for kid, key in wallet.public.items():
        for parties in PARTIES if wallet.key_type != "RSA" else [{}]:
            for text in TEXTS[:3]:
                protected = json.dumps({**wallet.header(kid), **parties, "enc": "A256GCM"})
                token = jwe.JWE(text.encode(), protected=protected, recipient=key).serialize(compact=True)
                answer = api.post(path, {"encryptedData": token})
                report.outcome(f"{wallet.key_type}: made by jwcrypto for {kid[61:] or 'the primary key'}, {sorted(parties)}", answer["data"] == text)
        head, key_part, iv, text, tag = token.split(".")
        flipped = tag[:3] + ("A" if tag[3] != "A" else "B") + tag[4:]
        status, refused = status_of(api, path, {"encryptedData": ".".join((head, key_part, iv, text, flipped))})
        report.outcome(f"{wallet.key_type}: a changed tag is refused", (status, refused.get("code")) == (422, "DECRYPT_FAILED"))
        if wallet.key_type == "RSA":
            continue
        protected = json.dumps({"alg": "ECDH-ES", "enc": "A256GCM", "kid": kid})
        direct = jwe.JWE(b"x", protected=protected, recipient=key).serialize(compact=True)
        report.outcome(f"{wallet.key_type}: direct agreement is refused", status_of(api, path, {"encryptedData": direct})[0] == 422)


def for_several(wallets, parties, text):
    """One JWE for every key of every wallet, with additional authenticated data."""
    made = jwe.JWE(text.encode(), protected=json.dumps({"enc": "A256GCM"}), aad=b"register|instance|1|group")
    for wallet in wallets:
        more = {} if wallet.key_type == "RSA" else parties
        for kid, key in wallet.public.items():
            made.add_recipient(key, header=json.dumps(wallet.header(kid, **more)))
    return json.loads(made.serialize())


def make(args, report):
    with open(args.password_file, encoding="utf-8") as file:
        api = Api(args.base_url, args.email, file.read().strip())
    wallets = [Wallet(api, key_type) for key_type in ("ED25519", "NISTP256", "RSA")]
    for wallet in wallets:
        if wallet.private:
            holds = b64(public_bytes(wallet.private[wallet.payload_kid])) == wallet.made["encryptionPublicKey"]
            report.outcome(f"{wallet.key_type}: the key of slot 110 follows from the mnemonic", holds)
        encrypted_by_the_wallet(api, report, wallet)
        made_by_jwcrypto(api, report, wallet)
    jwes = [for_several(wallets, parties, text) for parties in PARTIES for text in TEXTS[:3]]
    exchange = {"wallets": [wallet.address for wallet in wallets], "jwes": jwes}
    with open(args.file, "w", encoding="utf-8", opener=private_file) as file:
        json.dump(exchange, file)


def check(args, report):
    """Every unwrapped content key opens its JWE."""
    with open(args.file, encoding="utf-8") as file:
        exchange = json.load(file)
    texts = TEXTS[:3] * len(PARTIES)
    for number, (made, keys, text) in enumerate(zip(exchange["jwes"], exchange["contentKeys"], texts, strict=True)):
        sealed = base64url_decode(made["ciphertext"]) + base64url_decode(made["tag"])
        data = f"{made['protected']}.{made['aad']}".encode()
        holds = len(keys) == len(made["recipients"])
        for key in keys:
            try:
                opened = AESGCM(bytes.fromhex(key)).decrypt(base64url_decode(made["iv"]), sealed, data)
            except (InvalidTag, ValueError):
                opened = None
            holds = holds and opened == text.encode()
        report.outcome(f"JWE {number}: {len(keys)} content keys unwrapped over gRPC open it", holds)


def private_file(path, flags):
    return os.open(path, flags, 0o600)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    making = commands.add_parser("make")
    making.add_argument("base_url")
    making.add_argument("--email", required=True)
    making.add_argument("--password-file", required=True)
    for command in (making, commands.add_parser("check")):
        command.add_argument("--file", required=True)
    args = parser.parse_args()
    report = Report()
    {"make": make, "check": check}[args.command](args, report)
    report.close()


if __name__ == "__main__":
    main()
