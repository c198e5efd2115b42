"""Bytes, trees, keys, addresses and times of a register, and everything of it that is hashed or signed.

The rules of a register are in register_rules.py. Formats: vectors/ledger.json in
components/core/ledger has figures for each of them.
"""
import base64
import hashlib
import json
import re
from datetime import date, datetime, timedelta, timezone

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.utils import Prehashed, encode_dss_signature
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_der_public_key

ZERO = "0" * 64
PROPOSAL, PREVOTE, PRECOMMIT = 1, 2, 3
ALGORITHMS = ("ED25519", "NISTP256", "RSA-4096")


class Refused(Exception):
    """The evidence does not hold. `code`: the validation code of a rule that refuses, when it has one."""

    def __init__(self, what, code=None):
        super().__init__(what if code is None else f"{code}: {what}")
        self.code = code


def need(condition, what, code=None):
    if not condition:
        raise Refused(what, code)


# ---------------------------------------------------------------- bytes and JSON


def sha256(data):
    return hashlib.sha256(data).digest()


def b64(data):
    return base64.b64encode(data).decode()


def unb64(text):
    """Bytes of base64 in its one standard, padded spelling."""
    data = base64.b64decode(text, validate=True)
    need(b64(data) == text, "base64 that is not in its standard form")
    return data


def unb64_any(text):
    """Bytes of base64 in either alphabet, padded or not; every accepted text has one meaning."""
    standard = text.replace("-", "+").replace("_", "/")
    body = standard.rstrip("=")
    need(standard in (body, body + "=" * (-len(body) % 4)), "padding of base64")
    need(not (re.search("[-_]", text) and re.search("[+/]", text)), "two alphabets in one base64 text")
    data = base64.b64decode(body + "=" * (-len(body) % 4), validate=True)
    need(b64(data).rstrip("=") == body, "base64 with stray bits")
    return data


def number_text(value):
    """A number as ECMAScript writes it (RFC 8785, section 3.2.2.3)."""
    if isinstance(value, int):
        return str(value)
    if value == 0:
        return "0"
    sign, digits, exponent = ("-" if value < 0 else ""), *shortest_digits(abs(value))
    n = len(digits) + exponent  # the value is 0.digits times ten to the n
    if len(digits) <= n <= 21:
        return sign + digits + "0" * (n - len(digits))
    if 0 < n <= 21:
        return f"{sign}{digits[:n]}.{digits[n:]}"
    if -6 < n <= 0:
        return f"{sign}0.{'0' * -n}{digits}"
    mantissa = digits[0] + ("." + digits[1:] if len(digits) > 1 else "")
    return f"{sign}{mantissa}e{'+' if n > 0 else '-'}{abs(n - 1)}"


def shortest_digits(value):
    """The fewest digits, without zeros at either end, and the power of ten of the last one."""
    mantissa, _, exponent = repr(value).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits, power = whole + fraction, int(exponent or 0) - len(fraction)
    stripped = digits.rstrip("0")
    return stripped.lstrip("0"), power + len(digits) - len(stripped)


def jcs_text(value):
    if value is None or isinstance(value, (bool, str)):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, (int, float)):
        return number_text(value)
    if isinstance(value, list):
        return "[" + ",".join(jcs_text(each) for each in value) + "]"
    names = sorted(value, key=lambda name: name.encode("utf-16-be"))
    return "{" + ",".join(f"{json.dumps(name, ensure_ascii=False)}:{jcs_text(value[name])}" for name in names) + "}"


def jcs(value):
    """Canonical JSON (RFC 8785). A member that is absent has no key; null is never used for it."""
    return jcs_text(value).encode()


def read_json(data):
    """JSON data as every reader must understand it: no member twice, numbers are those of ECMAScript."""

    def members(pairs):
        need(len({name for name, _ in pairs}) == len(pairs), "a member is there twice")
        return dict(pairs)

    def number(text):
        value = float(text)
        need(abs(value) != float("inf"), "a number is too large")
        return int(value) if value.is_integer() and abs(value) < 2**53 else value

    def constant(text):
        raise Refused(f"{text} is not JSON")

    return json.loads(data, object_pairs_hook=members, parse_int=number, parse_float=number, parse_constant=constant)


def length_prefixed(text):
    data = text.encode()
    return len(data).to_bytes(2, "big") + data


# ---------------------------------------------------------------- time

TICKS_PER_SECOND = 10_000_000
TIMESTAMP = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,9}))?(?:Z|([+-])(\d{2}):(\d{2}))", re.ASCII
)


