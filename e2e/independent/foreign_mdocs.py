"""Mdocs that `pymdoccbor` issues, presented by a device of this module, and malformed ones, each with one fault."""
import copy
import datetime
import hashlib
from dataclasses import dataclass, field

import cbor2
from cbor2 import CBORTag
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from jwcrypto.jwk import JWK
from pymdoccbor.mdoc.issuer import MdocCborIssuer
from pymdoccbor.tools import thaw_cbor

from foreign_sd_jwts import REMOVED, b64, sign_der, sign_raw, swap_halves

DOC_TYPE, NAMESPACE = "org.iso.18013.5.1.mDL", "org.iso.18013.5.1"
SESSION = {
    "clientId": "x509_san_dns:verifier.example",
    "nonce": "n-0123456789",
    "responseUri": "https://verifier.example/response",
}
STATUS = {"status_list": {"idx": 7, "uri": "https://issuer.example/lists/1"}}
ES256 = {1: -7}
SIGNER_PURPOSE = "1.0.18013.5.1.2"
DAY = datetime.timedelta(days=1)

issuer_key, device_key, other_key, root_key = (JWK.generate(kty="EC", crv="P-256") for _ in range(4))


def certificate(key, signer, names, days=(-10, 10), purposes=(SIGNER_PURPOSE,), usage=True):
    """A document signer; the subject and the issuer are named, and a root names itself."""
    subject, issuer = (
        x509.Name([x509.NameAttribute(NameOID.COUNTRY_NAME, "DE"), x509.NameAttribute(NameOID.COMMON_NAME, name)])
        for name in names
    )
    now = datetime.datetime.now(datetime.timezone.utc).replace(microsecond=0)
    is_root = names[0] == names[1]
    usages = {name: False for name in ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement")}
    usages |= {"encipher_only": False, "decipher_only": False, "crl_sign": is_root, "key_cert_sign": is_root or not usage}
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.get_op_key("verify"))
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + days[0] * DAY)
        .not_valid_after(now + days[1] * DAY)
        .add_extension(x509.BasicConstraints(ca=is_root, path_length=0 if is_root else None), critical=True)
        .add_extension(x509.KeyUsage(digital_signature=not is_root and usage, **usages), critical=True)
    )
    if purposes and not is_root:
        identifiers = [x509.ObjectIdentifier(each) for each in purposes]
        builder = builder.add_extension(x509.ExtendedKeyUsage(identifiers), critical=True)
    return builder.sign(signer.get_op_key("sign"), hashes.SHA256()).public_bytes(serialization.Encoding.DER)


root = certificate(root_key, root_key, ("Root", "Root"))
leaf = certificate(issuer_key, root_key, ("Signer", "Root"))


def coordinates(key):
    numbers = key.get_op_key("verify").public_numbers()
    return numbers.x.to_bytes(32, "big"), numbers.y.to_bytes(32, "big")


def cose_key(key):
    x, y = coordinates(key)
    return {1: 2, -1: 1, -2: x, -3: y}


def shapes():
    """Elements in forms that issuers use; each has `family_name`."""
    licence = [{"vehicle_category_code": "B", "issue_date": "2015-07-01"}]
    driver = {"family_name": "Müller", "birth_date": "1990-02-28", "age_over_18": True, "height": 181}
    yield "one namespace", {NAMESPACE: {**driver, "driving_privileges": licence}}
    yield "two namespaces", {NAMESPACE: driver, "org.example.second": {"reference": "P-1", "level": -7}}
    yield "bytes and structures", {NAMESPACE: {"family_name": "Müller", "portrait": b"\xff\xd8" * 300, "place": {"city": "Ulm"}}}
    yield "one element", {NAMESPACE: {"family_name": "Müller"}}


