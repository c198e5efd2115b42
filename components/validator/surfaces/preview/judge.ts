import { signerAddress } from '#core/crypto/address.ts';
import { isAlgorithm } from '#core/crypto/algorithm.ts';
import { parsePublicKey } from '#core/crypto/public-key.ts';
import type { Verifier } from '#core/crypto/verify.ts';
import { decodeBase64Any } from '#core/encoding/base64.ts';
import { encodeHex } from '#core/encoding/hex.ts';
import { utf8 } from '#core/encoding/text.ts';
import { isAppError, type Severity, type Violation, violation } from '#core/errors/errors.ts';
import { isAttestation } from '#core/ledger/attestation.ts';
import {
  checkDocketText,
  type DocketHead,
  type DocketHeader,
  docketHash,
  judgeSuccession,
} from '#core/ledger/docket.ts';
import { logLeaf } from '#core/ledger/log.ts';
import { root } from '#core/ledger/merkle.ts';
import { parseRecord, recordLeaf, type SealedRecord } from '#core/ledger/record.ts';
import { signingDigest, signingText } from '#core/ledger/transaction.ts';
import { judgeSealing, judgeSize } from '#core/ledger/verification/chain.ts';
import { judgePayload, judgeRecord } from '#core/ledger/verification/records.ts';
import type { VerifyItem } from '#kit/crypto/verify-pool.ts';
import type { RegisterState } from '../../chain/state/state.ts';
import type { SubmittedDocket } from './submitted-docket.ts';

/** The context in which a docket is judged. */
interface JudgementContext {
  /** The register after its last docket; undefined before docket 0. */
  readonly state: RegisterState | undefined;
  /** The preceding docket, as the caller gives it. */
  readonly previous: DocketHead | undefined;
  readonly verifier: Verifier;
  verify(items: readonly VerifyItem[]): Promise<readonly boolean[]>;
}

const critical: readonly string[] = [
  'HASH_MISMATCH',
  'MERKLE_MISMATCH',
  'SIGNATURE_INVALID',
  'CERTIFICATE_INVALID',
];

/** Whether the violations leave the docket valid: warnings only name parts that were not judged. */
export function isAcceptable(found: readonly Violation[]): boolean {
  return found.every(({ severity }) => severity === 'Warning');
}

/**
 * Judges a docket that a caller submits (specification document 2, section 4, pipeline rule 4): a function of the docket,
 * the preceding docket and the register's validator set. Absent parts yield a warning `NOT_JUDGED`.
 */
export async function judgeSubmittedDocket(
  docket: SubmittedDocket,
  against: JudgementContext,
): Promise<Violation[]> {
  const header = headerOf(docket);
  const malformed = checkDocketText(header);
  if (malformed.length > 0) return malformed.map(withSeverity);
  const found = [
    ...judgeSuccession(header, headOf(header, against)),
    ...judgeHash(header),
    ...judgeVotes(docket, header, against),
    ...judgeCertificate(docket, header, against),
    ...(await judgeTransactions(docket, header, against)),
  ];
  return found.map(withSeverity);
}

function headerOf({ certificate, consensusVotes, transactions, ...docket }: SubmittedDocket): DocketHeader {
  const { genesisConfig, ...rest } = docket;
  const isGenesis = docket.docketNumber === 0;
  return { ...rest, isGenesis, ...(genesisConfig !== undefined && { genesisConfig }) };
}

/** The register's own last docket for the next one; otherwise the docket that the caller gives. */
function headOf(
  { docketNumber }: DocketHeader,
  { state, previous }: JudgementContext,
): DocketHead | undefined {
  const height = state?.height ?? 0;
  const isNext = docketNumber === height || (previous === undefined && docketNumber > height);
  if (state === undefined || height === 0 || !isNext) return previous;
  return { docketNumber: height - 1, hash: state.headHash, timestamp: state.headTimestamp };
}

function judgeHash(header: DocketHeader): Violation[] {
  if (docketHash(header) === header.hash) return [];
  return [violation('HASH_MISMATCH', 'The hash differs from the recomputed one', 'hash')];
}

function judgeVotes(
  { consensusVotes }: SubmittedDocket,
  { hash }: DocketHeader,
  against: JudgementContext,
): Violation[] {
  const members = against.state?.members ?? [];
  return consensusVotes.flatMap((vote, index) =>
    isAttestation(vote, hash, members, against.verifier)
      ? []
      : violation(
          'SIGNATURE_INVALID',
          'The vote is not signed by a validator of the register',
          `consensusVotes[${index}]`,
        ),
  );
}

/** Judges the certificate by the current set. A certificate of an earlier set is refused, since that set is not known here. */
function judgeCertificate(
  { certificate }: SubmittedDocket,
  header: DocketHeader,
  { state, verifier }: JudgementContext,
): Violation[] {
  if (certificate === undefined) return [notJudged('certificate')];
  if (state === undefined)
    return [violation('CERTIFICATE_INVALID', 'The register has no validators', 'certificate')];
  const { members, networkId, rules } = state;
  const set = { members, networkId, signatureThresholdMin: rules.signatureThresholdMin };
  return judgeSealing({ header, certificate }, set, verifier).map(({ message, field }) =>
    violation('CERTIFICATE_INVALID', message, field),
  );
}

