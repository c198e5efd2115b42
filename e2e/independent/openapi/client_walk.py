"""From sign-in to an inclusion proof with a generated client, called by methods and paths of the document alone."""
import datetime
import enum
import json
import pathlib
import sys
import time
import uuid

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from api_document import operations_of  # noqa: E402
from chain_checks import check_checkpoint, check_inclusion, check_record  # noqa: E402
from ledger_formats import Refused, b64, jcs, ledger_now, sha256, signing_digest, transaction_id, unb64  # noqa: E402

REGISTER = "/api/registers/{registerId}"
TRANSACTION = f"{REGISTER}/transactions/{{txId}}"
DOCKET = f"{REGISTER}/dockets/{{docketId}}"


class Walk:
    """Calls operations, and checks that the client reads each answer as the document describes it."""

    def __init__(self, checks, client, document):
        self.checks, self.client = checks, client
        self.responses = {(one.method, one.path): one.value["responses"] for one in operations_of(document)}

    def call(self, expected, method, path, parameters=None, body=None):
        """The answer of an expected status; raises Refused for any other one."""
        answer = self.client.call(method, path, parameters, body)
        call = f"{method.upper()} {path}"
        if answer.status not in expected:
            raise Refused(f"{call} answered {answer.status}, expected {expected}: {answer.body[:500]!r}")
        self.check_typed(call, answer, self.schema(method, path, answer.status))
        return answer

    def schema(self, method, path, status):
        """The schema of an answer of JSON; None when the document names none."""
        responses = self.responses[(method, path)]
        response = responses.get(str(status)) or responses.get("default", {})
        for media_type, content in response.get("content", {}).items():
            if "json" in media_type:
                return content.get("schema")
        return None

    def check_typed(self, call, answer, schema):
        """Checks that the value that the client parsed equals the body."""
        if not schema or not answer.body:
            return
        typed, sent = without_nulls(plain(answer.typed)), without_nulls(answer.json())
        if not is_same(typed, sent):
            raise Refused(f"{call}: the client read {shown(typed)} from {shown(sent)}")

    def until(self, what, ask, deadline_s=30):
        deadline = time.monotonic() + deadline_s
        while True:
            found = ask()
            if found is not None:
                return found
            if time.monotonic() > deadline:
                raise Refused(f"{what}: not within {deadline_s} s")
            time.sleep(0.05)


def plain(value):
    """A value of a generated client as JSON; instants stay in the client's type."""
    if hasattr(value, "to_dict"):
        return plain(value.to_dict())
    if hasattr(value, "actual_instance"):
        return plain(value.actual_instance)
    if isinstance(value, dict):
        return {name: plain(member) for name, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(member) for member in value]
    if isinstance(value, enum.Enum):
        return value.value
    return str(value) if isinstance(value, uuid.UUID) else value


def is_same(typed, sent):
    """Whether a client parsed the sent value. Texts that it parses as instants are compared as instants."""
    if isinstance(typed, dict) and isinstance(sent, dict):
        return typed.keys() == sent.keys() and all(is_same(member, sent[name]) for name, member in typed.items())
    if isinstance(typed, list) and isinstance(sent, list):
        return len(typed) == len(sent) and all(map(is_same, typed, sent))
    if isinstance(typed, datetime.datetime) and isinstance(sent, str):
        return typed == datetime.datetime.fromisoformat(sent.replace("Z", "+00:00"))
    return typed == sent


def without_nulls(value):
    """Clients may leave out null members."""
    if isinstance(value, dict):
        return {name: without_nulls(member) for name, member in value.items() if member is not None}
    return [without_nulls(member) for member in value] if isinstance(value, list) else value


def shown(value):
    return json.dumps(value, default=repr)[:400]


def walk(checks, client, document, email, password):
    step = Walk(checks, client, document)
    sign_in(step, email, password)
    wallet = create_wallet(step)
    register = create_register(step, wallet)
    tx_id = submit(step, wallet, register)
    prove(step, register, tx_id)
    refusal(step, register)


def sign_in(step, email, password):
    answer = step.call([200], "post", "/api/auth/login", body={"email": email, "password": password})
    step.client.token = answer.json()["access_token"]
    me = step.call([200], "get", "/api/auth/me").json()
    step.checks.outcome("signs in, and reads its own account", email in json.dumps(me), shown(me))


def create_wallet(step):
    wallet = step.call([201], "post", "/api/wallets", body={"title": "Of a generated client", "keyType": "ED25519"}).json()
    read = step.call([200], "get", "/api/wallets/{id}", {"id": wallet["id"]}).json()
    step.checks.outcome("creates a wallet and reads it", read["walletAddress"] == wallet["walletAddress"], shown(read))
    return wallet


