"""SD-JWT VCs whose issuer and holder are those of `sd-jwt`, and malformed ones, each with one fault."""
import base64
import hashlib
import json
import time
from dataclasses import dataclass, field

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from jwcrypto.jwk import JWK
from sd_jwt.common import SDObj
from sd_jwt.holder import SDJWTHolder
from sd_jwt.issuer import SDJWTIssuer

NONCE, AUDIENCE = "n-0123456789", "x509_san_dns:verifier.example"
ISSUER, VCT = "https://issuer.example", "https://issuer.example/vct/permit"
STATUS = {"status_list": {"idx": 7, "uri": f"{ISSUER}/lists/1"}}
DAY = 86_400

issuer_key, holder_key, other_key = (JWK.generate(kty="EC", crv="P-256") for _ in range(3))


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def encode(value):
    return b64(value if isinstance(value, bytes) else json.dumps(value).encode())


def digest(text):
    return b64(hashlib.sha256(text.encode()).digest())


def sign_raw(key, message):
    """r followed by s, 64 bytes."""
    made = key.get_op_key("sign").sign(message, ECDSA(hashes.SHA256()))
    return b"".join(part.to_bytes(32, "big") for part in decode_dss_signature(made))


def sign_der(key, message):
    return key.get_op_key("sign").sign(message, ECDSA(hashes.SHA256()))


def compact(header, payload, key, signer=sign_raw):
    text = f"{encode(header)}.{encode(payload)}"
    return f"{text}.{b64(signer(key, text.encode()))}"


def shapes():
    """Claims in forms that issuers use; each discloses `given_name` and an element of `nationalities`."""
    common = {SDObj("given_name"): "Zoë", "nationalities": [SDObj("DE"), "FR", SDObj("IT")]}
    address = {SDObj("locality"): "Ulm", "country": "DE"}
    yield "flat", {**common, SDObj("height"): 1.75, SDObj("none"): None}, False
    yield "structured", {**common, "address": address}, False
    yield "recursive", {**common, SDObj("address"): address, SDObj("degrees"): [SDObj({SDObj("name"): "MSc"})]}, False
    yield "with decoys", {**common, "address": address}, True


