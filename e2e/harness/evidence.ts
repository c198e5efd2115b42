import { z } from 'zod';
import { sha256Hex } from '#core/crypto/hash.ts';
import { createVerifier, nodeEd25519 } from '#core/crypto/verify.ts';
import { encodeHex } from '#core/encoding/hex.ts';
import { verifyVote } from '#core/ledger/attestation.ts';
import { verifyCertificate } from '#core/ledger/certificate.ts';
import { parseCheckpoint, parseVerifierKey, verifyCheckpoint } from '#core/ledger/checkpoint.ts';
import type { ValidatorMember } from '#core/ledger/consensus.ts';
import { judgeControlRecord, parseControlRecord } from '#core/ledger/control-record.ts';
import { type DocketHeader, judgeHeader, judgeSuccession } from '#core/ledger/docket.ts';
import { applyControls } from '#core/ledger/governance/apply.ts';
import { controlTransaction } from '#core/ledger/governance/control.ts';
import { activeMembers, genesisRules, type LedgerRules } from '#core/ledger/governance/rules.ts';
import { logLeaf } from '#core/ledger/log.ts';
import { Frontier, verifyInclusion } from '#core/ledger/merkle.ts';
import { parsePath } from '#core/ledger/proof-path.ts';
import { parseRecord, recordLeaf } from '#core/ledger/record.ts';
import { boundTxId, verifyTransactionSignature } from '#core/ledger/transaction.ts';
import type { Api } from './api.ts';
import { inParallel } from './wait.ts';

const algorithm = z.enum(['ED25519', 'NISTP256', 'RSA-4096']);
const step = z.object({ hash: z.string(), position: z.enum(['Left', 'Right']) });
const path = z.array(step);

const certificate = z.object({
  version: z.literal(1),
  height: z.number(),
  round: z.number(),
  docketHash: z.string(),
  merkleRoot: z.string(),
  logRoot: z.string(),
  validatorSetHash: z.string(),
  signatures: z.array(
    z.object({ validatorId: z.string(), index: z.number(), timestamp: z.string(), signature: z.string() }),
  ),
});

const vote = z.object({
  docketHash: z.string(),
  validatorAddress: z.string(),
  validatorId: z.string(),
  approved: z.boolean(),
  timestamp: z.string(),
  signature: z.string(),
  algorithm,
  publicKey: z.string(),
});

const docket = z.object({
  registerId: z.string(),
  docketNumber: z.number(),
  previousHash: z.string(),
  timestamp: z.string(),
  validatorAddress: z.string(),
  transactionIds: z.array(z.string()),
  hash: z.string(),
  merkleRoot: z.string(),
  logRoot: z.string(),
  validatorSetHash: z.string(),
  isGenesis: z.boolean(),
  genesisConfig: z.string().optional(),
  sizeBytes: z.number(),
  certificate,
  consensusVotes: z.array(vote),
});

const docketPage = z.object({ items: z.array(z.object({ docketNumber: z.number() })), hasMore: z.boolean() });
const transaction = z.object({ payload: z.string() });
const proof = z.object({
  merkleRoot: z.string(),
  proofPath: path,
  leafIndex: z.number(),
  treeSize: z.number(),
  logProof: z.object({ leafIndex: z.number(), treeSize: z.number(), path }),
});

type Docket = z.output<typeof docket>;
type Proof = z.output<typeof proof>;

/** All that verification needs, as the public interface gave it. */
export interface Evidence {
  readonly registerId: string;
  readonly dockets: readonly Docket[];
  /** Exact record bytes by transaction id. */
  readonly records: ReadonlyMap<string, Uint8Array>;
  readonly payloads: ReadonlyMap<string, Uint8Array>;
  readonly proofs: ReadonlyMap<string, Proof>;
  readonly checkpoint: string;
  readonly checkpointKey: string;
}

/** Every docket of the register at `base`, in order. */
export async function fetchDockets(api: Api, token: string, base: string): Promise<Docket[]> {
  const numbers: number[] = [];
  for (let page = 1; ; page++) {
    const path = `${base}/dockets?order=asc&pageSize=100&page=${page}`;
    const { items, hasMore } = docketPage.parse((await api.expect(200, 'GET', path, { token })).body);
    numbers.push(...items.map((item) => item.docketNumber));
    if (!hasMore) {
      break;
    }
  }
  return inParallel(numbers, 8, async (number) =>
    docket.parse((await api.expect(200, 'GET', `${base}/dockets/${number}`, { token })).body),
  );
}

const attempts = 20;

/**
 * Fetches dockets, records, payloads, inclusion proofs and the checkpoint of a register, all of one head:
 * what a docket sealed in the meantime has mixed is fetched again.
 */
export async function collectEvidence(api: Api, token: string, registerId: string): Promise<Evidence> {
  for (let attempt = 1; ; attempt += 1) {
    const evidence = await collectOnce(api, token, registerId);
    const { length } = await fetchDockets(api, token, `/api/registers/${registerId}`);
    if (length === evidence.dockets.length) return evidence;
    if (attempt === attempts) {
      throw new Error(`register ${registerId} sealed during each of ${attempts} reads`);
    }
  }
}