def issue(data):
    """A document of pymdoccbor, with its parts as they can be changed."""
    x, y = coordinates(issuer_key)
    secret = issuer_key.get_op_key("sign").private_numbers().private_value.to_bytes(32, "big")
    key = {"KTY": "EC2", "CURVE": "P_256", "ALG": "ES256", "D": secret, "X": x, "Y": y}
    today = datetime.datetime.now(datetime.timezone.utc)
    device_x, device_y = coordinates(device_key)
    made = MdocCborIssuer(private_key=key, alg="ES256").new(
        data=copy.deepcopy(data),
        doctype=DOC_TYPE,
        validity={"issuance_date": f"{today - DAY:%Y-%m-%d}", "expiry_date": f"{today + DAY:%Y-%m-%d}"},
        devicekeyinfo={"KTY": "EC2", "CURVE": "P_256", "X": device_x, "Y": device_y},
        x509_chain=[leaf],
        revocation=copy.deepcopy(STATUS),
    )
    return made["documents"][0]["issuerSigned"]


@dataclass
class Parts:
    """A presentation before it is signed; `issued` is the `issuerAuth` of pymdoccbor where the parts are as it made them."""

    name_spaces: dict
    mso: dict
    issued: object = None
    protected: object = field(default_factory=lambda: dict(ES256))
    unprotected: dict = field(default_factory=lambda: {33: leaf})
    issuer_key: JWK = issuer_key
    issuer_signer: object = sign_raw
    payload: object = None
    doc_type: object = DOC_TYPE
    session: dict = field(default_factory=lambda: dict(SESSION))
    device_protected: object = field(default_factory=lambda: dict(ES256))
    device_unprotected: dict = field(default_factory=dict)
    device_payload: object = None
    device_spaces: object = field(default_factory=lambda: CBORTag(24, cbor2.dumps({})))
    device_key: JWK = device_key
    device_signer: object = sign_raw
    edits: dict = field(default_factory=dict)

    def edit(self, name, value):
        return self.edits[name](value) if name in self.edits else value

    def issuer_auth(self):
        payload = cbor2.dumps(CBORTag(24, cbor2.dumps(self.mso))) if self.payload is None else self.payload
        protected = self.protected if isinstance(self.protected, bytes) else cbor2.dumps(self.protected)
        signature = self.issuer_signer(self.issuer_key, cbor2.dumps(["Signature1", protected, b"", payload]))
        return [protected, self.unprotected, payload, signature]

    def device_signed(self):
        info = [self.session["clientId"], self.session["nonce"], None, self.session["responseUri"]]
        transcript = [None, None, ["OpenID4VPHandover", hashlib.sha256(cbor2.dumps(info)).digest()]]
        authentication = cbor2.dumps(["DeviceAuthentication", transcript, self.doc_type, self.device_spaces])
        protected = self.device_protected if isinstance(self.device_protected, bytes) else cbor2.dumps(self.device_protected)
        signed = cbor2.dumps(["Signature1", protected, b"", cbor2.dumps(CBORTag(24, authentication))])
        sign1 = [protected, self.device_unprotected, self.device_payload, self.device_signer(self.device_key, signed)]
        sign1 = self.edit("deviceSignature", sign1)
        return {"nameSpaces": self.device_spaces, "deviceAuth": self.edit("deviceAuth", {"deviceSignature": sign1})}

    def assemble(self):
        auth = self.edit("issuerAuth", self.issuer_auth() if self.issued is None else self.issued)
        issuer_signed = self.edit("issuerSigned", {"nameSpaces": self.name_spaces, "issuerAuth": auth})
        document = {"docType": self.doc_type, "issuerSigned": issuer_signed, "deviceSigned": self.device_signed()}
        document = self.edit("document", document)
        response = self.edit("response", {"version": "1.0", "documents": [document], "status": 0})
        return self.edit("text", b64(self.edit("bytes", cbor2.dumps(response))))



def parts_of(issuer_signed):
    """The parts of an issued document; times stay text, as they were written."""
    _protected, _unprotected, payload, _signature = issuer_signed["issuerAuth"]
    mso = thaw_cbor(cbor2.loads(cbor2.loads(payload).value))
    times = {name: tdate(value) for name, value in mso["validityInfo"].items()}
    name_spaces = {name: list(items) for name, items in issuer_signed["nameSpaces"].items()}
    return Parts(name_spaces, {**mso, "validityInfo": times})


