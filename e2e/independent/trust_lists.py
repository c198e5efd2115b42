#!/usr/bin/env python3
"""Judges trust lists with `openvc-core`: ETSI TS 119 612 in XML, and ETSI TS 119 602 as a compact JWS.

    trust_lists.py < TASKS

Each line of TASKS has the file of a list, the file of its signer's certificate (DER) and the time to judge at, in
milliseconds since 1970, with tabs between them. Each line of the output is JSON: whether the list is accepted, the
reason of a refusal, and the certificates of its services that issue and are granted (base64 of DER).

Needs the packages `openvc-core` and `signxml`.
"""
import base64
import datetime
import functools
import json
import pathlib
import re
import sys
import warnings

import signxml
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from openvc.trustlist import consume_lote, consume_trust_list, verify_xades_enveloped

ISSUING_XML = ("http://uri.etsi.org/TrstSvc/Svctype/CA/QC", "http://uri.etsi.org/TrstSvc/Svctype/CA/PKC")
ISSUING_JSON = re.compile(r"http://uri\.etsi\.org/19602/SvcType/[A-Za-z]+/Issuance")
GRANTED = "http://uri.etsi.org/TrstSvc/TrustedList/Svcstatus/granted"
NOTIFIED = "http://uri.etsi.org/19602/PubEAAProvidersList/SvcStatus/notified"
# The one service of TS 119 602 whose entries have a status.
WITH_STATUS = "http://uri.etsi.org/19602/SvcType/PubEAA/Issuance"
CONFIGURATION = signxml.SignatureConfiguration


def is_anchor_of_xml(service):
    return service.service_type in ISSUING_XML and service.service_status == GRANTED


def is_anchor_of_json(service):
    if not ISSUING_JSON.fullmatch(service.service_type):
        return False
    if service.service_status == "":
        return service.service_type != WITH_STATUS
    return service.service_status in (GRANTED, NOTIFIED)


def certificate_of(service):
    return base64.b64encode(service.certificate.public_bytes(Encoding.DER)).decode("ascii")


def read(document, signer, now):
    """The services of a list that make anchors."""
    # openvc-core takes no time for lists in XML; it makes a configuration of signxml, which takes one
    signxml.SignatureConfiguration = functools.partial(CONFIGURATION, verification_time=now)
    if document.lstrip().startswith((b"<", b"\xef\xbb\xbf")):
        parsed = consume_trust_list(document, verify_signature=verify_xades_enveloped, expected_signer_certs=[signer])
        selects = is_anchor_of_xml
    else:
        parsed = consume_lote(document, expected_signer_certs=[signer], now=now)
        selects = is_anchor_of_json
    return [service for provider in parsed.providers for service in provider.services if selects(service)]


def judge(line):
    list_file, signer_file, at_ms = line.split("\t")
    now = datetime.datetime.fromtimestamp(int(at_ms) / 1000, datetime.timezone.utc)
    signer = x509.load_der_x509_certificate(pathlib.Path(signer_file).read_bytes())
    try:
        services = read(pathlib.Path(list_file).read_bytes(), signer, now)
    except Exception as error:  # whatever it raises is its refusal
        reason = f"{type(error).__name__}: {error}"
        return {"accepted": False, "reason": reason, "anchors": []}
    return {"accepted": True, "reason": "", "anchors": [certificate_of(each) for each in services]}


def main():
    warnings.simplefilter("ignore")  # serial numbers of published certificates
    for line in sys.stdin.read().splitlines():
        print(json.dumps(judge(line)), flush=True)


if __name__ == "__main__":
    main()