interface ParsedRecord {
  readonly record: SealedRecord;
  readonly leaf: Uint8Array;
}

async function judgeTransactions(
  { transactions }: SubmittedDocket,
  header: DocketHeader,
  against: JudgementContext,
): Promise<Violation[]> {
  if (transactions === undefined) return [notJudged('transactions')];
  const read = transactions.map(({ record }) => readRecord(record));
  const isConsistent =
    read.length === header.transactionIds.length &&
    read.every((each, index) => each?.record.txId === header.transactionIds[index]) &&
    read.every((each) => each?.record.registerId === header.registerId);
  const records = read.flatMap((each) => each ?? []);
  if (!isConsistent) {
    const message = 'The transactions differ from those that the docket lists';
    return [violation('MERKLE_MISMATCH', message, 'transactions')];
  }
  const sizeBytes = transactions.reduce((sum, { record }) => sum + record.length, 0);
  return [
    ...judgeSize(header, sizeBytes),
    ...judgeRoots(header, records, against.state),
    ...records.flatMap(({ record }, index) => judgeOne(header, record, { transactions, index })),
    ...(await judgeSignatures(records, against)),
  ];
}

/** The log root is judged for the next docket only. */
function judgeRoots(
  header: DocketHeader,
  records: readonly ParsedRecord[],
  state: RegisterState | undefined,
): Violation[] {
  const merkleRoot = encodeHex(root(records.map(({ leaf }) => leaf)));
  if (merkleRoot !== header.merkleRoot)
    return [violation('MERKLE_MISMATCH', 'The Merkle root differs from the recomputed one', 'merkleRoot')];
  if (state === undefined || state.height !== header.docketNumber || header.logRoot === '') return [];
  const log = state.log.clone();
  log.append(logLeaf(header));
  return encodeHex(log.root()) === header.logRoot
    ? []
    : [violation('MERKLE_MISMATCH', 'The log root differs from the recomputed one', 'logRoot')];
}

function judgeOne(
  { docketNumber, timestamp }: DocketHeader,
  record: SealedRecord,
  { transactions, index }: { transactions: NonNullable<SubmittedDocket['transactions']>; index: number },
): Violation[] {
  const place = (found: Violation): Violation => ({
    ...found,
    field: `transactions[${index}].${found.field}`,
  });
  const payload = transactions[index]?.payload ?? new Uint8Array();
  const isHashed = judgePayload(record, payload).length === 0;
  const context = { docketNumber, timestamp, requireBoundTxId: false, addressOf: signerAddress };
  const hashed = isHashed
    ? []
    : [violation('HASH_MISMATCH', 'The payload does not match its hash', 'payload')];
  return [...hashed, ...judgeRecord(record, payload, context)].map(place);
}

async function judgeSignatures(
  records: readonly ParsedRecord[],
  { verify }: JudgementContext,
): Promise<Violation[]> {
  const places: number[] = [];
  const items: VerifyItem[] = [];
  const found: Violation[] = [];
  for (const [index, { record }] of records.entries()) {
    const checks = record.signatures.flatMap((signature) => checkOf(record, signature) ?? []);
    if (checks.length !== record.signatures.length) found.push(badSignature(index));
    for (const check of checks) {
      places.push(index);
      items.push(check);
    }
  }
  const verdicts = await verify(items);
  const wrong = new Set(places.filter((_, check) => verdicts[check] !== true));
  return [...found, ...[...wrong].map(badSignature)];
}

function badSignature(index: number): Violation {
  return violation(
    'SIGNATURE_INVALID',
    'A signature does not verify',
    `transactions[${index}].record.signatures`,
  );
}

/** Undefined for a malformed key or signature. */
function checkOf(
  { txId, payloadHash }: SealedRecord,
  { algorithm, publicKey, signatureValue }: SealedRecord['signatures'][number],
): VerifyItem | undefined {
  if (!isAlgorithm(algorithm)) return undefined;
  try {
    return {
      algorithm,
      publicKey: parsePublicKey(algorithm, publicKey),
      signature: decodeBase64Any(signatureValue),
      digest: signingDigest(txId, payloadHash),
      preimage: algorithm === 'ED25519' ? undefined : utf8(signingText(txId, payloadHash)),
    };
  } catch (error) {
    if (isAppError(error, 'invalid')) return undefined;
    throw error;
  }
}

function readRecord(bytes: Uint8Array): ParsedRecord | undefined {
  try {
    return { record: parseRecord(bytes), leaf: recordLeaf(bytes) };
  } catch (error) {
    if (isAppError(error, 'invalid')) return undefined;
    throw error;
  }
}

function notJudged(field: string): Violation {
  return { code: 'NOT_JUDGED', message: `${field} are not given`, field, severity: 'Warning' };
}

function withSeverity(found: Violation): Violation {
  const severity: Severity = critical.includes(found.code) ? 'Critical' : found.severity;
  return { ...found, severity };
}