def tdate(moment, days=0):
    return CBORTag(0, f"{moment + days * DAY:%Y-%m-%dT%H:%M:%SZ}")


def put(name, value):
    return lambda parts: setattr(parts, name, value)


def edit(name, function):
    def change(parts):
        parts.edits[name] = function

    return change


def member(name, value):
    """A function that gives a map another member, or removes it."""

    def change(members):
        others = {key: each for key, each in members.items() if key != name}
        return others if value is REMOVED else {**others, name: value}

    return change


def mso(name, value):
    return lambda parts: setattr(parts, "mso", member(name, value)(parts.mso))


def validity(name, value):
    return lambda parts: mso("validityInfo", member(name, value)(parts.mso["validityInfo"]))(parts)


def item(function, signed=False):
    """Changes the first element; `signed` digests are those of the changed one."""

    def change(parts):
        name_space, items = next(iter(parts.name_spaces.items()))
        before = cbor2.loads(items[0].value)
        items[0] = function(dict(before), items[0])
        if signed:
            parts.mso["valueDigests"][name_space][before["digestID"]] = hashlib.sha256(cbor2.dumps(items[0])).digest()

    return change


def embedded(value):
    return CBORTag(24, cbor2.dumps(value))


def item_member(name, value, signed=False):
    return item(lambda members, _: embedded(member(name, value)(members)), signed)


def digests(function):
    def change(parts):
        for name in parts.mso["valueDigests"]:
            parts.mso["valueDigests"][name] = function(parts.mso["valueDigests"][name])

    return change


def renamed(where, name):
    """The first namespace has another name, among the elements or among the digests."""

    def change(parts):
        if where == "mso":
            parts.mso["valueDigests"] = {name: parts.mso["valueDigests"][NAMESPACE]}
        else:
            parts.name_spaces = {name: parts.name_spaces[NAMESPACE]}

    return change


def add_item(identifier, name):
    """One more element in the first namespace, which the issuer signs: by the id of the first one, or a free one."""

    def change(parts):
        name_space, items = next(iter(parts.name_spaces.items()))
        first = cbor2.loads(items[0].value)
        taken = {"digestID": first["digestID"] if identifier is None else identifier}
        made = embedded({**first, **taken, "elementIdentifier": name or first["elementIdentifier"]})
        items.append(made)
        parts.mso["valueDigests"][name_space].setdefault(taken["digestID"], hashlib.sha256(cbor2.dumps(made)).digest())

    return change


def issued_by(key, der):
    def change(parts):
        parts.issuer_key, parts.unprotected = key, {33: der}

    return change


def certificate_faults():
    made = {
        "of another root": ("TRUST_ISSUER_NOT_LISTED", certificate(issuer_key, other_key, ("Signer", "Other root"))),
        "by another key with the name of the root": ("TRUST_ISSUER_NOT_LISTED", certificate(issuer_key, other_key, ("Signer", "Root"))),
        "expired": ("TRUST_CERT_EXPIRED", certificate(issuer_key, root_key, ("Signer", "Root"), days=(-10, -1))),
        "not valid yet": ("TRUST_CERT_EXPIRED", certificate(issuer_key, root_key, ("Signer", "Root"), days=(1, 10))),
        "for servers": ("TRUST_CHAIN_INVALID", certificate(issuer_key, root_key, ("Signer", "Root"), purposes=["1.3.6.1.5.5.7.3.1"])),
        "without a purpose": ("TRUST_CHAIN_INVALID", certificate(issuer_key, root_key, ("Signer", "Root"), purposes=())),
        "that signs no data": ("TRUST_CHAIN_INVALID", certificate(issuer_key, root_key, ("Signer", "Root"), usage=False)),
        "that names itself": ("TRUST_CHAIN_INVALID", certificate(issuer_key, issuer_key, ("Signer", "Signer"))),
        "with its root": ("TRUST_CHAIN_INVALID", [leaf, root]),
        "twice": ("TRUST_CHAIN_INVALID", [leaf, leaf]),
        "behind its root": ("TRUST_CHAIN_INVALID", [root, leaf]),
        "cut off": ("TRUST_CHAIN_INVALID", leaf[:-1]),
        "with a byte behind it": ("TRUST_CHAIN_INVALID", leaf + b"\0"),
        "of no bytes": ("TRUST_CHAIN_INVALID", b""),
        "of text": ("FORMAT", b64(leaf)),
        "of an empty chain": ("FORMAT", []),
        "of a chain with text": ("FORMAT", [leaf, "root"]),
    }
    for name, (code, chain) in made.items():
        yield f"certificate {name}", code, issued_by(issuer_key, chain)
    other = certificate(other_key, root_key, ("Other signer", "Root"))
    yield "certificate of another signer", "SIGNATURE", issued_by(issuer_key, other)
    yield "no certificate", "TRUST_CHAIN_INVALID", put("unprotected", {})
    yield "certificate in both headers", "FORMAT", put("protected", {**ES256, 33: leaf})


