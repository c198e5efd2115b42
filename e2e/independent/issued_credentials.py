#!/usr/bin/env python3
"""Judges credentials and status lists that Chancery issues, with libraries of others.

    issued_credentials.py FILE [--flips N] [--seed S]

FILE is JSON with certificates, SD-JWT VCs, a presented mdoc and status lists. The holder of `sd-jwt` presents the SD-JWT VCs;
`sd-jwt` and `openvc-core` judge them. `pymdoccbor` and `openvc-core` judge the mdoc, `pyjwt` and `openvc-core` the lists. One
byte is changed at N places of each; every judge must refuse every such copy.

Needs the packages `sd-jwt`, `openvc-core`, `pymdoccbor` and `pyjwt`.
"""
import argparse
import base64
import datetime
import json
import logging
import random
import zlib
from collections.abc import Mapping

import cbor2
import jwt
from cryptography import x509
from jwcrypto.common import JWException
from jwcrypto.jwk import JWK
from openvc import cbor, cose
from openvc.errors import OpenvcError
from openvc.mdoc import verify_device_response
from openvc.proof.sd_jwt import SdJwtVcProofSuite
from openvc.status.token_status_list import check_token_status, decode_status_list, get_status
from openvc.x5c import leaf_public_jwk, resolve_mdoc_signer_key
from pymdoccbor.mdoc.verifier import MdocCbor
from sd_jwt.holder import SDJWTHolder
from sd_jwt.verifier import SDJWTVerifier

from checks import Checks

NONCE, AUDIENCE = "n-0123456789", "x509_san_dns:verifier.example"
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
# What the libraries raise for a credential that they refuse; pymdoccbor parses without a schema of its own.
REFUSALS = (OpenvcError, JWException, jwt.PyJWTError, ValueError, KeyError, TypeError, AttributeError, IndexError)


class Refused(Exception):
    """A judge refused by its answer."""


def unb64(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def accepted(judge, value):
    try:
        judge(value)
    except (Refused, *REFUSALS):
        return False
    return True


def changed_text(text, count, rng):
    """Copies of a compact form with one letter changed; the last letter of a part may have bits that say nothing."""
    places = [at for at in range(len(text) - 1) if text[at] in LETTERS and text[at + 1] in LETTERS]
    for at in rng.sample(places, min(count, len(places))):
        yield at, text[:at] + rng.choice(LETTERS.replace(text[at], "")) + text[at + 1 :]


def changed_bytes(data, places, count, rng):
    for at in rng.sample(places, min(count, len(places))):
        yield at, data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]


def places_of(data, part):
    """Where a part stands in the bytes around it."""
    start = data.index(part)
    return list(range(start, start + len(part)))


def refused_copies(checks, what, judge, copies):
    """One check that a judge refuses every changed copy, and that there is one."""
    copies = list(copies)
    missed = [f"byte {at}" for at, copy in copies if accepted(judge, copy)]
    checks.nothing(f"{what} refuses {len(copies)} changed copies", missed if copies else ["no copy"])


def everything(value):
    """What the holder of `sd-jwt` takes for: disclose all of it."""
    if isinstance(value, dict):
        return {name: everything(inner) for name, inner in value.items()}
    return [everything(inner) for inner in value] if isinstance(value, list) else True


def present(issued, disclosed, holder_key):
    holder = SDJWTHolder(issued)
    holder.create_presentation(disclosed, NONCE, AUDIENCE, holder_key)
    return holder.sd_jwt_presentation


def check_sd_jwts(given, leaf, flips, rng, checks):
    issuer_jwk = leaf_public_jwk(leaf)
    issuer_key, holder_key = JWK(**issuer_jwk), JWK(**given["holderKey"])
    whole = {**given["payload"], **given["claims"]}

    def by_sd_jwt(presented):
        return SDJWTVerifier(presented, lambda _issuer, _header: issuer_key, AUDIENCE, NONCE).get_verified_payload()

    def by_openvc(presented):
        wanted = {"public_key_jwk": issuer_jwk, "audience": AUDIENCE, "nonce": NONCE, "expected_vct": whole["vct"]}
        verified = SdJwtVcProofSuite().verify(presented, require_key_binding=True, **wanted)
        if not verified.key_bound:
            raise Refused("not bound to the key")
        return verified.claims

    for number, issued in enumerate(given["issued"], 1):
        presented = present(issued, everything(given["claims"]), holder_key)
        for name, judge in (("sd-jwt", by_sd_jwt), ("openvc-core", by_openvc)):
            checks.equal(f"{name} reads every claim of SD-JWT VC {number}", judge(presented), whole)
            refused_copies(checks, f"{name}: SD-JWT VC {number}: it", judge, changed_text(presented, flips, rng))
            checks.outcome(f"{name} refuses SD-JWT VC {number} without key binding", not accepted(judge, issued))
    withheld = present(given["issued"][0], {"given_name": True}, holder_key)
    shown = {**given["payload"], "given_name": given["claims"]["given_name"]}
    for name, judge in (("sd-jwt", by_sd_jwt), ("openvc-core", by_openvc)):
        checks.equal(f"{name} reads only what the holder shows", judge(withheld), shown)


