import { walletAddress } from '#core/crypto/address.ts';
import { isAlgorithm } from '#core/crypto/algorithm.ts';
import { sha256Hex } from '#core/crypto/hash.ts';
import { parsePublicKey } from '#core/crypto/public-key.ts';
import type { Verifier } from '#core/crypto/verify.ts';
import { fromUtf8 } from '#core/encoding/text.ts';
import { findTimestamp } from '#core/encoding/timestamp.ts';
import { isAppError, type Violation, violation } from '#core/errors/errors.ts';
import { type ValidationCodeName, validationViolation } from '#core/errors/validation-codes.ts';
import { type ConsensusVote, verifyVote } from '#core/ledger/attestation.ts';
import { verifyCertificate } from '#core/ledger/certificate.ts';
import { type ValidatorMember, validatorSetHash } from '#core/ledger/consensus.ts';
import { genesisConfigText, parseControlRecord } from '#core/ledger/control-record.ts';
import { type DocketHead, judgeHeader, judgeSuccession } from '#core/ledger/docket.ts';
import type { LedgerRules } from '#core/ledger/governance/rules.ts';
import type { Frontier } from '#core/ledger/merkle.ts';
import { parseRecord, recordLeaf, type SealedRecord } from '#core/ledger/record.ts';
import { boundTxId, type TransactionSignature } from '#core/ledger/transaction.ts';
import type { RegisterStatus } from '../registers/store.ts';
import type { DocketBundle } from './docket.ts';

/** What a docket is judged against: the register after its last docket. */
export interface ChainState {
  readonly registerNo: number;
  readonly registerId: string;
  readonly networkId: string;
  /** number of sealed dockets */
  readonly height: number;
  readonly head: DocketHead | undefined;
  readonly frontier: Frontier;
  /** V(height) */
  readonly members: readonly ValidatorMember[];
  readonly signatureThresholdMin: number;
  readonly requireBoundTxId: boolean;
  readonly limits: {
    readonly maxTransactionsPerDocket: number;
    readonly maxDocketBytes: number;
    readonly maxTransactionBytes: number;
  };
  readonly genesisTransactionId: string;
  readonly status: RegisterStatus;
  /** what control transactions are judged by; undefined before docket 0 */
  readonly rules: LedgerRules | undefined;
}

/** Types of sealed transactions that this docket's transactions follow, by id. */
export type PredecessorTypes = ReadonlyMap<string, string>;

/** A docket whose records were read; every stage after that one looks at this. */
export interface ReadDocket {
  readonly bundle: DocketBundle;
  readonly records: readonly SealedRecord[];
  readonly leaves: readonly Uint8Array[];
}

export interface SignatureCheck {
  readonly txId: string;
  readonly payloadHash: string;
  readonly signature: TransactionSignature;
}

/** Verifies many transaction signatures, in the order given; the pool of kit/crypto in production. */
export type VerifySignatures = (checks: readonly SignatureCheck[]) => Promise<readonly boolean[]>;

type Stage = (docket: ReadDocket, state: ChainState) => Violation[];

/** Types that one predecessor may have many of, and that may follow one another freely (L-43). */
export function isControlClass(type: string): boolean {
  return type === 'Genesis' || type === 'Control';
}

function at(index: number, code: ValidationCodeName, member: string): Violation {
  return validationViolation(code, `transactions[${index}].${member}`);
}

/** Reads the records: canonical bytes, the register's id, the ids of the header in their order. */
export function readDocket(bundle: DocketBundle): ReadDocket | Violation[] {
  const { header, transactions } = bundle;
  if (transactions.length === 0 || transactions.length !== header.transactionIds.length) {
    return [
      validationViolation('VAL_STRUCT_001', 'transactions', 'Every transaction of the docket must be there.'),
    ];
  }
  const records: SealedRecord[] = [];
  const found: Violation[] = [];
  for (const [index, transaction] of transactions.entries()) {
    const record = readRecord(transaction.record);
    if (record === undefined) found.push(at(index, 'VAL_STRUCT_012', 'record'));
    else if (record.txId !== header.transactionIds[index])
      found.push(at(index, 'VAL_STRUCT_002', 'record.txId'));
    else if (record.registerId !== header.registerId)
      found.push(at(index, 'VAL_STRUCT_003', 'record.registerId'));
    else records.push(record);
  }
  if (found.length > 0) return found;
  return { bundle, records, leaves: transactions.map((one) => recordLeaf(one.record)) };
}

function readRecord(bytes: Uint8Array): SealedRecord | undefined {
  try {
    return parseRecord(bytes);
  } catch (error) {
    if (isAppError(error, 'invalid')) return undefined;
    throw error;
  }
}

const judgePlace: Stage = ({ bundle }, state) => judgeSuccession(bundle.header, state.head);

const judgeContent: Stage = ({ bundle, leaves }, state) => {
  const found = judgeHeader(bundle.header, leaves, state.frontier);
  const sizeBytes = bundle.transactions.reduce((sum, one) => sum + one.record.length, 0);
  if (sizeBytes !== bundle.header.sizeBytes) {
    found.push(violation('HASH_MISMATCH', 'sizeBytes is not the sum of the records', 'sizeBytes'));
  }
  return found;
};

