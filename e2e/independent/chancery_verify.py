#!/usr/bin/env python3
"""Checks a register of Chancery from its REST interface alone, with none of Chancery's code.

    chancery_verify.py http://127.0.0.1:8080 REGISTER_ID --email admin@... --password-file FILE [--submit]

Recomputes docket hashes and links, record leaves, Merkle roots, the register log, inclusion proofs, the checkpoint
and every signature; then flips one byte of each kind of evidence and insists that the check refuses it. With --submit
it first signs a transaction of its own and sends it: an example for clients in any language.

Needs Python 3.9 and, for signatures, the package `cryptography`.
"""
import argparse
import base64
import hashlib
import json
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from datetime import datetime, timezone

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.utils import Prehashed, encode_dss_signature
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_der_public_key

ZERO = "0" * 64
PRECOMMIT = 3


class Refused(Exception):
    """The evidence does not hold."""


def need(condition, what):
    if not condition:
        raise Refused(what)


# ---------------------------------------------------------------- bytes


def sha256(data):
    return hashlib.sha256(data).digest()


def b64(data):
    return base64.b64encode(data).decode()


def unb64(text):
    return base64.b64decode(text, validate=True)


def jcs(value):
    """RFC 8785 for what occurs in ledger formats: strings, booleans, small integers, arrays, objects."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def length_prefixed(text):
    data = text.encode()
    return len(data).to_bytes(2, "big") + data


# ---------------------------------------------------------------- trees (RFC 6962)


def leaf_hash(data):
    return sha256(b"\x00" + data)


def node_hash(left, right):
    return sha256(b"\x01" + left + right)


def tree_root(leaves):
    if len(leaves) < 2:
        return leaves[0] if leaves else sha256(b"")
    k = 1
    while k * 2 < len(leaves):
        k *= 2
    return node_hash(tree_root(leaves[:k]), tree_root(leaves[k:]))


def climb(leaf, path):
    """The root that a leaf and its path of {hash, position} give."""
    for step in path:
        sibling = bytes.fromhex(step["hash"])
        leaf = node_hash(sibling, leaf) if step["position"] == "Left" else node_hash(leaf, sibling)
    return leaf


# ---------------------------------------------------------------- signatures and addresses


def spki(algorithm, key):
    if algorithm != "ED25519":
        return key
    return Ed25519PublicKey.from_public_bytes(key).public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def signature_holds(algorithm, key, message, signature, prehashed=False):
    """`prehashed`: the message is a SHA-256 digest; Ed25519 takes it as the message itself."""
    try:
        if algorithm == "ED25519":
            Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
            return True
        public = load_der_public_key(key)
        digest = Prehashed(hashes.SHA256()) if prehashed else hashes.SHA256()
        if algorithm == "NISTP256" and isinstance(public, ec.EllipticCurvePublicKey) and len(signature) == 64:
            r, s = int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:], "big")
            public.verify(encode_dss_signature(r, s), message, ec.ECDSA(digest))
            return True
        if algorithm == "RSA-4096" and isinstance(public, rsa.RSAPublicKey):
            public.verify(signature, message, padding.PKCS1v15(), digest)
            return True
    except (InvalidSignature, ValueError):
        pass
    return False


CHARSET = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
CODES = {"ED25519": 0, "NISTP256": 1, "RSA-4096": 2}


def wallet_address(algorithm, key):
    """bech32m, prefix w: one five-bit algorithm code, then SHA-256 of the key's SPKI DER."""
    bits = "".join(f"{byte:08b}" for byte in sha256(spki(algorithm, key)))
    bits += "0" * (-len(bits) % 5)
    values = [CODES[algorithm]] + [int(bits[i : i + 5], 2) for i in range(0, len(bits), 5)]
    check = 1
    for value in [ord("w") >> 5, 0, ord("w") & 31, *values, 0, 0, 0, 0, 0, 0]:
        top = check >> 25
        check = (check & 0x1FFFFFF) << 5 ^ value
        for i, generator in enumerate((0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)):
            check ^= generator if top >> i & 1 else 0
    check ^= 0x2BC830A3
    return "w1" + "".join(CHARSET[v] for v in values + [check >> 5 * (5 - i) & 31 for i in range(6)])


