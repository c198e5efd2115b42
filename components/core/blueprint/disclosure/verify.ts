import { signerAddress } from '../../crypto/address.ts';
import type { Verifier } from '../../crypto/verify.ts';
import { decodeHex } from '../../encoding/hex.ts';
import { canonicalBytes } from '../../encoding/jcs.ts';
import { equalBytes } from '../../encoding/text.ts';
import { isAppError, type Violation } from '../../errors/errors.ts';
import {
  checkpointNote,
  findCheckpoint,
  type NoteKey,
  noteLine,
  type ParsedCheckpoint,
  parseVerifierKey,
  verifyCheckpoint,
} from '../../ledger/checkpoint.ts';
import { logLeaf } from '../../ledger/log.ts';
import { nodeHash, type ProofStep, verifyInclusion } from '../../ledger/merkle.ts';
import { parsePath } from '../../ledger/proof-path.ts';
import { parseRecord, recordLeaf, type SealedRecord } from '../../ledger/record.ts';
import { verifyTransactionSignature } from '../../ledger/transaction.ts';
import { judgePayload, judgeRecord } from '../../ledger/verification/records.ts';
import {
  commitmentOf,
  type DisclosureGroup,
  type Envelope,
  findEnvelope,
  groupAad,
} from '../payload/envelope.ts';
import { type DisclosureFile, type DisclosureFinding, readDisclosure } from './file.ts';

/** What a file proves. */
export interface ProvenDisclosure {
  readonly record: SealedRecord;
  readonly envelope: Envelope;
  /** The group that was shown. */
  readonly group: DisclosureGroup;
  readonly shown: DisclosureFile['group'];
  readonly docket: DisclosureFile['docket'];
  readonly checkpoint: Pick<ParsedCheckpoint, 'origin' | 'size'>;
  /** C2SP verifier key of the checkpoint */
  readonly checkpointKey: string;
}

/** Findings; what is proven when there are none. */
export type DisclosureVerdict =
  | { readonly findings: readonly [DisclosureFinding, ...DisclosureFinding[]] }
  | { readonly findings: readonly []; readonly proven: ProvenDisclosure };

/**
 * Verifies a disclosure file by itself: commitment of the group, payload hash, id and signatures of the record, its
 * place in a docket and in the register log, and the signed checkpoint. Whether the key of the checkpoint is that of the
 * register, the reader must know from another source.
 */
export function verifyDisclosure(bytes: Uint8Array, verifier: Verifier): DisclosureVerdict {
  const file = readDisclosure(bytes);
  if (isFindings(file)) return { findings: atLeastOne(file) };
  const record = findRecord(file);
  if (record === undefined)
    return { findings: [finding('/record', 'RECORD_INVALID', 'The bytes are no record')] };
  const envelope = findEnvelope(file.payload);
  const group = envelope === undefined ? undefined : findShownGroup(envelope, file.group);
  const key = findKey(file.checkpointKey);
  const checkpoint = findCheckpoint(file.checkpoint);
  const findings = [
    ...judgeGroup(record, envelope, group),
    ...judgeTransaction(file, record, verifier),
    ...judgeInclusion(file, record),
    ...judgeCheckpoint(file, { checkpoint, key, verifier }),
  ];
  const isWhole = envelope !== undefined && group !== undefined && checkpoint !== undefined;
  if (findings.length > 0 || !isWhole) return { findings: atLeastOne(findings) };
  const { docket, checkpointKey, group: shown } = file;
  return { findings: [], proven: { record, envelope, group, shown, docket, checkpoint, checkpointKey } };
}

function isFindings(
  value: DisclosureFile | readonly DisclosureFinding[],
): value is readonly DisclosureFinding[] {
  return Array.isArray(value);
}

function finding(location: string, code: string, message: string): DisclosureFinding {
  return { code, message, location };
}

function atLeastOne(
  findings: readonly DisclosureFinding[],
): readonly [DisclosureFinding, ...DisclosureFinding[]] {
  const [first, ...more] = findings;
  return [first ?? finding('', 'DISCLOSURE_MALFORMED', 'The file proves nothing'), ...more];
}

function findRecord({ record }: DisclosureFile): SealedRecord | undefined {
  try {
    return parseRecord(record);
  } catch (error) {
    if (isAppError(error, 'invalid')) return undefined;
    throw error;
  }
}

function findKey(text: string): NoteKey | undefined {
  try {
    return parseVerifierKey(text);
  } catch (error) {
    if (isAppError(error, 'invalid')) return undefined;
    throw error;
  }
}

function findShownGroup({ groups }: Envelope, shown: DisclosureFile['group']): DisclosureGroup | undefined {
  const commitment = commitmentOf(canonicalBytes(shown));
  return groups.find((group) => group.commitment === commitment);
}