def signature_faults(place, put_header, put_key, put_signer):
    code = "SIGNATURE" if place == "issuer" else "KB_SIGNATURE"
    for algorithm in (-8, -35, -257, 5, None, "ES256"):
        yield f"algorithm {algorithm!r} of the {place}", "SIGNATURE", put(put_header, {1: algorithm})
    yield f"no protected header of the {place}", "SIGNATURE", put(put_header, b"")
    yield f"protected header of the {place} has no algorithm", "SIGNATURE", put(put_header, {})
    yield f"critical header of the {place}", "FORMAT", put(put_header, {**ES256, 2: [33]})
    yield f"protected header of the {place} is a list", "SIGNATURE", put(put_header, b"\x80")
    yield f"protected header of the {place} repeats a label", "FORMAT", put(put_header, b"\xa2\x01\x26\x01\x26")
    yield f"protected header of the {place} is cut off", "FORMAT", put(put_header, b"\xa1\x01")
    yield f"signed by another key than the {place}'s", code, put(put_key, other_key)
    signers = {
        "in DER": sign_der,
        "of zeros": lambda key, message: bytes(64),
        "with swapped halves": swap_halves,
        "too short": lambda key, message: sign_raw(key, message)[:63],
        "too long": lambda key, message: sign_raw(key, message) + b"\0",
        "empty": lambda key, message: b"",
        "of another text": lambda key, message: sign_raw(key, message + b"\0"),
    }
    for name, signer in signers.items():
        yield f"signature of the {place} {name}", code, put(put_signer, signer)