# ---------------------------------------------------------------- the ledger's formats


def transaction_id(envelope, signers):
    names = ("registerId", "blueprintId", "actionId", "payloadHash", "previousTransactionId", "createdAt", "expiresAt")
    known = {name: envelope[name] for name in names if envelope.get(name) is not None}
    known["metadata"] = envelope.get("metadata", {})
    if envelope.get("recipients"):
        known["recipients"] = envelope["recipients"]
    return sha256(b"platform:tx:v1\n" + jcs({**known, "signers": signers})).hex()


def signing_digest(tx_id, payload_hash):
    return sha256(f"{tx_id}:{payload_hash}".encode())


def docket_hash(docket):
    parts = [docket["registerId"], str(docket["docketNumber"]), docket["previousHash"], docket["timestamp"]]
    return sha256("|".join([*parts, docket["validatorAddress"], *docket["transactionIds"]]).encode()).hex()


def log_leaf(docket):
    names = ("registerId", "docketNumber", "hash", "merkleRoot", "timestamp", "validatorSetHash")
    return leaf_hash(jcs({name: docket[name] for name in names}))


def validator_set_hash(members):
    ordered = sorted(members, key=lambda m: m["validatorId"])
    return tree_root([leaf_hash(jcs({k: m[k] for k in ("validatorId", "publicKey", "algorithm")})) for m in ordered]).hex()


def precommit_bytes(network, docket, certificate, timestamp):
    return (
        b"platform:consensus:v1\n"
        + bytes([PRECOMMIT])
        + length_prefixed(network)
        + bytes.fromhex(docket["registerId"])
        + certificate["height"].to_bytes(8, "big")
        + certificate["round"].to_bytes(4, "big")
        + (-1).to_bytes(4, "big", signed=True)
        + bytes.fromhex(docket["hash"] + docket["merkleRoot"] + docket["logRoot"] + docket["validatorSetHash"])
        + length_prefixed(timestamp)
    )


# ---------------------------------------------------------------- checks; each raises Refused


def check_record(record, payload, tx_id):
    """One sealed record: canonical bytes, payload hash, derived id, sender and every signature."""
    value = json.loads(record)
    need(jcs(value) == record, f"record {tx_id} is not in canonical form")
    need(value["txId"] == tx_id, f"record {tx_id} names another transaction")
    need(sha256(payload).hex() == value["payloadHash"], f"payload of {tx_id} does not hash to payloadHash")
    need(len(payload) == value["payloadSize"], f"payloadSize of {tx_id}")
    signers = [s["publicKey"] for s in value["signatures"]]
    need(signers, f"{tx_id} has no signature")
    if value["bound"]:
        need(transaction_id(value, signers) == tx_id, f"{tx_id} is not the hash of its envelope")
    digest = signing_digest(tx_id, value["payloadHash"])
    for s in value["signatures"]:
        holds = signature_holds(s["algorithm"], unb64(s["publicKey"]), digest, unb64(s["signatureValue"]), prehashed=True)
        need(holds, f"a signature of {tx_id} does not verify")
    first = value["signatures"][0]
    need(wallet_address(first["algorithm"], unb64(first["publicKey"])) == value["senderAddress"], f"sender of {tx_id}")


def check_docket(docket, previous, leaves, log):
    """Number, link, time, hash, Merkle root and log root of one docket; `log` holds the leaves before it."""
    number = docket["docketNumber"]
    need(number == (previous["docketNumber"] + 1 if previous else 0), f"docket {number} is out of order")
    need(docket["previousHash"] == (previous["hash"] if previous else ZERO), f"docket {number} does not link")
    if previous:
        need(docket["timestamp"] > previous["timestamp"], f"docket {number} is not later than its predecessor")
    need(docket_hash(docket) == docket["hash"], f"hash of docket {number}")
    need(docket["transactionCount"] == len(docket["transactionIds"]), f"transactionCount of docket {number}")
    need(tree_root(leaves).hex() == docket["merkleRoot"], f"merkleRoot of docket {number}")
    need(tree_root([*log, log_leaf(docket)]).hex() == docket["logRoot"], f"logRoot of docket {number}")