def sign(step, wallet, digest):
    """A signature of the wallet's key over 32 bytes."""
    body = {"data": b64(digest), "algorithm": wallet["algorithm"], "isPreHashed": True}
    return step.call([200], "post", "/api/wallets/{id}/sign", {"id": wallet["id"]}, body).json()


def create_register(step, wallet):
    wish = {"title": "Of a generated client", "owners": [{"walletAddress": wallet["walletAddress"]}]}
    begun = step.call([201], "post", "/api/registers/initiate", body=wish).json()
    signed = []
    for one in begun["attestationsToSign"]:
        signature = sign(step, wallet, bytes.fromhex(one["dataToSign"]))
        kept = {name: signature[name] for name in ("publicKey", "signature", "algorithm")}
        signed.append({"attestationData": one["attestationData"], **kept})
    register = begun["id"]
    body = {"registerId": register, "nonce": begun["nonce"], "signedAttestations": signed}
    step.call([200, 201, 202], "post", "/api/registers/finalize", body=body)

    def first_docket():
        answer = step.call([200, 404, 503], "get", DOCKET, {"registerId": register, "docketId": "0"})
        return answer if answer.status == 200 else None

    docket = step.until("the first docket", first_docket).json()
    step.checks.outcome("creates a register that seals its first docket", docket["registerId"] == register, shown(docket))
    return register


def submit(step, wallet, register):
    """Signs a transaction with the wallet's key, as any client does, and waits until it is sealed."""
    payload = {"made-by": step.client.name, "n": 1}
    envelope = {"registerId": register, "blueprintId": "generated", "actionId": "1", "createdAt": ledger_now()}
    envelope["payloadHash"] = sha256(jcs(payload)).hex()
    tx_id = transaction_id(envelope, [wallet["publicKey"]])
    signature = unb64(sign(step, wallet, signing_digest(tx_id, envelope["payloadHash"]))["signature"])
    signatures = [{"PublicKey": wallet["publicKey"], "SignatureValue": b64(signature), "Algorithm": wallet["algorithm"]}]
    body = {
        "TransactionId": tx_id,
        "RegisterId": register,
        "BlueprintId": envelope["blueprintId"],
        "ActionId": envelope["actionId"],
        "Payload": payload,
        "PayloadHash": envelope["payloadHash"],
        "Signatures": signatures,
        "CreatedAt": envelope["createdAt"],
        "Metadata": {},
    }
    step.call([200, 202], "post", "/api/v1/transactions/validate", body=body)

    def confirmed():
        answer = step.call([200, 404], "get", TRANSACTION, {"registerId": register, "txId": tx_id})
        return answer if answer.status == 200 and answer.json()["status"] == "confirmed" else None

    found = step.until("the transaction", confirmed).json()
    step.checks.outcome("submits a transaction that is sealed", found["senderAddress"] == wallet["walletAddress"], shown(found))
    return tx_id


def prove(step, register, tx_id):
    """Proves from the answers alone that the transaction is in the log of the register."""
    named, one = {"registerId": register}, {"registerId": register, "txId": tx_id}
    transaction = step.call([200], "get", TRANSACTION, one).json()
    record = step.call([200], "get", f"{TRANSACTION}/record", one).body
    check_record(record, unb64(transaction["payload"]), tx_id)
    docket = step.call([200], "get", DOCKET, {**named, "docketId": str(transaction["docketNumber"])}).json()
    head = step.call([200], "get", DOCKET, {**named, "docketId": "latest"}).json()
    proof = step.call([200], "get", f"{TRANSACTION}/inclusion-proof", one).json()
    check_inclusion(proof, record, docket, head["logRoot"], head["docketNumber"] + 1)
    note = step.call([200], "get", f"{REGISTER}/checkpoint", named).body.decode()
    key = step.call([200], "get", f"{REGISTER}/checkpoint/key", named).body.decode().strip()
    check_checkpoint(note, key, f"/registers/{register}", head["logRoot"], head["docketNumber"] + 1)
    step.checks.outcome("reads a proof that holds against the signed checkpoint", True)


def refusal(step, register):
    unknown = step.call([404], "get", TRANSACTION, {"registerId": register, "txId": "0" * 64})
    problem = plain(unknown.typed)
    step.checks.outcome("reads a refusal as a problem", isinstance(problem, dict) and problem.get("status") == 404, shown(problem))