def ticks(text):
    """Ticks of 100 ns since 1970 of an ISO 8601 timestamp with an offset; None when the text is not one."""
    parts = TIMESTAMP.fullmatch(text)
    if not parts:
        return None
    year, month, day, hour, minute, second = (int(part) for part in parts.groups()[:6])
    fraction, sign, off_hours, off_minutes = parts.groups()[6:]
    if hour > 23 or minute > 59 or second > 59 or int(off_hours or 0) > 23 or int(off_minutes or 0) > 59:
        return None
    try:  # the calendar repeats every 400 years, and datetime has no year 0
        days = date(year or 400, month, day).toordinal() - (0 if year else 146_097) - date(1970, 1, 1).toordinal()
    except ValueError:
        return None
    offset = (int(off_hours or 0) * 60 + int(off_minutes or 0)) * (-1 if sign == "-" else 1)
    seconds = ((days * 24 + hour) * 60 + minute - offset) * 60 + second
    return seconds * TICKS_PER_SECOND + int((fraction or "").ljust(7, "0")[:7])


def timestamp_text(at):
    """Ticks in the form that services of Chancery make: YYYY-MM-DDTHH:mm:ss.ffffff0+00:00."""
    when = datetime(1970, 1, 1) + timedelta(microseconds=at // 10)
    return when.strftime("%Y-%m-%dT%H:%M:%S.%f").rjust(26, "0") + "0+00:00"


def ledger_now():
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f0+00:00")


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


class Log:
    """A tree that only grows, held as the roots of its complete subtrees: memory for the logarithm of its size."""

    def __init__(self):
        self.size, self.edge = 0, []  # (leaves, root) of each subtree, the largest first

    def append(self, leaf):
        self.size, self.edge = self.size + 1, self.edge_with(leaf)

    def edge_with(self, leaf):
        edge = [*self.edge, (1, leaf)]
        while len(edge) > 1 and edge[-2][0] == edge[-1][0]:
            (size, left), (_, right) = edge[-2:]
            edge[-2:] = [(2 * size, node_hash(left, right))]
        return edge

    def root_with(self, leaf):
        """The root with one more leaf."""
        *rest, (_, root) = self.edge_with(leaf)
        for _, left in reversed(rest):
            root = node_hash(left, root)
        return root


def climb(leaf, path):
    """The root that a leaf and its path of {hash, position} give."""
    for step in path:
        sibling = bytes.fromhex(step["hash"])
        leaf = node_hash(sibling, leaf) if step["position"] == "Left" else node_hash(leaf, sibling)
    return leaf


# ---------------------------------------------------------------- keys and signatures

P256_SPKI = bytes.fromhex("3059301306072a8648ce3d020106082a8648ce3d03010703420004")
RSA_SPKI = bytes.fromhex("30820222300d06092a864886f70d01010105000382020f003082020a0282020100")
RSA_END = bytes.fromhex("0203010001")


def is_key_form(algorithm, key):
    """One key has one spelling: 32 raw bytes, or SPKI DER of an uncompressed point or of a modulus of 4096 bits."""
    if algorithm == "ED25519":
        return len(key) == 32
    if algorithm == "NISTP256":
        return len(key) == 91 and key.startswith(P256_SPKI)
    framed = key.startswith(RSA_SPKI) and key.endswith(RSA_END)
    return algorithm == "RSA-4096" and len(key) == 550 and framed and key[33] >= 0x80


def spki(algorithm, key):
    if algorithm != "ED25519":
        return key
    return bytes.fromhex("302a300506032b6570032100") + key


GROUP_ORDER = 2**252 + 27742317777372353535851937790883648493
FIELD = 2**255 - 19
SMALL_ORDER_Y = (0, 1, FIELD - 1) + tuple(
    int.from_bytes(bytes.fromhex(text), "little")
    for text in (
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    )
)


def is_strict_ed25519(key, signature):
    """Checks before the equation: S below the group order, A and R canonical and not of small order."""
    points = [int.from_bytes(point, "little") % 2**255 for point in (key, signature[:32])]
    small = any(y >= FIELD or y in SMALL_ORDER_Y for y in points)
    return len(signature) == 64 and not small and int.from_bytes(signature[32:], "little") < GROUP_ORDER


def signature_holds(algorithm, key, message, signature, prehashed=False):
    """`prehashed`: the message is a SHA-256 digest; Ed25519 takes it as the message itself."""
    if not is_key_form(algorithm, key):
        return False
    try:
        if algorithm == "ED25519":
            Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
            return is_strict_ed25519(key, signature)
        public = load_der_public_key(key)
        digest = Prehashed(hashes.SHA256()) if prehashed else hashes.SHA256()
        if isinstance(public, ec.EllipticCurvePublicKey) and len(signature) == 64:
            r, s = int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:], "big")
            public.verify(encode_dss_signature(r, s), message, ec.ECDSA(digest))
            return True
        if isinstance(public, rsa.RSAPublicKey):
            public.verify(signature, message, padding.PKCS1v15(), digest)
            return True
    except (InvalidSignature, ValueError):
        pass
    return False


def text_signature_holds(key, signature, message, prehashed=False):
    """The same for {algorithm, publicKey} and a signature as base64 of any spelling; malformed texts are invalid."""
    try:
        raw, sign = unb64_any(key["publicKey"]), unb64_any(signature)
    except (Refused, ValueError):
        return False
    return signature_holds(key["algorithm"], raw, message, sign, prehashed)