def check_certificate(docket, members, network, threshold):
    """Distinct members, a quorum of one round, every signature over this docket."""
    certificate, number = docket["certificate"], docket["docketNumber"]
    need(validator_set_hash(members) == docket["validatorSetHash"], f"validator set of docket {number}")
    same = all(certificate[k] == docket[d] for k, d in (("docketHash", "hash"), ("merkleRoot",) * 2, ("logRoot",) * 2))
    need(same and certificate["height"] == number, f"certificate of docket {number} is for another docket")
    keys = {m["validatorId"]: m for m in members}
    signers = {s["validatorId"] for s in certificate["signatures"]}
    need(len(signers) == len(certificate["signatures"]), f"certificate of docket {number} counts a member twice")
    quorum = max(2 * len(members) // 3 + 1, min(threshold, len(members)))
    need(len(signers) >= quorum, f"certificate of docket {number} has {len(signers)} of {quorum} signatures")
    for s in certificate["signatures"]:
        need(s["validatorId"] in keys, f"{s['validatorId']} is not a member")
        message = precommit_bytes(network, docket, certificate, s["timestamp"])
        key = unb64(keys[s["validatorId"]]["publicKey"])
        need(signature_holds("ED25519", key, message, unb64(s["signature"])), f"precommit of {s['validatorId']}")


def check_attestations(docket):
    """The specification's votes: docketHash|validatorAddress|approved|timestamp, signed as text."""
    for vote in docket.get("consensusVotes", []):
        text = "|".join([vote["docketHash"], vote["validatorAddress"], "true" if vote["approved"] else "false", vote["timestamp"]])
        key = unb64(vote["publicKey"])
        need(vote["docketHash"] == docket["hash"], "a vote for another docket")
        need(wallet_address(vote["algorithm"], key) == vote["validatorAddress"], "a vote under a foreign address")
        need(signature_holds(vote["algorithm"], key, text.encode(), bytes.fromhex(vote["signature"])), "a vote's signature")


def check_inclusion(proof, record, docket, log_root, log_size):
    root = climb(leaf_hash(record), proof["proofPath"])
    need(root.hex() == proof["merkleRoot"] == docket["merkleRoot"], "inclusion proof of a transaction")
    steps = proof["logProof"]["path"]
    need(climb(log_leaf(docket), steps).hex() == log_root, "inclusion proof of a docket in the log")
    need(proof["logProof"]["treeSize"] == log_size, "size of the log in the proof")


def check_checkpoint(note, vkey, origin_end, log_root, size):
    """C2SP tlog-checkpoint: three lines, an empty one, then signatures of named keys."""
    name, key_id, key = vkey.split("+", 2)
    key = unb64(key)
    need(key[0] == 1 and sha256(name.encode() + b"\n" + key)[:4].hex() == key_id, "checkpoint key")
    body, _, lines = note.partition("\n\n")
    body += "\n"
    origin, count, root = body.splitlines()[:3]
    need(origin == name and origin.endswith(origin_end), "origin of the checkpoint")
    need(int(count) == size and unb64(root).hex() == log_root, "checkpoint commits to another log")
    for line in lines.splitlines():
        dash, signer, blob = line.split(" ", 2)
        raw = unb64(blob)
        if dash == "\u2014" and signer == name and raw[:4].hex() == key_id:
            need(signature_holds("ED25519", key[1:], body.encode(), raw[4:]), "signature of the checkpoint")
            return
    raise Refused("the checkpoint has no signature of its log")


# ---------------------------------------------------------------- REST


class Api:
    def __init__(self, base, email, password):
        self.base = base.rstrip("/")
        form = urllib.parse.urlencode({"grant_type": "password", "username": email, "password": password})
        answer = self.call("POST", "/api/service-auth/token", form.encode(), "application/x-www-form-urlencoded")
        self.token = json.loads(answer)["access_token"]

    def call(self, method, path, body=None, content_type="application/json"):
        headers = {"Accept": "application/json, text/plain, */*"}
        if body is not None:
            headers["Content-Type"] = content_type
        if hasattr(self, "token"):
            headers["Authorization"] = f"Bearer {self.token}"
        request = urllib.request.Request(self.base + path, data=body, headers=headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=30) as response:
                return response.read()
        except urllib.error.HTTPError as error:
            raise SystemExit(f"{method} {path}: {error.code} {error.read().decode(errors='replace')}") from None

    def get(self, path):
        return json.loads(self.call("GET", path))

    def post(self, path, value):
        return json.loads(self.call("POST", path, json.dumps(value).encode()))

    def dockets(self, register):
        page = 1
        while True:
            answer = self.get(f"/api/registers/{register}/dockets?order=asc&page={page}&pageSize=100")
            for listed in answer["items"]:
                yield self.get(f"/api/registers/{register}/dockets/{listed['docketNumber']}")
            if not answer["hasMore"]:
                return
            page += 1


def submit(api, register):
    """Signs one Action transaction with a key of its own and waits until it is sealed."""
    key = Ed25519PrivateKey.generate()
    public = b64(key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw))
    payload = {"made-by": "an independent client", "n": 1}
    now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f0+00:00")
    envelope = {"registerId": register, "blueprintId": "independent", "actionId": "1", "createdAt": now, "metadata": {}}
    envelope["payloadHash"] = sha256(jcs(payload)).hex()
    tx_id = transaction_id(envelope, [public])
    signature = b64(key.sign(signing_digest(tx_id, envelope["payloadHash"])))
    api.post(
        "/api/v1/transactions/validate",
        {
            "TransactionId": tx_id,
            "RegisterId": register,
            "BlueprintId": envelope["blueprintId"],
            "ActionId": envelope["actionId"],
            "Payload": payload,
            "PayloadHash": envelope["payloadHash"],
            "Signatures": [{"PublicKey": public, "SignatureValue": signature, "Algorithm": "ED25519"}],
            "CreatedAt": now,
            "Metadata": {},
        },
    )
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if api.get(f"/api/registers/{register}/transactions/{tx_id}")["status"] == "confirmed":
            return tx_id
        time.sleep(0.05)
    raise Refused(f"{tx_id} was not confirmed within 20 s")


