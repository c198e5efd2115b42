"""Checks of records, dockets, certificates, votes, proofs and checkpoints. Each raises Refused, or returns quietly."""
from ledger_formats import (
    PRECOMMIT,
    Refused,
    ZERO,
    climb,
    docket_hash,
    jcs,
    leaf_hash,
    log_leaf,
    need,
    quorum,
    read_json,
    sha256,
    sign_bytes,
    signature_holds,
    signing_digest,
    transaction_id,
    tree_root,
    unb64,
    validator_set_hash,
    wallet_address,
)


def check_record(record, payload, tx_id):
    """One sealed record: canonical bytes, payload hash, derived id, sender and every signature. Returns its value."""
    value = read_json(record)
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
        key, signature = unb64(s["publicKey"]), unb64(s["signatureValue"])
        holds = signature_holds(s["algorithm"], key, digest, signature, prehashed=True)
        need(holds, f"a signature of {tx_id} does not verify")
    first = value["signatures"][0]
    need(wallet_address(first["algorithm"], unb64(first["publicKey"])) == value["senderAddress"], f"sender of {tx_id}")
    return value


def check_docket(docket, previous, leaves, log):
    """Number, link, time, hash, Merkle root and log root of one docket; `log` is the Log of the dockets before it."""
    number = docket["docketNumber"]
    need(number == (previous["docketNumber"] + 1 if previous else 0), f"docket {number} is out of order")
    need(docket["previousHash"] == (previous["hash"] if previous else ZERO), f"docket {number} does not link")
    if previous:
        need(docket["registerId"] == previous["registerId"], f"docket {number} is of another register")
        need(docket["timestamp"] > previous["timestamp"], f"docket {number} is not later than its predecessor")
    need(docket_hash(docket) == docket["hash"], f"hash of docket {number}")
    need(len(leaves) == len(docket["transactionIds"]) > 0, f"transactions of docket {number}")
    need(tree_root(leaves).hex() == docket["merkleRoot"], f"merkleRoot of docket {number}")
    need(log.root_with(log_leaf(docket)).hex() == docket["logRoot"], f"logRoot of docket {number}")


def check_certificate(docket, members, network, threshold):
    """Distinct members of the set at that height, a quorum of one round, every signature over this docket.

    `members` and `threshold` are those that the control transactions of the dockets before this one decided.
    """
    certificate, number = docket["certificate"], docket["docketNumber"]
    ordered = sorted(members, key=lambda member: member["validatorId"])
    need(validator_set_hash(ordered) == docket["validatorSetHash"], f"validator set of docket {number}")
    roots = ("merkleRoot", "logRoot", "validatorSetHash")
    is_same = all(certificate[name] == docket[name] for name in roots) and certificate["docketHash"] == docket["hash"]
    need(is_same and certificate["height"] == number, f"certificate of docket {number} is for another docket")
    need(certificate["version"] == 1, f"version of the certificate of docket {number}")
    places = [s["index"] for s in certificate["signatures"]]
    need(places == sorted(set(places)), f"certificate of docket {number} counts a member twice")
    enough = quorum(len(ordered), threshold)
    need(len(places) >= enough, f"certificate of docket {number} has {len(places)} of {enough} signatures")
    for s in certificate["signatures"]:
        signer = s["validatorId"]
        known = 0 <= s["index"] < len(ordered) and ordered[s["index"]]["validatorId"] == signer
        need(known, f"{signer} is not that member of the set of docket {number}")
        facts = {name: certificate[name] for name in ("height", "round", "validatorSetHash")}
        message = {**facts, "networkId": network, "registerId": docket["registerId"], "timestamp": s["timestamp"]}
        message["docket"] = certificate
        key = unb64(ordered[s["index"]]["publicKey"])
        holds = signature_holds("ED25519", key, sign_bytes(PRECOMMIT, message), unb64(s["signature"]))
        need(holds, f"precommit of {signer} for docket {number}")


def vote_bytes(vote):
    """The text that a vote of the specification signs: docketHash|validatorAddress|approved|timestamp."""
    approved = "true" if vote["approved"] else "false"
    return "|".join([vote["docketHash"], vote["validatorAddress"], approved, vote["timestamp"]]).encode()


def check_attestations(docket, members):
    """The specification's votes: each of another member of the set at that height, by its key at that height.

    A member may have rejected the docket, or another one that was proposed for its number: such a vote is stored with
    the docket and approves nothing. Returns the members that approve.
    """
    keys = {member["validatorId"]: (member["algorithm"], member["publicKey"]) for member in members}
    number, voters, approving = docket["docketNumber"], set(), []
    for vote in docket.get("consensusVotes", []):
        voter = vote["validatorId"]
        need(voter in keys, f"a vote of {voter}, which is not in the set of docket {number}")
        need((vote["algorithm"], vote["publicKey"]) == keys[voter], f"a vote of {voter} by another key than the set has")
        need(voter not in voters, f"{voter} votes twice on docket {number}")
        need(isinstance(vote["approved"], bool), "a vote that neither approves nor rejects")
        need(vote["docketHash"] == docket["hash"] or not vote["approved"], "an approval of another docket")
        key = unb64(vote["publicKey"])
        need(wallet_address(vote["algorithm"], key) == vote["validatorAddress"], "a vote under a foreign address")
        holds = signature_holds(vote["algorithm"], key, vote_bytes(vote), bytes.fromhex(vote["signature"]))
        need(holds, f"the vote of {voter} on docket {number}")
        voters.add(voter)
        if vote["approved"]:
            approving.append(voter)
    return approving


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


def check_cosignatures(note, members, network):
    """C2SP cosignature/v1 lines of the validators: eight bytes of time, then the signature. Returns their number."""
    body, _, lines = note.partition("\n\n")
    body += "\n"
    keys = {f"{network}/validators/{m['validatorId']}": b"\x04" + unb64(m["publicKey"]) for m in members}
    seen = set()
    for line in lines.splitlines():
        _, signer, blob = line.split(" ", 2)
        raw = unb64(blob)
        if signer not in keys or raw[:4] != sha256(signer.encode() + b"\n" + keys[signer])[:4]:
            continue
        message = f"cosignature/v1\ntime {int.from_bytes(raw[4:12], 'big')}\n{body}".encode()
        need(signer not in seen, f"{signer} cosigned twice")
        need(signature_holds("ED25519", keys[signer][1:], message, raw[12:]), f"cosignature of {signer}")
        seen.add(signer)
    return len(seen)