def raw_public_key(public):
    return b64(public.public_bytes(Encoding.Raw, PublicFormat.Raw))


# ---------------------------------------------------------------- addresses

CHARSET = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
MEMBER = "did:platform:w:"


def bech32m_check(values):
    check = 1
    for value in [ord("w") >> 5, 0, ord("w") & 31, *values]:
        top = check >> 25
        check = (check & 0x1FFFFFF) << 5 ^ value
        for i, generator in enumerate((0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)):
            check ^= generator if top >> i & 1 else 0
    return check ^ 0x2BC830A3


def wallet_address(algorithm, key):
    """bech32m, prefix w: one five-bit algorithm code, then SHA-256 of the key's SPKI DER."""
    bits = "".join(f"{byte:08b}" for byte in sha256(spki(algorithm, key)))
    bits += "0" * (-len(bits) % 5)
    values = [ALGORITHMS.index(algorithm)] + [int(bits[i : i + 5], 2) for i in range(0, len(bits), 5)]
    check = bech32m_check(values + [0] * 6)
    return "w1" + "".join(CHARSET[v] for v in values + [check >> 5 * (5 - i) & 31 for i in range(6)])


def is_wallet_address(text):
    if len(text) != 61 or not text.startswith("w1") or not set(text[2:]) <= set(CHARSET):
        return False
    values = [CHARSET.index(each) for each in text[2:]]
    return bech32m_check(values) == 0 and values[0] < len(ALGORITHMS) and values[-7] % 16 == 0


def member_did(address):
    return MEMBER + address


def key_did(key):
    """The member that holds a key {algorithm, publicKey}."""
    return member_did(wallet_address(key["algorithm"], unb64(key["publicKey"])))


# ---------------------------------------------------------------- what is hashed and signed


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
    names = ("validatorId", "publicKey", "algorithm")
    ordered = sorted(members, key=lambda m: m["validatorId"])
    return tree_root([leaf_hash(jcs({name: m[name] for name in names})) for m in ordered]).hex()


def quorum(size, threshold=1):
    """Votes that decide among `size` members."""
    return max(2 * size // 3 + 1, min(threshold, size))


def sign_bytes(kind, message):
    """The bytes that a proposal or a vote signs. `docket` absent: a nil vote, zeros for hash and roots."""
    docket = message.get("docket") or {"docketHash": ZERO, "merkleRoot": ZERO, "logRoot": ZERO}
    return (
        b"platform:consensus:v1\n"
        + bytes([kind])
        + length_prefixed(message["networkId"])
        + bytes.fromhex(message["registerId"])
        + message["height"].to_bytes(8, "big")
        + message["round"].to_bytes(4, "big")
        + message.get("polRound", -1).to_bytes(4, "big", signed=True)
        + bytes.fromhex(docket["docketHash"] + docket["merkleRoot"] + docket["logRoot"] + message["validatorSetHash"])
        + length_prefixed(message["timestamp"])
    )


def attestation_bytes(register, name, entry):
    """The data that a member of the roster signed to accept its role."""
    data = {"role": entry["role"], "subject": entry["subject"], "grantedAt": entry["grantedAt"]}
    return jcs({**data, "registerId": register, "registerName": name})


def possession_bytes(register, entry):
    """The bytes that a validator signs to prove possession of its key."""
    facts = {"registerId": register, "validatorId": entry["validatorId"], "publicKey": entry["publicKey"]}
    return b"platform:validator-pop:v1\n" + jcs(facts)


def roster_hash(register, roster):
    members = [{name: entry[name] for name in ("subject", "role", "publicKey", "algorithm")} for entry in roster]
    members.sort(key=lambda member: member["subject"])
    return sha256(jcs({"domain": "platform:roster:v1", "registerId": register, "roster": members})).hex()


def decided(operation):
    """The operation without the members that change while it is decided on."""
    return {name: operation[name] for name in operation if name not in ("status", "approvalSignatures")}


def approval_digest(register, approver, is_approval, operation, roster_hash_before):
    """The 32 bytes that an approver of an operation signs."""
    said = {
        "domain": "platform:governance-approval:v1",
        "registerId": register,
        "approverDid": approver,
        "decision": "approve" if is_approval else "reject",
        "operation": decided(operation),
        "rosterHashBefore": roster_hash_before,
    }
    return sha256(jcs(said))


def operation_id(register, operation, roster_hash_before):
    """The identity of an operation on a register: it is enacted once, in whatever transaction it comes."""
    said = {"domain": "platform:governance-operation:v1", "registerId": register, "operation": decided(operation)}
    return sha256(jcs({**said, "rosterHashBefore": roster_hash_before})).hex()


def suspension_id(register, accused, roster_hash_before):
    """The identity of a suspension: observers may propose it to a roster once a term of a validator."""
    said = {"domain": "platform:governance-suspension:v1", "registerId": register}
    term = {name: accused[name] for name in ("validatorId", "effectiveFromDocket")}
    return sha256(jcs({**said, **term, "rosterHashBefore": roster_hash_before})).hex()
