#!/usr/bin/env python3
"""Fetches an X.509-SVID with the SPIFFE client of PyPI from a Workload API socket and checks all of its content.

    spiffe_client.py /path/to/service-register.sock spiffe://dev-local/service/service-register
"""
import argparse
import datetime
import sys
import threading

import grpc
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from spiffe import WorkloadApiClient

passed = failed = 0


def outcome(what, holds):
    global passed, failed
    print(f"{'ok ' if holds else 'NOT'} {what}")
    passed, failed = passed + bool(holds), failed + (not holds)


def extension(certificate, kind):
    return certificate.extensions.get_extension_for_class(kind).value


def refused(act):
    try:
        act()
        return False
    except Exception:
        return True


def check_svid(svid, authorities, expected):
    leaf, now = svid.leaf, datetime.datetime.now(datetime.timezone.utc)
    outcome("the client accepts the SVID", str(svid.spiffe_id) == expected)
    uris = extension(leaf, x509.SubjectAlternativeName).get_values_for_type(x509.UniformResourceIdentifier)
    outcome("the certificate has exactly this one URI name", uris == [expected])
    outcome("it is in force and lives an hour at most", leaf.not_valid_before_utc <= now < leaf.not_valid_after_utc
            and leaf.not_valid_after_utc - now <= datetime.timedelta(hours=1))
    usage = extension(leaf, x509.KeyUsage)
    outcome("it may sign and is no authority", usage.digital_signature and not usage.key_cert_sign
            and not usage.crl_sign and not extension(leaf, x509.BasicConstraints).ca)
    purposes = {purpose.dotted_string for purpose in extension(leaf, x509.ExtendedKeyUsage)}
    outcome("it serves clients and servers", {"1.3.6.1.5.5.7.3.1", "1.3.6.1.5.5.7.3.2"} <= purposes)

    chain = svid.cert_chain
    for child, parent in zip(chain, chain[1:]):
        child.verify_directly_issued_by(parent)
    last = chain[-1]
    issuers = [each for each in authorities if not refused(lambda each=each: last.verify_directly_issued_by(each))]
    outcome("the chain ends at an authority of the bundle", len(issuers) == 1)
    outcome("the authority may sign certificates", issuers
            and extension(issuers[0], x509.KeyUsage).key_cert_sign and extension(issuers[0], x509.BasicConstraints).ca)

    signature = svid.private_key.sign(b"a message", ec.ECDSA(hashes.SHA256()))
    leaf.public_key().verify(signature, b"a message", ec.ECDSA(hashes.SHA256()))
    outcome("what the key signs, the certificate verifies", True)
    outcome("and nothing else", refused(
        lambda: leaf.public_key().verify(signature, b"another message", ec.ECDSA(hashes.SHA256()))))


def check_stream(client, expected):
    """The stream sends a full snapshot at once and stays open for the next ones."""
    seen, errors, arrived = [], [], threading.Event()

    def on_context(context):
        seen.append(str(context.default_svid.spiffe_id))
        arrived.set()

    stream = client.stream_x509_contexts(on_context, errors.append)
    arrived.wait(10)
    stream.cancel()
    outcome("the stream of contexts begins with the same id", (seen, errors) == ([expected], []))


def without_header(socket):
    """Workload API standard, section 3: a caller without the security header is refused with InvalidArgument."""
    with grpc.insecure_channel(f"unix:{socket}") as channel:
        call = channel.unary_stream("/SpiffeWorkloadAPI/FetchX509SVID", request_serializer=bytes,
                                    response_deserializer=bytes)
        try:
            next(iter(call(b"", timeout=10)))
            return None
        except grpc.RpcError as error:
            return error.code()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("socket")
    parser.add_argument("expected")
    args = parser.parse_args()
    trust_domain = args.expected.split("/")[2]
    with WorkloadApiClient(f"unix:{args.socket}", default_timeout=10) as client:
        svids = client.fetch_x509_svids()
        outcome("the socket gives one identity", len(svids) == 1)
        bundle = next(iter(client.fetch_x509_bundles().bundles))
        outcome("the bundle is of the trust domain", str(bundle.trust_domain) in (trust_domain, f"spiffe://{trust_domain}"))
        check_svid(svids[0], list(bundle.x509_authorities), args.expected)
        again = client.fetch_x509_context()
        outcome("the context agrees with the single calls", again.default_svid.leaf == svids[0].leaf)
        check_stream(client, args.expected)
    outcome("a caller without the security header is refused",
            without_header(args.socket) == grpc.StatusCode.INVALID_ARGUMENT)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
