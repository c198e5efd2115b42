import { isWalletAddress, type SignerAddress, signerAddress } from '#core/crypto/address.ts';
import { isAlgorithm } from '#core/crypto/algorithm.ts';
import { parsePublicKey } from '#core/crypto/public-key.ts';
import { decodeBase64Any, encodeBase64 } from '#core/encoding/base64.ts';
import { type JsonNode, scanJson } from '#core/encoding/json.ts';
import { findTimestamp } from '#core/encoding/timestamp.ts';
import type { Violation } from '#core/errors/errors.ts';
import {
  type ValidationCodeName,
  validationError,
  validationViolation,
} from '#core/errors/validation-codes.ts';
import type { SealedRecord } from '#core/ledger/record.ts';
import { findRegisterId, findTxId } from '#core/ledger/register-id.ts';
import {
  isTransactionType,
  MAX_RECIPIENTS,
  MAX_SIGNATURES,
  type TransactionEnvelope,
  type TransactionSignature,
  type TransactionType,
} from '#core/ledger/transaction.ts';

/** A submission of valid shape; nothing of it is verified yet. */
export interface Submission {
  readonly txId: string;
  readonly envelope: TransactionEnvelope;
  readonly payload: JsonNode;
  readonly signatures: readonly TransactionSignature[];
  readonly keys: readonly SubmittedKey[];
  /** Wallet address of the key of signature 0. */
  readonly senderAddress: string;
  readonly createdAtTicks: bigint;
  readonly expiresAtTicks: bigint | undefined;
}

interface SubmittedKey {
  readonly publicKey: Uint8Array;
  readonly signature: Uint8Array;
}

/** A JSON value without its position in the text. */
type Value =
  | { readonly kind: 'object'; readonly members: readonly Member[] }
  | { readonly kind: 'array'; readonly items: readonly Value[] }
  | { readonly kind: 'string'; readonly value: string }
  | { readonly kind: 'number'; readonly value: number }
  | { readonly kind: 'boolean' | 'null' };

interface Member {
  readonly name: string;
  readonly value: Value;
}

const memberNames = [
  'TransactionId',
  'RegisterId',
  'BlueprintId',
  'ActionId',
  'Payload',
  'PayloadHash',
  'Signatures',
  'CreatedAt',
  'ExpiresAt',
  'PreviousTransactionId',
  'Priority',
  'Metadata',
  'Recipients',
] as const;
type MemberName = (typeof memberNames)[number];

const signatureNames = ['PublicKey', 'SignatureValue', 'Algorithm'] as const;

/** Both spellings of each name, PascalCase and camelCase. */
function spellings<N extends string>(names: readonly N[]): ReadonlyMap<string, N> {
  return new Map(names.flatMap((name) => [name, camel(name)].map((spelling) => [spelling, name] as const)));
}

const memberSpellings = spellings(memberNames);
const signatureSpellings = spellings(signatureNames);
const maxIdLength = 256;
const maxMetadata = { members: 64, nameLength: 128, valueLength: 4096 } as const;
const hashPattern = /^[0-9a-f]{64}$/;
const priorities = ['low', 'normal', 'high'];

/** Collects violations while a shape is read. */
class Findings {
  readonly list: Violation[] = [];

  add(code: ValidationCodeName, field: string, message?: string): undefined {
    this.list.push(validationViolation(code, field, message));
    return undefined;
  }
}

/**
 * Parses the specification's submitted transaction. Member names may be PascalCase, as in the specification, or camelCase.
 * @throws AppError invalid with every violation; VAL_STRUCT_012 alone when the text is not unambiguous JSON
 */
export function parseSubmission(text: string, addressOf = signerAddress): Submission {
  const node = scanJson(text);
  const findings = new Findings();
  if (node.kind !== 'object')
    throw validationError([validationViolation('VAL_STRUCT_007', undefined, 'The body must be an object')]);
  const members = namedMembers(node.members, memberSpellings, findings);
  const payload = node.members.find(({ name }) => name === 'Payload' || name === 'payload')?.value;
  return assertComplete(readSubmission({ members, payload, addressOf }, findings), findings);
}

/**
 * Rebuilds the submission of a sealed record, so that a peer's transaction passes the same checks as a client's.
 * @throws AppError invalid with every violation
 */
export function submissionOf(record: SealedRecord, payload: JsonNode, addressOf = signerAddress): Submission {
  const findings = new Findings();
  const members = namedMembers(membersOf(record), memberSpellings, findings);
  return assertComplete(readSubmission({ members, payload, addressOf }, findings), findings);
}

function membersOf(record: SealedRecord): Member[] {
  const members: [MemberName, Value | undefined][] = [
    ['TransactionId', textOf(record.txId)],
    ['RegisterId', textOf(record.registerId)],
    ['BlueprintId', textOf(record.blueprintId)],
    ['ActionId', textOf(record.actionId)],
    ['PayloadHash', textOf(record.payloadHash)],
    ['Signatures', { kind: 'array', items: record.signatures.map(signatureOf) }],
    ['CreatedAt', textOf(record.createdAt)],
    ['ExpiresAt', textOf(record.expiresAt)],
    ['PreviousTransactionId', textOf(record.previousTransactionId)],
    ['Metadata', { kind: 'object', members: textsOf(record.metadata) }],
    ['Recipients', { kind: 'array', items: record.recipients.map((value) => ({ kind: 'string', value })) }],
  ];
  return members.flatMap(([name, value]) => (value === undefined ? [] : { name, value }));
}