def security_object_faults(now):
    for name in ("version", "digestAlgorithm", "valueDigests", "deviceKeyInfo", "docType", "validityInfo"):
        yield f"security object without {name}", "FORMAT", mso(name, REMOVED)
    for name, value in (("version", "2.0"), ("version", 1), ("digestAlgorithm", "MD5"), ("digestAlgorithm", "SHA-1")):
        yield f"{name} {value!r}", "FORMAT", mso(name, value)
    for name, value in (("valueDigests", []), ("valueDigests", {7: {}}), ("valueDigests", {NAMESPACE: []}), ("docType", 7)):
        yield f"{name} is {value!r}", "FORMAT", mso(name, value)
    yield "digest algorithm is another one than was used", "DIGEST", mso("digestAlgorithm", "SHA-512")
    yield "type in the security object is another one", "VCT_MISMATCH", mso("docType", "org.example.other")
    yield "type of the document is another one", "VCT_MISMATCH", put("doc_type", "org.example.other")
    for name in ("signed", "validFrom", "validUntil"):
        yield f"{name} without a tag", "FORMAT", validity(name, f"{now:%Y-%m-%dT%H:%M:%SZ}")
        yield f"{name} in seconds", "FORMAT", validity(name, CBORTag(1, int(now.timestamp())))
        yield f"{name} is a day", "FORMAT", validity(name, CBORTag(0, "2025-02-28"))
        yield f"{name} is no day", "FORMAT", validity(name, CBORTag(0, "2025-02-30T00:00:00Z"))
        yield f"{name} is absent", "FORMAT", validity(name, REMOVED)
    yield "expired", "EXPIRED", validity("validUntil", tdate(now, -1))
    yield "not valid yet", "EXPIRED", validity("validFrom", tdate(now, 1))
    yield "signed before the certificate was valid", "EXPIRED", validity("signed", tdate(now, -20))
    yield "signed after the certificate expired", "EXPIRED", validity("signed", tdate(now, 20))
    for index in (-1, 1.5, "7", None):
        yield f"index of the status {index!r}", "FORMAT", mso("status", {"status_list": {**STATUS["status_list"], "idx": index}})
    yield "status is text", "FORMAT", mso("status", "valid")
    yield "address of the status is no URI", "FORMAT", mso("status", {"status_list": {"idx": 7, "uri": "lists/1"}})
    yield "payload is not embedded", "FORMAT", put("payload", cbor2.dumps({"version": "1.0"}))
    yield "payload is no CBOR", "FORMAT", put("payload", b"\xff\xff")
    yield "payload is empty", "FORMAT", put("payload", b"")
    yield "payload embeds text", "FORMAT", put("payload", cbor2.dumps(CBORTag(24, "text")))
    yield "payload has a byte behind it", "FORMAT", lambda parts: setattr(parts, "payload", cbor2.dumps(embedded(parts.mso)) + b"\0")


def element_faults():
    for name, value in (("elementValue", "Eve"), ("random", bytes(32)), ("digestID", 999), ("elementIdentifier", "given_name")):
        yield f"{name} is another one", "DIGEST", item_member(name, value)
    for name in ("elementValue", "random", "digestID", "elementIdentifier"):
        yield f"element without {name}", "FORMAT", item_member(name, REMOVED, signed=True)
    for name, value in (("random", bytes(15)), ("random", "r" * 32), ("digestID", -1), ("digestID", "0"), ("elementIdentifier", 7)):
        yield f"{name} is {value!r}", "FORMAT", item_member(name, value, signed=True)
    yield "element with a member that the issuer did not sign", "DIGEST", item_member("more", 1)
    yield "element in another order", "DIGEST", item(lambda members, _: embedded(dict(reversed(list(members.items())))))
    yield "element is not embedded", "FORMAT", item(lambda members, _: members)
    yield "element is of another tag", "FORMAT", item(lambda _, tagged: CBORTag(25, tagged.value))
    yield "element is text", "FORMAT", item(lambda *_: "element")
    yield "element is cut off", "FORMAT", item(lambda _, tagged: CBORTag(24, tagged.value[:-1]), signed=True)
    yield "element with a byte behind it", "FORMAT", item(lambda _, tagged: CBORTag(24, tagged.value + b"\0"), signed=True)
    yield "element repeats a member", "FORMAT", item(lambda *_: CBORTag(24, b"\xa2" + 2 * (cbor2.dumps("digestID") + b"\0")), signed=True)
    yield "digest id twice", "DIGEST", add_item(None, "given_name")
    yield "element twice", "DIGEST", add_item(998, None)
    yield "digests of zeros", "DIGEST", digests(lambda values: dict.fromkeys(values, bytes(32)))
    yield "digests cut off", "DIGEST", digests(lambda values: {key: value[:31] for key, value in values.items()})
    yield "digests are text", "FORMAT", digests(lambda values: {key: value.hex() for key, value in values.items()})
    yield "ids of digests are text", "FORMAT", digests(lambda values: {str(key): value for key, value in values.items()})
    yield "no digests of a namespace", "DIGEST", digests(lambda _: {})
    yield "no digests of any namespace", "DIGEST", mso("valueDigests", {})
    yield "digests of another namespace", "DIGEST", renamed("mso", "org.example.other")
    yield "namespace without elements", "FORMAT", put("name_spaces", {NAMESPACE: []})
    yield "namespace is a map", "FORMAT", put("name_spaces", {NAMESPACE: {}})
    yield "namespace is a number", "FORMAT", renamed("elements", 7)
    yield "namespaces are a list", "FORMAT", put("name_spaces", [])
    yield "elements of a namespace in another one", "DIGEST", renamed("elements", "org.example.other")


