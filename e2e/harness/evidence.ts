import { z } from 'zod';
import { createVerifier, nodeEd25519 } from '#core/crypto/verify.ts';
import { verifierKey } from '#core/ledger/checkpoint.ts';
import type { LedgerRules } from '#core/ledger/governance/rules.ts';
import { logLeaf } from '#core/ledger/log.ts';
import { verifyInclusion } from '#core/ledger/merkle.ts';
import { parsePath } from '#core/ledger/proof-path.ts';
import { recordLeaf } from '#core/ledger/record.ts';
import { ChainVerifier } from '#core/ledger/verification/chain.ts';
import { checkpointKey } from '#core/ledger/verification/head-checkpoint.ts';
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
/** An inclusion proof as the interface answers it. */
export type Proof = z.output<typeof proof>;

/** Everything that verification needs, as read from the public interface. */
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

const graph = z.object({ nodes: z.array(z.object({ txId: z.string() })), hasMore: z.boolean() });

/** Ids of all transactions of a register as its index has them, pending ones included, newest first. */
export async function fetchIndexedIds(api: Api, token: string, registerId: string): Promise<string[]> {
  const found: string[] = [];
  for (;;) {
    const before = found.length === 0 ? '' : `&before=${found.at(-1)}`;
    const path = `/api/registers/${registerId}/transactions/graph?limit=100${before}`;
    const { nodes, hasMore } = graph.parse((await api.expect(200, 'GET', path, { token })).body);
    found.push(...nodes.map(({ txId }) => txId));
    if (!hasMore) return found;
  }
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

/** Verifier keys of the validators that may cosign the checkpoint of a register. */
export async function fetchCosigners(api: Api, token: string, registerId: string): Promise<string[]> {
  const path = `/api/registers/${registerId}/checkpoint/cosigners`;
  return String((await api.expect(200, 'GET', path, { token })).body)
    .trim()
    .split('\n');
}

const attempts = 20;

/**
 * Fetches dockets, records, payloads, inclusion proofs and the checkpoint of a register, all of one head. When a docket
 * is sealed in the meantime, the data is fetched again.
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

/** Verifies every docket of the evidence, as a replica would. */
function verifyDockets(evidence: Evidence): ChainVerifier {
  const chain = new ChainVerifier(evidence.registerId, createVerifier(nodeEd25519()));
  for (const { certificate: decided, consensusVotes, ...header } of evidence.dockets) {
    chain.open({ header, certificate: decided, attestations: consensusVotes });
    for (const txId of header.transactionIds) {
      chain.take(bytesOf(evidence.records, txId), bytesOf(evidence.payloads, txId));
    }
    chain.close();
  }
  return chain;
}

/** The rules of a register after the last docket of its evidence. */
export function replayRules(evidence: Evidence): LedgerRules {
  return verifyDockets(evidence).rules;
}

/** Verifies everything offline and returns the head hash; throws at the first fault. */
export function checkEvidence(evidence: Evidence): string {
  const chain = verifyDockets(evidence);
  for (const each of evidence.dockets) {
    for (const txId of each.transactionIds) checkProof(evidence, txId, each, chain.logRoot);
  }
  chain.judgeCheckpoint(evidence.checkpoint);
  need(verifierKey(checkpointKey(chain)) === evidence.checkpointKey, 'the key of the checkpoint');
  need(chain.head !== undefined, 'the register has no docket');
  return chain.head.hash;
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
    need(refused(copy), `one byte of ${kind} was changed and verification still passed`);
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