def plain(value):
    if isinstance(value, dict):
        return {(name.value if isinstance(name, SDObj) else name): plain(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [plain(inner.value if isinstance(inner, SDObj) else inner) for inner in value]
    return value


def everything(value):
    if isinstance(value, dict):
        return {name: everything(inner) for name, inner in value.items()}
    return [everything(inner) for inner in value] if isinstance(value, list) else True


def registered(now, decoys):
    """The issuer puts its decoys into every object, and the status must have no digest: it may stand for a withheld member."""
    status = {} if decoys else {"status": STATUS}
    return {"iss": ISSUER, "vct": VCT, "iat": now, "exp": now + DAY, **status}


def issue(claims, decoys, now):
    given = {**registered(now, decoys), **claims}
    header = {"typ": "dc+sd-jwt"}
    return SDJWTIssuer(given, issuer_key, holder_key, add_decoy_claims=decoys, extra_header_parameters=header)


def present(issued, disclosed):
    holder = SDJWTHolder(issued)
    holder.create_presentation(disclosed, NONCE, AUDIENCE, holder_key)
    return holder


@dataclass
class Parts:
    """A presentation before it is signed; `edits` change texts afterwards."""

    header: dict
    payload: dict
    disclosures: list
    binding_header: dict
    binding: dict
    issuer_key: JWK = None
    holder_key: JWK = None
    signer: object = sign_raw
    binding_signer: object = sign_raw
    edits: dict = field(default_factory=dict)

    def edited(self, name, text):
        return self.edits[name](text) if name in self.edits else text

    def assemble(self):
        jwt = self.edited("jwt", compact(self.header, self.payload, self.issuer_key, self.signer))
        bound = "~".join([jwt, *self.disclosures, ""])
        binding = {"sd_hash": digest(bound), **self.binding} if isinstance(self.binding, dict) else self.binding
        if isinstance(binding, dict):
            binding = {name: value for name, value in binding.items() if value is not REMOVED}
        bound = self.edited("bound", bound)
        signed = compact(self.binding_header, binding, self.holder_key, self.binding_signer)
        return self.edited("whole", bound + self.edited("binding", signed))


REMOVED = object()


def parts_of(issuer, holder, now):
    header = {"alg": "ES256", "typ": "dc+sd-jwt"}
    payload = json.loads(json.dumps(issuer.sd_jwt_payload))
    binding = {"nonce": NONCE, "aud": AUDIENCE, "iat": now}
    binding_header = {"alg": "ES256", "typ": "kb+jwt"}
    return Parts(header, payload, list(holder.hs_disclosures), binding_header, binding, issuer_key, holder_key)


def set_member(target, name, value):
    """A fault that gives a member of one of the parts another value, or removes it."""

    def change(parts):
        members = getattr(parts, target)
        if value is REMOVED and target != "binding":
            members.pop(name, None)
        else:
            members[name] = value

    return change


def edit(name, function):
    def change(parts):
        parts.edits[name] = function

    return change


def put(name, value):
    return lambda parts: setattr(parts, name, value)


def disclose(parts, items, raw=None, place="_sd", claim=None):
    """Adds a disclosure of its own, whose digest the issuer signs."""
    text = encode(items) if raw is None else raw
    parts.disclosures.append(text)
    if place == "_sd":
        parts.payload.setdefault("_sd", []).append(digest(text))
    elif place == "element":
        parts.payload["nationalities"].append({"...": digest(text)})
    elif place == "nowhere":
        pass
    if claim is not None:
        parts.payload.pop(claim)


def disclosing(items, raw=None, place="_sd", claim=None):
    return lambda parts: disclose(parts, items, raw, place, claim)


def hide_claim(name):
    """The claim is disclosable, with its right value."""

    def change(parts):
        value = parts.payload.setdefault(name, STATUS)
        disclose(parts, ["salt-0123456789", name, value], claim=name)

    return change


def with_bytes(target, function):
    """Replaces a header or payload by JSON text that no writer of JSON makes."""

    def change(parts):
        setattr(parts, target, function(json.dumps(getattr(parts, target))).encode("utf-8", "surrogatepass"))

    return change


def twice(parts):
    parts.payload["_sd"].append(parts.payload["_sd"][0])


def slot(parts, change):
    index = next(at for at, each in enumerate(parts.payload["nationalities"]) if isinstance(each, dict))
    parts.payload["nationalities"][index] = change(parts.payload["nationalities"][index])


def last(text, replacement):
    return text[: -len(replacement)] + replacement


def swap_halves(key, message):
    made = sign_raw(key, message)
    return made[32:] + made[:32]


def change_middle(part):
    """Another letter in the middle of a part of a compact JWS."""

    def change(jwt):
        pieces = jwt.split(".")
        at = len(pieces[part]) // 2
        pieces[part] = pieces[part][:at] + ("A" if pieces[part][at] != "A" else "B") + pieces[part][at + 1 :]
        return ".".join(pieces)

    return change


def header_faults():
    for name, value in (("absent", REMOVED), ("JWT", "JWT"), ("kb+jwt", "kb+jwt"), ("a list", ["dc+sd-jwt"]), ("empty", "")):
        yield f"type of the credential: {name}", "FORMAT", set_member("header", "typ", value)
    for name in ("crit", "b64", "zip", "enc"):
        value = {"crit": ["exp"], "b64": False, "zip": "DEF", "enc": "A256GCM"}[name]
        yield f"header {name}", "FORMAT", set_member("header", name, value)
    for alg in ("none", "HS256", "ES384", "RS256", "es256", None, REMOVED):
        yield f"algorithm {'absent' if alg is REMOVED else alg}", "SIGNATURE", set_member("header", "alg", alg)
    yield "header is a list", "FORMAT", put("header", b"[]")
    yield "header repeats a member", "FORMAT", with_bytes("header", lambda text: '{"alg":"ES256",' + text[1:])
    yield "header is no UTF-8", "FORMAT", put("header", b'{"alg":"ES256","typ":"dc+sd-jwt","k":"\xff"}')


def signature_faults():
    yield "signed by another key", "SIGNATURE", put("issuer_key", other_key)
    yield "signed by the holder", "SIGNATURE", put("issuer_key", holder_key)
    yield "signature in DER", "SIGNATURE", put("signer", sign_der)
    yield "signature of zeros", "SIGNATURE", put("signer", lambda key, message: bytes(64))
    yield "signature with swapped halves", "SIGNATURE", put("signer", swap_halves)
    yield "signature too short", "SIGNATURE", put("signer", lambda key, message: sign_raw(key, message)[:63])
    yield "signature too long", "SIGNATURE", put("signer", lambda key, message: sign_raw(key, message) + b"\0")
    yield "signature of another text", "SIGNATURE", put("signer", lambda key, message: sign_raw(key, message + b" "))
    yield "signature changed", "SIGNATURE", edit("jwt", change_middle(2))
    yield "signature empty", "FORMAT", edit("jwt", lambda jwt: jwt.rsplit(".", 1)[0] + ".")
    yield "signature padded", "FORMAT", edit("jwt", lambda jwt: jwt + "==")
    yield "signature with stray bits", "FORMAT", edit("jwt", lambda jwt: jwt[:-1] + chr(ord(jwt[-1]) + 1))
    yield "signature left out", "FORMAT", edit("jwt", lambda jwt: jwt.rsplit(".", 1)[0])
    yield "a fourth part", "FORMAT", edit("jwt", lambda jwt: jwt + ".AA")


def payload_faults(now):
    yield "no type", "FORMAT", set_member("payload", "vct", REMOVED)
    for value in (7, "", None, [VCT]):
        yield f"type {value!r}", "FORMAT", set_member("payload", "vct", value)
    yield "another type", "VCT_MISMATCH", set_member("payload", "vct", VCT + "2")
    yield "expired", "EXPIRED", set_member("payload", "exp", now - 100_000)
    yield "not valid yet", "EXPIRED", set_member("payload", "nbf", now + 100_000)
    for name in ("exp", "nbf", "iat"):
        for value in (str(now), -1, None, True, 1e12):
            yield f"{name} is {value!r}", "FORMAT", set_member("payload", name, value)
    yield "issuer is a number", "FORMAT", set_member("payload", "iss", 7)
    yield "status is text", "FORMAT", set_member("payload", "status", "valid")
    yield "status list is text", "FORMAT", set_member("payload", "status", {"status_list": "1"})
    for index in (-1, 1.5, "7", None):
        status = {"status_list": {"idx": index, "uri": f"{ISSUER}/lists/1"}}
        yield f"index of the status {index!r}", "FORMAT", set_member("payload", "status", status)
    yield "address of the status", "FORMAT", set_member("payload", "status", {"status_list": {"idx": 1, "uri": "lists"}})
    yield "payload is a list", "FORMAT", put("payload", b"[]")
    yield "payload is text", "FORMAT", put("payload", b"permit")
    yield "payload repeats a member", "FORMAT", with_bytes("payload", lambda text: '{"vct":"' + VCT + '",' + text[1:])
    yield "payload has a byte order mark", "FORMAT", with_bytes("payload", lambda text: "\ufeff" + text)
    yield "payload has a lone surrogate", "FORMAT", with_bytes("payload", lambda text: '{"k":"\\ud800",' + text[1:])


def digest_faults():
    for name in ("md5", "SHA-256", "sha-1", 256, None):
        yield f"hash {name!r}", "DIGEST", set_member("payload", "_sd_alg", name)
    yield "digests are text", "DIGEST", set_member("payload", "_sd", "digest")
    yield "a digest is a number", "DIGEST", lambda parts: parts.payload["_sd"].append(7)
    yield "a digest occurs twice", "DIGEST", twice
    yield "place of an element has other members", "DIGEST", lambda parts: slot(parts, lambda each: {**each, "k": 1})
    yield "digest of an element is a number", "DIGEST", lambda parts: slot(parts, lambda _: {"...": 7})
    yield "place of an element in an object", "DIGEST", set_member("payload", "place", {"...": digest("x")})
    yield "place of an element at the top", "DIGEST", set_member("payload", "...", digest("x"))
    yield "issuer's digest is of another salt", "DIGEST", lambda parts: parts.disclosures.append(encode(["s", "k", 1]))


def disclosure_faults():
    salt = "salt-0123456789"
    for name in ("_sd", "...", "_sd_alg", "nationalities", "vct"):
        yield f"disclosure of the claim {name}", "DIGEST", disclosing([salt, name, "x"])
    for name in ("iss", "exp", "cnf", "status"):
        yield f"{name} is disclosable", "DIGEST", hide_claim(name)
    yield "vct is disclosable", "DIGEST", hide_claim("vct")
    decoy = {"status_list": STATUS["status_list"], "_sd": [digest("decoy")]}
    yield "digest in the status", "DIGEST", set_member("payload", "status", decoy)
    yield "disclosure of an element as a claim", "DIGEST", disclosing([salt, "x"])
    yield "disclosure of a claim as an element", "DIGEST", disclosing([salt, "k", "x"], place="element")
    yield "disclosure without a digest", "DIGEST", disclosing([salt, "k", "x"], place="nowhere")
    for items in ([], [salt], [salt, "k", 1, 2], {"salt": salt}, "text", 7, None, [7, "k", 1], [salt, 7, 1], [None, "k", 1]):
        yield f"disclosure {json.dumps(items)}", "DIGEST", disclosing(items)
    yield "disclosure is no JSON", "DIGEST", disclosing(b"[salt]")
    yield "disclosure has two values", "DIGEST", disclosing(b'["salt","k",1] 2')
    yield "disclosure repeats a member", "DIGEST", disclosing(b'["salt","k",{"a":1,"a":2}]')
    yield "disclosure is no UTF-8", "DIGEST", disclosing(b'["salt","k","\xff"]')
    yield "disclosure is padded", "DIGEST", disclosing(None, raw=base64.urlsafe_b64encode(b'["salt","k",111]').decode())
    yield "disclosure is no base64url", "DIGEST", disclosing(None, raw="WyJz+/")
    yield "disclosure is repeated", "DIGEST", lambda parts: parts.disclosures.append(parts.disclosures[0])
    yield "disclosure has another value", "DIGEST", lambda parts: parts.disclosures.__setitem__(0, encode([salt, "given_name", "Eve"]))
    yield "disclosure with a space behind it", "DIGEST", lambda parts: parts.disclosures.__setitem__(0, parts.disclosures[0] + " ")
    yield "claims nested too deep", "DIGEST", disclosing(b'["salt","k",' + b"[" * 200 + b"]" * 200 + b"]")
    yield "disclosure is empty", "FORMAT", lambda parts: parts.disclosures.append("")
    yield "1025 disclosures", "FORMAT", lambda parts: parts.disclosures.extend(encode([str(n), "k"]) for n in range(1025))


def binding_faults(now):
    for value in ("JWT", "dc+sd-jwt", REMOVED, None):
        name = "absent" if value is REMOVED else value
        yield f"type of the key binding: {name}", "KB_SIGNATURE", set_member("binding_header", "typ", value)
    for alg in ("none", "HS256", "ES384", REMOVED):
        name = "absent" if alg is REMOVED else alg
        yield f"algorithm of the key binding: {name}", "KB_SIGNATURE", set_member("binding_header", "alg", alg)
    yield "key binding has a critical header", "FORMAT", set_member("binding_header", "crit", ["exp"])
    yield "key binding by another key", "KB_SIGNATURE", put("holder_key", other_key)
    yield "key binding by the issuer", "KB_SIGNATURE", put("holder_key", issuer_key)
    yield "key binding signed in DER", "KB_SIGNATURE", put("binding_signer", sign_der)
    yield "key binding with swapped halves", "KB_SIGNATURE", put("binding_signer", swap_halves)
    yield "key binding changed", "KB_SIGNATURE", edit("binding", change_middle(2))
    yield "key binding left out", "KB_MISSING", edit("binding", lambda _: "")
    yield "key binding is no JWT", "FORMAT", edit("binding", lambda _: "binding")
    yield "payload of the key binding is a list", "FORMAT", put("binding", b"[]")
    yield "key binding repeats a member", "FORMAT", put("binding", b'{"nonce":"a","nonce":"b"}')
    for value in ("other", "", REMOVED, None, [NONCE], 7):
        yield f"nonce {'absent' if value is REMOVED else repr(value)}", "KB_NONCE", set_member("binding", "nonce", value)
    for value in ("verifier.example", AUDIENCE + "/", REMOVED, [AUDIENCE], None):
        yield f"audience {'absent' if value is REMOVED else repr(value)}", "KB_AUD", set_member("binding", "aud", value)
    for value in (digest("other"), "", REMOVED, None, 7):
        yield f"hash of the presentation {'absent' if value is REMOVED else value!r}", "KB_SD_HASH", set_member("binding", "sd_hash", value)
    yield "no time of the key binding", "FORMAT", set_member("binding", "iat", REMOVED)
    for value in (str(now), None, -1):
        yield f"time of the key binding {value!r}", "FORMAT", set_member("binding", "iat", value)
    yield "key binding too old", "EXPIRED", set_member("binding", "iat", now - 100_000)
    yield "key binding from the future", "EXPIRED", set_member("binding", "iat", now + 100_000)
    yield "key binding has expired", "EXPIRED", set_member("binding", "exp", now - 100_000)
    yield "bound to no key", "KB_SIGNATURE", set_member("payload", "cnf", REMOVED)
    for value in ({}, {"jwk": "key"}, {"kid": "1"}, "key", None):
        yield f"bound to the key {json.dumps(value)}", "KB_SIGNATURE", set_member("payload", "cnf", value)
    point = {**holder_key.export_public(as_dict=True), "y": b64(bytes(32))}
    yield "key of the holder is not on its curve", "KB_SIGNATURE", set_member("payload", "cnf", {"jwk": point})
    other = {**holder_key.export_public(as_dict=True), "alg": "ES384"}
    yield "key of the holder is for another algorithm", "KB_SIGNATURE", set_member("payload", "cnf", {"jwk": other})


def presentation_faults():
    yield "a disclosure taken away", "KB_SD_HASH", edit("bound", lambda bound: bound[: bound[:-1].rindex("~") + 1])
    yield "no tilde before the key binding", "FORMAT", edit("whole", lambda text: ".".join(text.rsplit("~", 1)))
    yield "without any tilde", "FORMAT", edit("whole", lambda text: text.split("~")[0])
    yield "a tilde behind the key binding", "FORMAT", edit("whole", lambda text: text + "~~")
    yield "a line end behind it", "FORMAT", edit("whole", lambda text: text + "\n")
    yield "a space before it", "FORMAT", edit("whole", lambda text: " " + text)
    yield "empty", "FORMAT", edit("whole", lambda _: "")


def faults(now):
    for group in (header_faults(), signature_faults(), payload_faults(now), digest_faults()):
        yield from group
    for group in (disclosure_faults(), binding_faults(now), presentation_faults()):
        yield from group


def made(now):
    """Presentations that must be accepted, with their claims, and malformed ones with the code of their refusal."""
    good, bad = [], []
    kinds = list(shapes())
    for name, claims, decoys in kinds:
        issuer = issue(claims, decoys, now)
        base = {**registered(now, decoys), "cnf": {"jwk": holder_key.export_public(as_dict=True)}}
        whole = plain(claims)
        holder = present(issuer.sd_jwt_issuance, everything(whole))
        good.append({"name": name, "text": holder.sd_jwt_presentation, "claims": {**base, **whole}})
        # What the faults are put into is accepted without one.
        good.append({"name": f"{name}, anew", "text": parts_of(issuer, holder, now).assemble(), "claims": {**base, **whole}})
        few = present(issuer.sd_jwt_issuance, {"given_name": True})
        shown = few_claims(whole, claims)
        good.append({"name": f"{name}, withheld", "text": few.sd_jwt_presentation, "claims": {**base, **shown}})
    for index, (name, code, change) in enumerate(faults(now)):
        for shape, claims, decoys in (kinds[index % len(kinds)], kinds[(index + 1) % len(kinds)]):
            issuer = issue(claims, decoys, now)
            parts = parts_of(issuer, present(issuer.sd_jwt_issuance, everything(plain(claims))), now)
            change(parts)
            bad.append({"name": f"{name} ({shape})", "text": parts.assemble(), "code": code})
    return {
        "good": good,
        "bad": bad,
        "issuerKey": issuer_key.export_public(as_dict=True),
        "vct": VCT,
        "nonce": NONCE,
        "audience": AUDIENCE,
    }


def few_claims(whole, claims):
    """What is left when the holder shows `given_name` alone."""
    shown = {"given_name": whole["given_name"], "nationalities": ["FR"]}
    return {**shown, **({"address": {"country": "DE"}} if "address" in claims else {})}