def device_faults():
    for name, value in (("clientId", "x509_san_dns:other.example"), ("nonce", "other"), ("responseUri", "https://other.example")):
        yield f"session of another {name}", "KB_SIGNATURE", put("session", {**SESSION, name: value})
    yield "device signed nothing", "KB_MISSING", edit("document", member("deviceSigned", REMOVED))
    yield "device authentication is empty", "KB_MISSING", edit("deviceAuth", lambda _: {})
    yield "device authentication is a list", "KB_MISSING", edit("deviceAuth", lambda _: [])
    yield "device authenticates by a MAC", "DEVICE_MAC_UNSUPPORTED", edit("deviceAuth", lambda auth: {"deviceMac": auth["deviceSignature"]})
    yield "device authenticates twice", "DEVICE_MAC_UNSUPPORTED", edit("deviceAuth", lambda auth: {**auth, "deviceMac": auth["deviceSignature"]})
    yield "signature of the device is a map", "FORMAT", edit("deviceSignature", lambda _: {})
    yield "signature of the device has three parts", "FORMAT", edit("deviceSignature", lambda sign1: sign1[:3])
    yield "signature of the device is tagged", "FORMAT", edit("deviceSignature", lambda sign1: CBORTag(18, sign1))
    yield "payload of the device is not detached", "FORMAT", put("device_payload", b"payload")
    yield "namespaces of the device are not embedded", "FORMAT", put("device_spaces", {})
    yield "namespaces of the device are a list", "FORMAT", put("device_spaces", embedded([]))
    spaces = member("nameSpaces", embedded({"org.example.device": {"k": 1}}))
    changed = edit("document", lambda each: {**each, "deviceSigned": spaces(each["deviceSigned"])})
    yield "namespaces of the device changed", "KB_SIGNATURE", changed
    yield "algorithm of the device in both headers", "FORMAT", put("device_unprotected", dict(ES256))
    key = cose_key(device_key)
    keys = {
        "of another curve": {**key, -1: 2},
        "of another kind": {**key, 1: 1},
        "without y": {name: value for name, value in key.items() if name != -3},
        "with a sign instead of y": {**key, -3: True},
        "not on its curve": {**key, -3: bytes(32)},
        "with a short coordinate": {**key, -2: key[-2][:31]},
        "with the names of a JWK": {"kty": "EC", "crv": "P-256"},
        "of no map": "key",
        "of another device": cose_key(other_key),
    }
    for name, value in keys.items():
        yield f"key of the device {name}", "KB_SIGNATURE", mso("deviceKeyInfo", {"deviceKey": value})
    yield "no key of the device", "FORMAT", mso("deviceKeyInfo", {})