/** The genesis record is as large as the roster and the validator set make it. */
const judgeLimits: Stage = ({ bundle }, { limits, height }) => {
  const { transactions, header } = bundle;
  const tooMany =
    transactions.length > limits.maxTransactionsPerDocket || header.sizeBytes > limits.maxDocketBytes;
  if (tooMany)
    return [validationViolation('VAL_SIZE_001', 'sizeBytes', 'The docket is larger than the policy allows.')];
  if (height === 0) return [];
  return transactions.flatMap((one, index) =>
    one.record.length > limits.maxTransactionBytes ? [at(index, 'VAL_SIZE_001', 'record')] : [],
  );
};

const judgeSet: Stage = ({ bundle }, state) =>
  bundle.header.validatorSetHash === validatorSetHash(state.members)
    ? []
    : [
        validationViolation(
          'VAL_CERT_001',
          'validatorSetHash',
          'The set is not that of the register at this height.',
        ),
      ];

function judgeCertificate(verifier: Verifier): Stage {
  return ({ bundle }, state) => {
    const sealedBy = state.members.some(
      (member) => walletAddress(member.algorithm, keyBytes(member)) === bundle.header.validatorAddress,
    );
    if (!sealedBy) {
      return [
        validationViolation('VAL_CERT_001', 'validatorAddress', 'The sealing address is not a member.'),
      ];
    }
    return verifyCertificate(bundle.certificate, {
      members: state.members,
      networkId: state.networkId,
      registerId: state.registerId,
      signatureThresholdMin: state.signatureThresholdMin,
      verifier,
      docket: bundle.header,
    });
  };
}

function keyBytes(member: ValidatorMember): Uint8Array {
  return parsePublicKey(member.algorithm, member.publicKey);
}

/** Docket 0 holds exactly the genesis that this register was created with, and says what follows from it. */
const judgeGenesis: Stage = ({ bundle, records }, state) => {
  if (bundle.header.docketNumber !== 0) return [];
  const [first] = records;
  if (records.length !== 1 || first?.txId !== state.genesisTransactionId || first.type !== 'Genesis') {
    return [
      validationViolation('VAL_PERM_002', 'transactions', 'Docket 0 holds exactly the genesis transaction.'),
    ];
  }
  const expected = expectedConfig(bundle.transactions[0]?.payload, state.networkId);
  return expected !== undefined && bundle.header.genesisConfig === expected
    ? []
    : [
        validationViolation(
          'VAL_PERM_002',
          'genesisConfig',
          'genesisConfig does not follow from the control record.',
        ),
      ];
};

function expectedConfig(payload: Uint8Array | undefined, networkId: string): string | undefined {
  try {
    const value: unknown = JSON.parse(fromUtf8(payload ?? new Uint8Array()) ?? '');
    return genesisConfigText(parseControlRecord(value), networkId);
  } catch {
    return undefined;
  }
}

/** What a record says of its payload, sender and id must be so; nothing may be expired at the docket's time (L-46). */
const judgeRecords: Stage = ({ bundle, records }, state) => {
  const sealedAt = findTimestamp(bundle.header.timestamp) ?? 0n;
  return records.flatMap((record, index) => {
    const transaction = bundle.transactions[index];
    const payload = transaction?.payload ?? new Uint8Array();
    const found: Violation[] = [];
    if (payload.length !== record.payloadSize || sha256Hex(payload) !== record.payloadHash) {
      found.push(at(index, 'VAL_HASH_001', 'payload'));
    }
    if (transaction?.payloadHashForm !== 'jcs' && transaction?.payloadHashForm !== 'compact') {
      found.push(at(index, 'VAL_STRUCT_007', 'payloadHashForm'));
    }
    return [...found, ...judgeIdentity(record, index, state), ...judgeTimes(record, index, sealedAt)];
  });
};

function judgeIdentity(record: SealedRecord, index: number, state: ChainState): Violation[] {
  const found: Violation[] = [];
  const derived = boundTxId(
    record,
    record.signatures.map((signature) => signature.publicKey),
  );
  if (record.bound !== (derived === record.txId)) found.push(at(index, 'VAL_STRUCT_011', 'record.bound'));
  else if (state.requireBoundTxId && !record.bound) found.push(at(index, 'VAL_STRUCT_011', 'record.txId'));
  if (senderOf(record) !== record.senderAddress) found.push(at(index, 'VAL_SIG_003', 'record.senderAddress'));
  return found;
}

function senderOf(record: SealedRecord): string | undefined {
  const [first] = record.signatures;
  if (first === undefined || !isAlgorithm(first.algorithm)) return undefined;
  try {
    return walletAddress(first.algorithm, parsePublicKey(first.algorithm, first.publicKey));
  } catch (error) {
    if (isAppError(error, 'invalid')) return undefined;
    throw error;
  }
}