function textOf(value: string | undefined): Value | undefined {
  return value === undefined ? undefined : { kind: 'string', value };
}

function textsOf(texts: Readonly<Record<string, string>>): Member[] {
  return Object.entries(texts).map(([name, value]) => ({ name, value: { kind: 'string', value } }));
}

function signatureOf({ publicKey, signatureValue, algorithm }: TransactionSignature): Value {
  const texts = { PublicKey: publicKey, SignatureValue: signatureValue, Algorithm: algorithm };
  return { kind: 'object', members: textsOf(texts) };
}

function assertComplete(submission: Submission | undefined, findings: Findings): Submission {
  if (submission === undefined || findings.list.length > 0) throw validationError(findings.list);
  return submission;
}

function namedMembers<N extends string>(
  members: readonly Member[],
  names: ReadonlyMap<string, N>,
  findings: Findings,
): ReadonlyMap<N, Value> {
  const found = new Map<N, Value>();
  for (const member of members) {
    const name = names.get(member.name);
    if (name === undefined) continue;
    if (found.has(name)) findings.add('VAL_STRUCT_012', name, `${name} is given twice`);
    if (member.value.kind !== 'null') found.set(name, member.value);
  }
  return found;
}

function camel(name: string): string {
  return name.charAt(0).toLowerCase() + name.slice(1);
}

type Members = ReadonlyMap<MemberName, Value>;

interface SubmissionParts {
  readonly members: Members;
  readonly payload: JsonNode | undefined;
  readonly addressOf: SignerAddress;
}

function readSubmission(
  { members, payload, addressOf }: SubmissionParts,
  findings: Findings,
): Submission | undefined {
  const txId = readId(members, 'TransactionId', findings);
  const registerId = readId(members, 'RegisterId', findings);
  const payloadHash = readHash(members, findings);
  const previous = readPrevious(members, txId, findings);
  const createdAt = readTimestamp(members, 'CreatedAt', findings);
  const expiresAt = readTimestamp(members, 'ExpiresAt', findings);
  const metadata = readMetadata(members.get('Metadata'), findings);
  const recipients = readRecipients(members.get('Recipients'), findings);
  const signed = readSignatures(members.get('Signatures'), findings);
  const blueprintId = readLabel(members, 'BlueprintId', findings);
  const actionId = readLabel(members, 'ActionId', findings);
  readPriority(members.get('Priority'), findings);
  if (payload === undefined || payload.kind === 'null') findings.add('VAL_STRUCT_001', 'Payload');
  if (createdAt === undefined && !members.has('CreatedAt')) findings.add('VAL_STRUCT_001', 'CreatedAt');
  const first = signed[0];
  if (!txId || !registerId || !payloadHash || !createdAt || !payload || !first) return undefined;
  return {
    txId,
    envelope: {
      registerId,
      blueprintId,
      actionId,
      type: declaredType(blueprintId, metadata),
      payloadHash,
      previousTransactionId: previous,
      createdAt: createdAt.text,
      expiresAt: expiresAt?.text,
      recipients,
      metadata,
    },
    payload,
    signatures: signed.map((each) => each.signature),
    keys: signed.map((each) => each.key),
    senderAddress: addressOf(first.signature.algorithm, first.signature.publicKey),
    createdAtTicks: createdAt.ticks,
    expiresAtTicks: expiresAt?.ticks,
  };
}

/** The type that the transaction claims; whether its signer may claim it is judged later. */
function declaredType(
  blueprintId: string | undefined,
  metadata: Readonly<Record<string, string>> | undefined,
): TransactionType {
  const label = metadata?.['Type'];
  if (label !== undefined && isTransactionType(label)) return label;
  return blueprintId === 'genesis' ? 'Genesis' : 'Action';
}

function readText(members: Members, name: MemberName, findings: Findings): string | undefined {
  const node = members.get(name);
  if (node === undefined) return undefined;
  return node.kind === 'string' ? node.value : findings.add('VAL_STRUCT_007', name, `${name} must be text`);
}

function readId(
  members: Members,
  name: 'TransactionId' | 'RegisterId',
  findings: Findings,
): string | undefined {
  if (!members.has(name)) return findings.add('VAL_STRUCT_001', name);
  const text = readText(members, name, findings);
  if (text === undefined) return undefined;
  const id = name === 'TransactionId' ? findTxId(text) : findRegisterId(text);
  return id ?? findings.add(name === 'TransactionId' ? 'VAL_STRUCT_002' : 'VAL_STRUCT_003', name);
}

function readHash(members: Members, findings: Findings): string | undefined {
  if (!members.has('PayloadHash')) return findings.add('VAL_STRUCT_001', 'PayloadHash');
  const text = readText(members, 'PayloadHash', findings)?.toLowerCase();
  if (text === undefined) return undefined;
  return hashPattern.test(text) ? text : findings.add('VAL_STRUCT_004', 'PayloadHash');
}

