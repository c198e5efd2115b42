#!/usr/bin/env python3
"""Votes of the specification that must not count, and a set of valid ones that the check must accept.

A sealed docket carries the votes that members gave after the decision. They decide nothing, so no other check would
detect a vote of a non-member, a repeated member, or a rejection that is counted as an approval.
"""
import sys

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from chain_checks import check_attestations, vote_bytes
from ledger_formats import Refused, raw_public_key, unb64, wallet_address

HASH, OTHER_HASH = "ab" * 32, "cd" * 32
TIMESTAMP = "2026-11-21T10:00:00.0000000+00:00"


def vote_of(private, name, docket_hash, approved=True):
    """A correctly signed vote of any signer."""
    public = raw_public_key(private.public_key())
    vote = {"docketHash": docket_hash, "approved": approved, "timestamp": TIMESTAMP, "validatorId": name}
    vote |= {"algorithm": "ED25519", "publicKey": public, "validatorAddress": wallet_address("ED25519", unb64(public))}
    return {**vote, "signature": private.sign(vote_bytes(vote)).hex()}


def spoiled_votes(docket, members):
    """(fault, all votes of the docket with this fault); each must be refused."""
    votes = docket["consensusVotes"]
    stranger = Ed25519PrivateKey.from_private_bytes(b"\x77" * 32)
    silent = [m["validatorId"] for m in members if m["validatorId"] not in {vote["validatorId"] for vote in votes}]
    others = [vote for vote in votes if vote["validatorId"] != members[0]["validatorId"]]
    yield "the voters: a stranger signs beside them", [*votes, vote_of(stranger, "validator-of-nobody", docket["hash"])]
    name = silent[0] if silent else members[0]["validatorId"]
    kept = votes if silent else others
    yield "the voters: a stranger signs in a member's name", [*kept, vote_of(stranger, name, docket["hash"])]
    yield "the voters: one votes twice", [*votes, dict(votes[0])]
    yield "the voters: one approves and takes the name of another one", [
        {**vote, "validatorId": "validator-of-nobody"} for vote in votes
    ]
    yield "a vote: whether it approves", [{**votes[0], "approved": not votes[0]["approved"]}, *votes[1:]]
    yield "a vote: its time", [{**votes[0], "timestamp": votes[0]["timestamp"] + "0"}, *votes[1:]]
    last = votes[0]["signature"][-2:]
    broken = votes[0]["signature"][:-2] + ("00" if last != "00" else "01")
    yield "a vote: its signature", [{**votes[0], "signature": broken}, *votes[1:]]


def own_set():
    keys = [Ed25519PrivateKey.from_private_bytes(bytes([fill]) * 32) for fill in (1, 2, 3, 4)]
    names = [f"validator-{place}" for place in range(4)]
    members = [
        {"validatorId": name, "algorithm": "ED25519", "publicKey": raw_public_key(key.public_key())}
        for name, key in zip(names, keys)
    ]
    return keys, names, members


def docket_with(votes):
    return {"docketNumber": 7, "hash": HASH, "consensusVotes": votes}


def cases():
    """(case, the votes of one docket, the members that approve; None for votes that must be refused)"""
    keys, names, members = own_set()
    approvals = [vote_of(key, name, HASH) for key, name in zip(keys, names)]
    rejection = vote_of(keys[3], names[3], HASH, approved=False)
    yield "nobody voted", [], []
    yield "all members approve", approvals, names
    yield "a rejection is allowed and approves nothing", [*approvals[:3], rejection], names[:3]
    other = vote_of(keys[3], names[3], OTHER_HASH, approved=False)
    yield "so may the rejection of another proposal", [*approvals[:3], other], names[:3]
    yield "rejections alone approve nothing", [rejection], []
    yield "a rejection that reads as approval", [*approvals[:3], {**rejection, "approved": True}], None
    yield "an approval that reads as rejection", [*approvals[:3], {**approvals[3], "approved": False}], None
    yield "a rejection, and an approval of the same member", [*approvals, rejection], None
    yield "an approval of another docket", [*approvals[:3], vote_of(keys[3], names[3], OTHER_HASH)], None
    yield "approved is a word", [*approvals[:3], {**approvals[3], "approved": "true"}], None
    yield "one member under the name of another", [vote_of(keys[0], names[1], HASH)], None
    for what, votes in spoiled_votes(docket_with(approvals), members):
        yield what, votes, None
    for what, votes in spoiled_votes(docket_with(approvals[:2]), members):
        yield f"{what}, with two silent", votes, None


def verdict(votes, members):
    try:
        return check_attestations(docket_with(votes), members)
    except (Refused, ValueError, KeyError):
        return None


def main():
    _, _, members = own_set()
    passed = failed = 0
    for what, votes, expected in cases():
        found = verdict(votes, members)
        right = found == expected
        print(f"{'ok ' if right else 'NOT'} {what}: {'refused' if found is None else f'{len(found)} approve'}")
        passed, failed = passed + right, failed + (not right)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()