# ---------------------------------------------------------------- the whole register


def collect(api, register):
    """Everything the checks need, as the interface gives it."""
    dockets, records, payloads, proofs = list(api.dockets(register)), {}, {}, {}
    for docket in dockets:
        for tx_id in docket["transactionIds"]:
            path = f"/api/registers/{register}/transactions/{tx_id}"
            records[tx_id] = api.call("GET", f"{path}/record")
            payloads[tx_id] = unb64(api.get(path)["payload"])
    for docket in (dockets[0], dockets[-1]):
        tx_id = docket["transactionIds"][-1]
        proofs[tx_id] = (api.get(f"/api/registers/{register}/transactions/{tx_id}/inclusion-proof"), docket)
    note = api.call("GET", f"/api/registers/{register}/checkpoint").decode()
    vkey = api.call("GET", f"/api/registers/{register}/checkpoint/key").decode().strip()
    return {"dockets": dockets, "records": records, "payloads": payloads, "proofs": proofs, "note": note, "vkey": vkey}


def check(register, evidence):
    """All checks over collected evidence; returns the head hash."""
    dockets = evidence["dockets"]
    need(dockets, "the register has no docket")
    genesis = json.loads(evidence["payloads"][dockets[0]["transactionIds"][0]])
    need(genesis["registerId"] == register, "the genesis record names another register")
    members = genesis["validators"]["validators"]
    network = json.loads(dockets[0]["genesisConfig"])["networkId"]
    threshold = ((genesis.get("registerPolicy") or {}).get("consensus") or {}).get("signatureThresholdMin", 1)
    previous, log = None, []
    for docket in dockets:
        for tx_id in docket["transactionIds"]:
            check_record(evidence["records"][tx_id], evidence["payloads"][tx_id], tx_id)
        leaves = [leaf_hash(evidence["records"][t]) for t in docket["transactionIds"]]
        check_docket(docket, previous, leaves, log)
        check_certificate(docket, members, network, threshold)
        check_attestations(docket)
        log.append(log_leaf(docket))
        previous = docket
    for tx_id, (proof, docket) in evidence["proofs"].items():
        check_inclusion(proof, evidence["records"][tx_id], docket, previous["logRoot"], len(log))
    check_checkpoint(evidence["note"], evidence["vkey"], f"/registers/{register}", previous["logRoot"], len(log))
    return previous["hash"]