async function collectOnce(api: Api, token: string, registerId: string): Promise<Evidence> {
  const base = `/api/registers/${registerId}`;
  const dockets = await fetchDockets(api, token, base);
  const ids = dockets.flatMap((each) => each.transactionIds);
  const records = new Map<string, Uint8Array>();
  const payloads = new Map<string, Uint8Array>();
  const proofs = new Map<string, Proof>();
  await inParallel(ids, 8, async (txId) => {
    const at = `${base}/transactions/${txId}`;
    records.set(txId, (await api.expect(200, 'GET', `${at}/record`, { token })).bytes);
    const { payload } = transaction.parse((await api.expect(200, 'GET', at, { token })).body);
    payloads.set(txId, Buffer.from(payload, 'base64'));
    proofs.set(txId, proof.parse((await api.expect(200, 'GET', `${at}/inclusion-proof`, { token })).body));
  });
  const checkpoint = await api.expect(200, 'GET', `${base}/checkpoint`, { token });
  const key = await api.expect(200, 'GET', `${base}/checkpoint/key`, { token });
  return {
    registerId,
    dockets,
    records,
    payloads,
    proofs,
    checkpoint: String(checkpoint.body),
    checkpointKey: String(key.body).trim(),
  };
}

function need(holds: boolean, what: string): asserts holds {
  if (!holds) {
    throw new Error(`verification refused: ${what}`);
  }
}

function bytesOf(map: ReadonlyMap<string, Uint8Array>, txId: string): Uint8Array {
  const bytes = map.get(txId);
  need(bytes !== undefined, `transaction ${txId} is missing`);
  return bytes;
}

const verifier = () => createVerifier(nodeEd25519());

function checkTransaction(evidence: Evidence, txId: string): Uint8Array {
  const bytes = bytesOf(evidence.records, txId);
  const record = parseRecord(bytes);
  need(
    record.txId === txId && record.registerId === evidence.registerId,
    `record ${txId} is of another transaction`,
  );
  need(sha256Hex(bytesOf(evidence.payloads, txId)) === record.payloadHash, `payload of ${txId}`);
  const signers = record.signatures.map((each) => each.publicKey);
  need(!record.bound || boundTxId(record, signers) === txId, `id of ${txId} is not the hash of its envelope`);
  const check = verifier();
  const signed = record.signatures.every((each) => verifyTransactionSignature(check, record, each));
  need(signed, `signature of ${txId}`);
  return recordLeaf(bytes);
}

function headerOf(each: Docket): DocketHeader {
  const { certificate: _certificate, consensusVotes: _votes, ...header } = each;
  return header;
}

function checkProof(evidence: Evidence, txId: string, of: Docket, logRoot: Uint8Array): void {
  const given = evidence.proofs.get(txId);
  need(given !== undefined && given.merkleRoot === of.merkleRoot, `inclusion proof of ${txId}`);
  const { leafIndex, treeSize, logProof } = given;
  const leaf = recordLeaf(bytesOf(evidence.records, txId));
  const inDocket = verifyInclusion(
    { leaf, leafIndex, treeSize, path: parsePath(given.proofPath) },
    Buffer.from(of.merkleRoot, 'hex'),
  );
  const inLog = verifyInclusion({ ...logProof, leaf: logLeaf(of), path: parsePath(logProof.path) }, logRoot);
  need(inDocket && inLog, `inclusion proof of ${txId}`);
}

/** The rules after a docket, folded from its control transactions. */
function rulesAfter(evidence: Evidence, rules: LedgerRules, each: Docket): LedgerRules {
  if (each.docketNumber === 0) return rules;
  const sealed = each.transactionIds.map((txId) => ({
    record: parseRecord(bytesOf(evidence.records, txId)),
    payload: bytesOf(evidence.payloads, txId),
  }));
  const controls = sealed
    .filter(({ record }) => record.type === 'Control')
    .map(({ record, payload }) => controlTransaction(record, payload));
  const { docketNumber, timestamp } = each;
  const fold = applyControls(rules, controls, { docketNumber, timestamp, verifier: verifier() });
  need(!('violations' in fold), `docket ${docketNumber} seals what the rules refuse`);
  return fold.rules;
}

/** The rules of a register after the last docket of its evidence. */
export function replayRules(evidence: Evidence): LedgerRules {
  const { rules } = genesisOf(evidence);
  return evidence.dockets.reduce((before, each) => rulesAfter(evidence, before, each), rules);
}

/** Whether a vote is of a member of the docket's own set, with the key that it had then. */
function isOfMember(
  { validatorId, publicKey, algorithm: name }: Docket['consensusVotes'][number],
  members: readonly ValidatorMember[],
): boolean {
  return members.some(
    (one) => one.validatorId === validatorId && one.publicKey === publicKey && one.algorithm === name,
  );
}