function judgeTimes(record: SealedRecord, index: number, sealedAt: bigint): Violation[] {
  const createdAt = findTimestamp(record.createdAt);
  if (createdAt === undefined) return [at(index, 'VAL_STRUCT_006', 'record.createdAt')];
  if (record.type === 'Genesis' || record.expiresAt === undefined) return [];
  const expiresAt = findTimestamp(record.expiresAt);
  if (expiresAt === undefined) return [at(index, 'VAL_STRUCT_006', 'record.expiresAt')];
  return expiresAt <= sealedAt ? [at(index, 'VAL_TIME_003', 'record.expiresAt')] : [];
}

/** Genesis begins a register and nothing else (L-53); who may send control transactions the rules say. */
const judgeLabels: Stage = ({ bundle, records }) =>
  records.flatMap((record, index) =>
    record.type === 'Genesis' && bundle.header.docketNumber !== 0
      ? [at(index, 'VAL_PERM_002', 'record.type')]
      : [],
  );

/** Predecessors are sealed or stand earlier in this docket; an Action has one successor (L-43). */
function judgeLinks(docket: ReadDocket, sealed: PredecessorTypes): Violation[] {
  const types = new Map(sealed);
  const followed = new Set<string>();
  const found: Violation[] = [];
  for (const [index, record] of docket.records.entries()) {
    const previous = record.previousTransactionId;
    const type = previous === undefined ? undefined : types.get(previous);
    if (previous !== undefined && type === undefined) {
      found.push(at(index, 'VAL_CHAIN_001', 'record.previousTransactionId'));
    } else if (previous !== undefined && type !== undefined && !isControlClass(type)) {
      if (followed.has(previous)) found.push(at(index, 'VAL_CHAIN_FORK', 'record.previousTransactionId'));
      followed.add(previous);
    }
    types.set(record.txId, record.type);
  }
  return found;
}

async function judgeSignatures(docket: ReadDocket, verify: VerifySignatures): Promise<Violation[]> {
  const places: number[] = [];
  const checks = docket.records.flatMap((record, index) =>
    record.signatures.map((signature) => {
      places.push(index);
      return { txId: record.txId, payloadHash: record.payloadHash, signature };
    }),
  );
  const verdicts = await verify(checks);
  return places.flatMap((index, check) =>
    verdicts[check] === true ? [] : [at(index, 'VAL_SIG_002', 'record.signatures')],
  );
}

/**
 * Whether a vote attests a docket with the key of the member that it names. A rejection is none: a sealed docket carries
 * the votes of those that found it right, and what was not sealed has no votes here (notes/ledger.md 4.1).
 */
export function isAttestation(
  vote: ConsensusVote,
  docketHash: string,
  members: readonly { readonly validatorId: string; readonly publicKey: string }[],
  verifier: Verifier,
): boolean {
  const voter = members.find((member) => member.validatorId === vote.validatorId);
  return (
    vote.docketHash === docketHash &&
    vote.approved &&
    vote.reason === undefined &&
    findTimestamp(vote.timestamp) !== undefined &&
    voter?.publicKey === vote.publicKey &&
    verifyVote(vote, verifier)
  );
}

function judgeAttestations(docket: ReadDocket, state: ChainState, verifier: Verifier): Violation[] {
  const { attestations, header } = docket.bundle;
  const voters = new Set(attestations.map((vote) => vote.validatorAddress));
  const right =
    voters.size === attestations.length &&
    attestations.every((vote) => isAttestation(vote, header.hash, state.members, verifier));
  return right ? [] : [validationViolation('VAL_SIG_002', 'attestations', 'An attestation does not verify.')];
}

/** Predecessor ids that the register must know: those that do not stand in the docket itself. */
export function predecessorsOf(docket: ReadDocket): string[] {
  const own = new Set(docket.records.map((record) => record.txId));
  const previous = docket.records.flatMap((record) => record.previousTransactionId ?? []);
  return [...new Set(previous)].filter((id) => !own.has(id));
}

export interface DocketJudges {
  readonly verifier: Verifier;
  readonly verifySignatures: VerifySignatures;
}

/**
 * Judges a docket completely against the register's state, cheapest stage first; the first stage that finds
 * something ends it (notes/ledger.md 4.6). An empty list means that it may be stored.
 */
export async function verifyDocket(
  docket: ReadDocket,
  state: ChainState,
  predecessors: PredecessorTypes,
  judges: DocketJudges,
): Promise<Violation[]> {
  const stages: readonly (() => Violation[] | Promise<Violation[]>)[] = [
    () => judgePlace(docket, state),
    () => judgeContent(docket, state),
    () => judgeLimits(docket, state),
    () => judgeSet(docket, state),
    () => judgeCertificate(judges.verifier)(docket, state),
    () => judgeGenesis(docket, state),
    () => judgeRecords(docket, state),
    () => judgeLabels(docket, state),
    () => judgeLinks(docket, predecessors),
    () => judgeAttestations(docket, state, judges.verifier),
    () => judgeSignatures(docket, judges.verifySignatures),
  ];
  for (const stage of stages) {
    const found = await stage();
    if (found.length > 0) return found;
  }
  return [];
}