def flipped(text):
    """One hex or base64 character changed, in the middle."""
    i = len(text) // 2
    return text[:i] + ("1" if text[i] != "1" else "2") + text[i + 1 :]


def tamperings(evidence):
    """One altered copy for each kind of evidence."""
    last = len(evidence["dockets"]) - 1
    tx_id = evidence["dockets"][last]["transactionIds"][-1]

    def altered(change):
        copy = json.loads(json.dumps({k: v for k, v in evidence.items() if k not in ("records", "payloads")}))
        copy["records"], copy["payloads"] = dict(evidence["records"]), dict(evidence["payloads"])
        change(copy)
        return copy

    def in_docket(member):
        return lambda e: e["dockets"][last].__setitem__(member, flipped(e["dockets"][last][member]))

    def in_bytes(kind):
        def change(e):
            data = bytearray(e[kind][tx_id])
            data[len(data) // 2] ^= 1
            e[kind][tx_id] = bytes(data)

        return change

    def in_certificate(e):
        signature = e["dockets"][last]["certificate"]["signatures"][0]
        signature["signature"] = flipped(signature["signature"])

    def in_path(e):
        path = e["proofs"][tx_id][0]["logProof"]["path"]
        path[0]["hash"] = flipped(path[0]["hash"])

    def in_note(e):
        size = e["note"].splitlines()[1]
        e["note"] = e["note"].replace(f"\n{size}\n", f"\n{int(size) + 1}\n", 1)

    for member in ("hash", "previousHash", "merkleRoot", "logRoot", "validatorSetHash"):
        yield f"docket.{member}", altered(in_docket(member))
    for kind in ("records", "payloads"):
        yield kind[:-1], altered(in_bytes(kind))
    yield "certificate signature", altered(in_certificate)
    if evidence["proofs"][tx_id][0]["logProof"]["path"]:
        yield "inclusion path", altered(in_path)
    yield "checkpoint", altered(in_note)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("base_url")
    parser.add_argument("register_id")
    parser.add_argument("--email", required=True)
    parser.add_argument("--password-file", required=True)
    parser.add_argument("--submit", action="store_true")
    args = parser.parse_args()
    with open(args.password_file, encoding="utf-8") as file:
        api = Api(args.base_url, args.email, file.read().strip())
    passed = failed = 0
    try:
        if args.submit:
            print(f"submitted and confirmed {submit(api, args.register_id)}")
            passed += 1
        evidence = collect(api, args.register_id)
        head = check(args.register_id, evidence)
        count = sum(len(d["transactionIds"]) for d in evidence["dockets"])
        print(f"verified {len(evidence['dockets'])} dockets, {count} transactions, head {head}")
        passed += 1
        for what, copy in tamperings(evidence):
            try:
                check(args.register_id, copy)
                print(f"NOT refused: one byte of {what} changed")
                failed += 1
            except (Refused, ValueError, KeyError) as refusal:
                print(f"refused with one byte changed in {what}: {refusal}")
                passed += 1
    except Refused as refusal:
        print(f"REFUSED: {refusal}")
        failed += 1
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