def as_json(value):
    """An element as the input of the issuer: dates and times are text, bytes are base64."""
    if isinstance(value, (cbor2.CBORTag, cbor.CborTag)):
        return as_json(value.value)
    if isinstance(value, Mapping):
        return {name: as_json(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_json(inner) for inner in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value.isoformat() if isinstance(value, datetime.date) else value


def check_mdoc(given, root, flips, rng, checks):
    response, transcript = unb64(given["response"]), unb64(given["transcript"])
    document = cbor2.loads(response)["documents"][0]["issuerSigned"]
    _protected, _headers, payload, signature = document["issuerAuth"]
    items = [item.value for elements in document["nameSpaces"].values() for item in elements]

    def by_pymdoccbor(data):
        judge = MdocCbor()
        judge.loads(data)
        # It knows one signature algorithm for roots only, so openvc-core alone judges the certificates.
        if not judge.verify() or not judge.documents:
            raise Refused("not valid")
        return as_json(judge.disclosure_map)

    def by_openvc(data):
        [verified] = verify_device_response(
            data, trust_anchors=[root], session_transcript=transcript, expected_doc_type=given["docType"]
        )
        return as_json(verified.namespaces)

    parts = [at for part in (payload, signature, *items) for at in places_of(response, part)]
    device = cbor2.loads(response)["documents"][0]["deviceSigned"]["deviceAuth"]["deviceSignature"]
    for name, judge, places in (
        ("pymdoccbor", by_pymdoccbor, parts),
        ("openvc-core", by_openvc, parts + places_of(response, device[3])),
    ):
        checks.equal(f"{name} reads every element of the mdoc", judge(response), given["nameSpaces"])
        refused_copies(checks, f"{name}: mdoc: it", judge, changed_bytes(response, places, 4 * flips, rng))
    other = transcript[:-1] + bytes([transcript[-1] ^ 1])
    checks.outcome(
        "openvc-core refuses the mdoc in another session",
        not accepted(lambda data: verify_device_response(data, trust_anchors=[root], session_transcript=other), response),
    )


def check_status_lists(lists, leaf, flips, rng, checks):
    issuer_jwk = leaf_public_jwk(leaf)
    issuer_key = jwt.PyJWK(issuer_jwk)

    def by_jwt(token):
        if jwt.get_unverified_header(token)["typ"] != "statuslist+jwt":
            raise Refused("another type")
        required = {"require": ["sub", "iat", "exp"]}
        return jwt.decode(token, issuer_key, algorithms=["ES256"], options=required)

    def by_cwt(data):
        token = cose.parse_sign1(cbor.decode(data))
        if token.protected_header.get(16) != "application/statuslist+cwt":
            raise Refused("another type")
        if not cose.verify_sign1(token, public_jwk=issuer_jwk):
            raise Refused("not signed by the key")
        return cbor.decode(token.payload)

    for given in lists:
        bits, values, uri = given["bits"], given["values"], given["uri"]
        name = f"status list of {bits} bits"
        claims = by_jwt(given["jwt"])
        listed = decode_status_list(claims["status_list"]["lst"])
        found = [get_status(listed, index, bits=claims["status_list"]["bits"]) for index in range(len(values))]
        checks.outcome(f"openvc-core reads all {len(values)} entries of the {name} (JWT)", found == values)
        reference = {"status": {"status_list": {"idx": 7, "uri": uri}}}
        result = check_token_status(reference, resolve_status_list_token={claims["sub"]: claims}.__getitem__)
        checks.equal(f"openvc-core resolves a credential in the {name}", result.status, values[7])
        refused_copies(checks, f"pyjwt: {name}: it", by_jwt, changed_text(given["jwt"], flips, rng))

        data = unb64(given["cwt"])
        claims = by_cwt(data)
        listed, width = zlib.decompress(claims[65533]["lst"]), claims[65533]["bits"]
        per_byte, mask = 8 // width, (1 << width) - 1
        found = [listed[at // per_byte] >> (at % per_byte * width) & mask for at in range(len(values))]
        checks.outcome(f"all {len(values)} entries of the {name} (CWT) are read", found == values)
        checks.equal(f"the {name} (CWT) names itself and lives", (claims[2], claims[4] - claims[6]), (uri, 86_400))
        places = places_of(data, cose.parse_sign1(cbor.decode(data)).payload)
        refused_copies(checks, f"openvc-core: {name} (CWT): it", by_cwt, changed_bytes(data, places, flips, rng))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file")
    parser.add_argument("--flips", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    # The refusals of changed copies would fill the output.
    logging.disable(logging.CRITICAL)
    with open(args.file, encoding="utf-8") as file:
        given = json.load(file)
    rng, checks = random.Random(args.seed), Checks()
    root, leaf = (x509.load_der_x509_certificate(base64.b64decode(given[name])) for name in ("root", "leaf"))
    chained = resolve_mdoc_signer_key([base64.b64decode(given["leaf"])], trust_anchors=[root])
    checks.equal("openvc-core accepts the certificate of the issuer", chained, leaf_public_jwk(leaf))
    check_sd_jwts(given["sdJwts"], leaf, args.flips, rng, checks)
    check_mdoc(given["mdoc"], root, args.flips, rng, checks)
    check_status_lists(given["statusLists"], leaf, args.flips, rng, checks)
    checks.close()


if __name__ == "__main__":
    main()