def response_faults():
    for value in ("1.1", 1, REMOVED):
        yield f"version of the response {'absent' if value is REMOVED else value!r}", "FORMAT", edit("response", member("version", value))
    for value in (10, "0", REMOVED, -1):
        yield f"status of the response {'absent' if value is REMOVED else value!r}", "FORMAT", edit("response", member("status", value))
    for name, value in (("absent", REMOVED), ("none", []), ("text", "documents"), ("a map", {})):
        yield f"documents of the response: {name}", "FORMAT", edit("response", member("documents", value))
    yield "two documents", "FORMAT", edit("response", lambda each: member("documents", each["documents"] * 2)(each))
    for value in (REMOVED, 7, None):
        yield f"type of the document {'absent' if value is REMOVED else value!r}", "FORMAT", edit("document", member("docType", value))
    for value in (REMOVED, [], "signed"):
        yield f"signed by the issuer: {'absent' if value is REMOVED else value!r}", "FORMAT", edit("document", member("issuerSigned", value))
    yield "no issuerAuth", "FORMAT", edit("issuerSigned", member("issuerAuth", REMOVED))
    yield "issuerAuth is a map", "FORMAT", edit("issuerAuth", lambda _: {})
    yield "issuerAuth has three parts", "FORMAT", edit("issuerAuth", lambda sign1: sign1[:3])
    yield "issuerAuth has five parts", "FORMAT", edit("issuerAuth", lambda sign1: [*sign1, b""])
    yield "issuerAuth is tagged", "FORMAT", edit("issuerAuth", lambda sign1: CBORTag(18, sign1))
    yield "issuerAuth without a payload", "FORMAT", edit("issuerAuth", lambda sign1: [*sign1[:2], None, sign1[3]])
    yield "unprotected header is a list", "FORMAT", edit("issuerAuth", lambda sign1: [sign1[0], [], *sign1[2:]])
    yield "signature is text", "FORMAT", edit("issuerAuth", lambda sign1: [*sign1[:3], "signature"])
    yield "response is a list", "FORMAT", edit("response", lambda each: [each])
    yield "response is cut off", "FORMAT", edit("bytes", lambda data: data[:-1])
    yield "response with a byte behind it", "FORMAT", edit("bytes", lambda data: data + b"\0")
    yield "response of an indefinite length that never ends", "FORMAT", edit("bytes", lambda data: b"\xbf" + data[1:])
    yield "response repeats a member", "FORMAT", edit("bytes", lambda data: b"\xa4" + cbor2.dumps("version") + cbor2.dumps("1.0") + data[1:])
    yield "response in standard base64", "FORMAT", edit("text", lambda text: text + "+/")
    yield "response is padded", "FORMAT", edit("text", lambda text: text + "=" * (-len(text) % 4 or 4))
    yield "response with a line end", "FORMAT", edit("text", lambda text: text + "\n")
    yield "response is empty", "FORMAT", edit("text", lambda _: "")
    yield "response is the issued document", "FORMAT", edit("response", lambda each: each["documents"][0]["issuerSigned"])


def faults(now):
    yield from certificate_faults()
    yield from signature_faults("issuer", "protected", "issuer_key", "issuer_signer")
    yield from security_object_faults(now)
    yield from element_faults()
    yield from signature_faults("device", "device_protected", "device_key", "device_signer")
    yield from device_faults()
    yield from response_faults()


def as_json(value):
    """An element as our verifiers read it: byte strings are base64url."""
    if isinstance(value, dict):
        return {name: as_json(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [as_json(inner) for inner in value]
    return b64(value) if isinstance(value, bytes) else value


def made():
    """Presentations that must be accepted, with their elements, and malformed ones with the code of their refusal."""
    now = datetime.datetime.now(datetime.timezone.utc)
    good, bad = [], []
    kinds = list(shapes())
    for name, data in kinds:
        issued = issue(data)
        anew = parts_of(issued)
        as_issued = parts_of(issued)
        as_issued.issued = issued["issuerAuth"]
        good.append({"name": name, "text": as_issued.assemble(), "claims": as_json(data)})
        # What the faults are put into is accepted without one.
        good.append({"name": f"{name}, anew", "text": anew.assemble(), "claims": as_json(data)})
        few = {space: items[:1] for space, items in as_issued.name_spaces.items()}
        as_issued.name_spaces = few
        shown = {space: [cbor2.loads(each.value)["elementIdentifier"] for each in items] for space, items in few.items()}
        claims = {space: {each: as_json(data[space][each]) for each in names} for space, names in shown.items()}
        good.append({"name": f"{name}, withheld", "text": as_issued.assemble(), "claims": claims})
    for index, (name, code, change) in enumerate(faults(now)):
        for shape, data in (kinds[index % len(kinds)], kinds[(index + 1) % len(kinds)]):
            parts = parts_of(issue(data))
            change(parts)
            bad.append({"name": f"{name} ({shape})", "text": parts.assemble(), "code": code})
    return {"good": good, "bad": bad, "root": b64(root), "docType": DOC_TYPE, "session": SESSION}