/** The envelope must be that of the record's own action: a copy in another transaction proves nothing about its sender. */
function judgeGroup(
  record: SealedRecord,
  envelope: Envelope | undefined,
  group: DisclosureGroup | undefined,
): DisclosureFinding[] {
  if (envelope === undefined)
    return [finding('/payload', 'PAYLOAD_INVALID', 'The payload has no encrypted groups')];
  const isOwn =
    envelope.actionId === record.actionId &&
    envelope.blueprintId === record.blueprintId &&
    envelope.instanceId === record.metadata['instanceId'];
  const found = isOwn
    ? []
    : [finding('/payload', 'PAYLOAD_MISPLACED', 'The payload names another action than the record')];
  if (group === undefined) {
    return [
      ...found,
      finding('/group', 'COMMITMENT_MISMATCH', 'No group of the payload is committed to this text'),
    ];
  }
  const isBound = group.jwe.aad === groupAad(record.registerId, envelope, group.groupId);
  return isBound
    ? found
    : [...found, finding('/payload', 'PAYLOAD_MISPLACED', 'The group was encrypted for another action')];
}

function judgeTransaction(
  file: DisclosureFile,
  record: SealedRecord,
  verifier: Verifier,
): DisclosureFinding[] {
  const { docketNumber, timestamp } = file.docket;
  const context = { docketNumber, timestamp, requireBoundTxId: true, addressOf: signerAddress };
  const isSigned = record.signatures.every((each) => verifyTransactionSignature(verifier, record, each));
  return [
    ...judgePayload(record, file.payload).map((each) => findingOf('/payload', each)),
    ...judgeRecord(record, file.payload, context).map((each) => findingOf('/record', each)),
    ...(isSigned
      ? []
      : [finding('/record', 'SIGNATURE_INVALID', 'A signature of the record does not verify')]),
  ];
}

function findingOf(location: string, { code, message }: Violation): DisclosureFinding {
  return finding(location, code, message);
}

function judgeInclusion(
  { record: bytes, docket, inclusion }: DisclosureFile,
  record: SealedRecord,
): DisclosureFinding[] {
  const root = climb(recordLeaf(bytes), parsePath(inclusion));
  const isIncluded = equalBytes(root, decodeHex(docket.merkleRoot, 32));
  return [
    ...(isIncluded
      ? []
      : [finding('/inclusion', 'INCLUSION_INVALID', 'The path does not lead to the docket')]),
    ...(docket.registerId === record.registerId
      ? []
      : [finding('/docket/registerId', 'INCLUSION_INVALID', 'The docket is of another register')]),
  ];
}

/** Leaves and nodes are hashed apart (RFC 6962, section 2.1), so a path proves membership whatever the tree's size. */
function climb(leaf: Uint8Array, path: readonly ProofStep[]): Uint8Array {
  return path.reduce(
    (below, { hash, position }) => (position === 'Left' ? nodeHash(hash, below) : nodeHash(below, hash)),
    leaf,
  );
}

interface SignedLog {
  readonly checkpoint: ParsedCheckpoint | undefined;
  readonly key: NoteKey | undefined;
  readonly verifier: Verifier;
}

function judgeCheckpoint(
  file: DisclosureFile,
  { checkpoint, key, verifier }: SignedLog,
): DisclosureFinding[] {
  if (key === undefined)
    return [finding('/checkpointKey', 'CHECKPOINT_INVALID', 'The text is no verifier key')];
  if (checkpoint === undefined)
    return [finding('/checkpoint', 'CHECKPOINT_INVALID', 'The text is no checkpoint')];
  const { docket, log } = file;
  const claim = { leaf: logLeaf(docket), leafIndex: docket.docketNumber, treeSize: checkpoint.size };
  const isLogged = verifyInclusion({ ...claim, path: parsePath(log) }, checkpoint.rootHash);
  const isOfRegister =
    checkpoint.origin.endsWith(`/registers/${docket.registerId}`) && key.name === checkpoint.origin;
  const isSigned = isPlain(file.checkpoint, checkpoint, key) && verifyCheckpoint(verifier, checkpoint, key);
  return [
    ...(isLogged
      ? []
      : [finding('/log', 'LOG_INVALID', 'The path does not lead from the docket to the checkpoint')]),
    ...(isOfRegister
      ? []
      : [finding('/checkpoint', 'CHECKPOINT_INVALID', 'The checkpoint is of another log')]),
    ...(isSigned
      ? []
      : [finding('/checkpoint', 'CHECKPOINT_INVALID', 'The key did not sign the checkpoint')]),
  ];
}

/** Whether a note has one line, spelled as this product does. */
function isPlain(note: string, { body, signatures }: ParsedCheckpoint, key: NoteKey): boolean {
  const lines = signatures.map(({ blob }) => noteLine(key, blob));
  return lines.length === 1 && checkpointNote(body, lines) === note;
}