/** Verifies everything offline and returns the head hash; throws at the first thing that does not hold. */
export function checkEvidence(evidence: Evidence): string {
  const log = Frontier.empty();
  let head: Docket | undefined;
  const { networkId, ...genesis } = genesisOf(evidence);
  let { rules } = genesis;
  for (const each of evidence.dockets) {
    const header = headerOf(each);
    const members = activeMembers(rules);
    const { signatureThresholdMin } = rules.policy.consensus;
    const leaves = each.transactionIds.map((txId) => checkTransaction(evidence, txId));
    const violations = [
      ...judgeSuccession(header, head),
      ...judgeHeader(header, leaves, log),
      ...verifyCertificate(each.certificate, {
        members,
        signatureThresholdMin,
        networkId,
        registerId: evidence.registerId,
        verifier: verifier(),
        docket: header,
      }),
    ];
    need(
      violations.length === 0,
      `docket ${each.docketNumber}: ${violations.map((one) => one.message).join('; ')}`,
    );
    const votes = each.consensusVotes.every(
      (one) => one.docketHash === each.hash && isOfMember(one, members) && verifyVote(one, verifier()),
    );
    need(votes, `votes of docket ${each.docketNumber}`);
    log.append(logLeaf(each));
    rules = rulesAfter(evidence, rules, each);
    head = each;
  }
  need(head !== undefined, 'the register has no docket');
  for (const each of evidence.dockets) {
    for (const txId of each.transactionIds) {
      checkProof(evidence, txId, each, log.root());
    }
  }
  checkCheckpoint(evidence, log);
  return head.hash;
}

function checkCheckpoint(evidence: Evidence, log: Frontier): void {
  const checkpoint = parseCheckpoint(evidence.checkpoint);
  need(checkpoint.size === evidence.dockets.length, 'size of the checkpoint');
  need(encodeHex(checkpoint.rootHash) === encodeHex(log.root()), 'root of the checkpoint');
  const signed = verifyCheckpoint(verifier(), checkpoint, parseVerifierKey(evidence.checkpointKey));
  need(signed, 'signature of the checkpoint');
}

function genesisOf(evidence: Evidence) {
  const [first] = evidence.dockets;
  const txId = first?.transactionIds[0];
  need(first !== undefined && txId !== undefined, 'the register has no genesis');
  const record = parseControlRecord(JSON.parse(Buffer.from(bytesOf(evidence.payloads, txId)).toString()));
  need(record.registerId === evidence.registerId, 'the genesis is of another register');
  need(judgeControlRecord(record, verifier()).length === 0, 'the genesis record');
  const [signer] = parseRecord(bytesOf(evidence.records, txId)).signatures;
  need(signer !== undefined, 'the genesis is not signed');
  const { networkId } = z.object({ networkId: z.string() }).parse(JSON.parse(first.genesisConfig ?? '{}'));
  return { rules: genesisRules(record, signer), networkId };
}

function flipText(text: string): string {
  const middle = Math.floor(text.length / 2);
  return text.slice(0, middle) + (text[middle] === '1' ? '2' : '1') + text.slice(middle + 1);
}

function flipBytes(map: ReadonlyMap<string, Uint8Array>, txId: string): ReadonlyMap<string, Uint8Array> {
  const bytes = Buffer.from(bytesOf(map, txId));
  const middle = Math.floor(bytes.length / 2);
  bytes[middle] = (bytes[middle] ?? 0) ^ 1;
  return new Map(map).set(txId, bytes);
}

/** Verifies copies with one byte changed in each kind of evidence; throws when one of them passes. */
export function flipOneByte(evidence: Evidence): readonly string[] {
  const last = evidence.dockets.at(-1);
  const txId = last?.transactionIds.at(-1);
  need(last !== undefined && txId !== undefined, 'nothing to change');
  const withLast = (change: Partial<Docket>): Evidence => ({
    ...evidence,
    dockets: [...evidence.dockets.slice(0, -1), { ...last, ...change }],
  });
  const [first, ...rest] = last.certificate.signatures;
  need(first !== undefined, 'a certificate without signatures');
  const forged = {
    ...last.certificate,
    signatures: [{ ...first, signature: flipText(first.signature) }, ...rest],
  };
  const size = `\n${evidence.dockets.length}\n`;
  const copies: Readonly<Record<string, Evidence>> = {
    hash: withLast({ hash: flipText(last.hash) }),
    previousHash: withLast({ previousHash: flipText(last.previousHash) }),
    merkleRoot: withLast({ merkleRoot: flipText(last.merkleRoot) }),
    logRoot: withLast({ logRoot: flipText(last.logRoot) }),
    certificate: withLast({ certificate: forged }),
    record: { ...evidence, records: flipBytes(evidence.records, txId) },
    payload: { ...evidence, payloads: flipBytes(evidence.payloads, txId) },
    checkpoint: {
      ...evidence,
      checkpoint: evidence.checkpoint.replace(size, `\n${evidence.dockets.length + 1}\n`),
    },
  };
  return Object.entries(copies).map(([kind, copy]) => {
    need(refused(copy), `one byte of ${kind} was changed and nobody noticed`);
    return kind;
  });
}

function refused(evidence: Evidence): boolean {
  try {
    checkEvidence(evidence);
    return false;
  } catch {
    return true;
  }
}