function readPrevious(members: Members, txId: string | undefined, findings: Findings): string | undefined {
  const text = readText(members, 'PreviousTransactionId', findings);
  if (text === undefined || text === '') return undefined;
  const previous = findTxId(text);
  if (previous === undefined || previous === txId) {
    return findings.add('VAL_STRUCT_008', 'PreviousTransactionId');
  }
  return previous;
}

function readTimestamp(
  members: Members,
  name: 'CreatedAt' | 'ExpiresAt',
  findings: Findings,
): { text: string; ticks: bigint } | undefined {
  const text = readText(members, name, findings);
  if (text === undefined) return undefined;
  const ticks = findTimestamp(text);
  return ticks === undefined ? findings.add('VAL_STRUCT_006', name) : { text, ticks };
}

function readLabel(
  members: Members,
  name: 'BlueprintId' | 'ActionId',
  findings: Findings,
): string | undefined {
  const text = readText(members, name, findings);
  if (text === undefined || text === '') return undefined;
  return text.length <= maxIdLength && isPlain(text) ? text : findings.add('VAL_STRUCT_010', name);
}

/** No control characters. */
function isPlain(text: string): boolean {
  for (let at = 0; at < text.length; at += 1) if (text.charCodeAt(at) < 0x20) return false;
  return true;
}

function readPriority(node: Value | undefined, findings: Findings): void {
  if (node === undefined) return;
  const known =
    (node.kind === 'string' && priorities.includes(node.value.toLowerCase())) ||
    (node.kind === 'number' && [0, 1, 2].includes(node.value));
  if (!known) findings.add('VAL_STRUCT_007', 'Priority', 'Priority must be Low, Normal or High, or 0 to 2');
}

function readMetadata(
  node: Value | undefined,
  findings: Findings,
): Readonly<Record<string, string>> | undefined {
  if (node === undefined) return undefined;
  if (node.kind !== 'object') return findings.add('VAL_STRUCT_007', 'Metadata', 'Metadata must be an object');
  if (node.members.length > maxMetadata.members) return findings.add('VAL_STRUCT_010', 'Metadata');
  const entries: [string, string][] = [];
  for (const { name, value } of node.members) {
    if (value.kind !== 'string') {
      findings.add('VAL_STRUCT_007', `Metadata.${name}`, 'Metadata values must be text');
      continue;
    }
    const fits = name.length <= maxMetadata.nameLength && value.value.length <= maxMetadata.valueLength;
    if (fits && isPlain(name)) entries.push([name, value.value]);
    else findings.add('VAL_STRUCT_010', `Metadata.${name.slice(0, maxMetadata.nameLength)}`);
  }
  return Object.fromEntries(entries);
}

function readRecipients(node: Value | undefined, findings: Findings): string[] | undefined {
  if (node === undefined) return undefined;
  if (node.kind !== 'array')
    return findings.add('VAL_STRUCT_007', 'Recipients', 'Recipients must be an array');
  const addresses = node.items.flatMap((item) => (item.kind === 'string' ? item.value : []));
  const isValid = addresses.length === node.items.length && addresses.every(isWalletAddress);
  if (!isValid || addresses.length > MAX_RECIPIENTS || new Set(addresses).size !== addresses.length) {
    return findings.add('VAL_STRUCT_009', 'Recipients');
  }
  return addresses;
}

interface ParsedSignature {
  readonly signature: TransactionSignature;
  readonly key: SubmittedKey;
}

function readSignatures(node: Value | undefined, findings: Findings): ParsedSignature[] {
  const isList = node?.kind === 'array' && node.items.length > 0 && node.items.length <= MAX_SIGNATURES;
  if (node?.kind !== 'array' || !isList) {
    findings.add('VAL_STRUCT_005', 'Signatures');
    return [];
  }
  return node.items.flatMap((item, index) => readSignature(item, `Signatures[${index}]`, findings) ?? []);
}

function readSignature(node: Value, field: string, findings: Findings): ParsedSignature | undefined {
  if (node.kind !== 'object') return findings.add('VAL_STRUCT_007', field, 'A signature must be an object');
  const members = namedMembers(node.members, signatureSpellings, findings);
  const texts = signatureNames.map((name) => {
    const member = members.get(name);
    if (member?.kind === 'string' && member.value !== '') return member.value;
    return findings.add('VAL_STRUCT_001', `${field}.${name}`);
  });
  const [publicKey, signatureValue, algorithm] = texts;
  if (publicKey === undefined || signatureValue === undefined || algorithm === undefined) return undefined;
  if (!isAlgorithm(algorithm)) return findings.add('VAL_SIG_001', `${field}.Algorithm`);
  try {
    const key = parsePublicKey(algorithm, publicKey);
    const signature = decodeBase64Any(signatureValue);
    return {
      signature: { algorithm, publicKey: encodeBase64(key), signatureValue: encodeBase64(signature) },
      key: { publicKey: key, signature },
    };
  } catch {
    return findings.add('VAL_SIG_003', field);
  }
}
