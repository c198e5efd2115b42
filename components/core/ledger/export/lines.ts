import { z } from 'zod';
import { ALGORITHMS } from '../../crypto/algorithm.ts';
import { decodeBase64Any, encodeBase64, isStandardBase64, normaliseBase64 } from '../../encoding/base64.ts';
import { canonicalJson } from '../../encoding/jcs.ts';
import { fromUtf8 } from '../../encoding/text.ts';
import { AppError } from '../../errors/errors.ts';
import type { ConsensusVote } from '../attestation.ts';
import type { Certificate } from '../certificate.ts';
import type { DocketHeader } from '../docket.ts';
import type { SealedDocket } from '../verification/chain.ts';

/**
 * A whole register as text that can be verified without an installation. Each line is one JSON value in canonical form
 * (RFC 8785), ended by one newline: a header, then each docket followed by its transactions in docket order, then the
 * checkpoint of the last docket. Every value has one spelling, so a change of any byte is detected.
 */
const EXPORT_FORMAT = 'chancery-register-export';
const EXPORT_VERSION = 1;
export const EXPORT_MEDIA_TYPE = 'application/x-ndjson; charset=utf-8';

/** Maximum size of a line: record and payload of the largest gRPC message, in base64. */
export const MAX_EXPORT_LINE_BYTES = 32 * 1024 * 1024;

const hash = z.string().regex(/^[0-9a-f]{64}$/);
const registerId = z.string().regex(/^[0-9a-f]{32}$/);
const count = z.int().min(0);
const text = z.string().min(1).max(1024);

/** Standard base64 with padding only: with a second spelling a byte could change unnoticed. */
const base64 = z.string().refine(isStandardBase64, 'expected standard base64');

const headerLine = z.strictObject({
  export: z.strictObject({
    format: z.literal(EXPORT_FORMAT),
    version: z.literal(EXPORT_VERSION),
    registerId,
    dockets: z.int().min(1),
  }),
});

const certificate = z.strictObject({
  version: z.literal(1),
  height: count,
  round: count,
  docketHash: hash,
  merkleRoot: hash,
  logRoot: hash,
  validatorSetHash: hash,
  signatures: z.array(
    z.strictObject({ validatorId: text, index: count, timestamp: text, signature: base64 }),
  ),
});

const attestation = z.strictObject({
  docketHash: hash,
  validatorId: text,
  validatorAddress: text,
  approved: z.literal(true),
  timestamp: text,
  signature: z.string().regex(/^[0-9a-f]+$/),
  algorithm: z.enum(ALGORITHMS),
  publicKey: base64,
});

const docketLine = z.strictObject({
  docket: z.strictObject({
    registerId,
    docketNumber: count,
    previousHash: hash,
    timestamp: text,
    validatorAddress: text,
    transactionIds: z.array(hash).min(1),
    hash,
    merkleRoot: hash,
    logRoot: hash,
    validatorSetHash: hash,
    isGenesis: z.boolean(),
    genesisConfig: z.string().max(65_536).optional(),
    sizeBytes: count,
  }),
  certificate,
  attestations: z.array(attestation),
});

const transactionLine = z.strictObject({ record: base64, payload: base64 });

const checkpointLine = z.strictObject({ checkpoint: z.string(), transactions: count });

/** Content of the first line. */
export type ExportHeader = z.output<typeof headerLine>['export'];

/** One line of an export. */
export type ExportLine =
  | { readonly kind: 'header'; readonly header: ExportHeader }
  | { readonly kind: 'docket'; readonly docket: SealedDocket }
  | { readonly kind: 'transaction'; readonly record: Uint8Array; readonly payload: Uint8Array }
  | { readonly kind: 'checkpoint'; readonly note: string; readonly transactions: number };

const line = (value: unknown): string => `${canonicalJson(value)}\n`;

/** The first line: the register and the number of dockets. */
export function writeHeader(facts: Pick<ExportHeader, 'registerId' | 'dockets'>): string {
  return line({ export: { format: EXPORT_FORMAT, version: EXPORT_VERSION, ...facts } });
}

function plainVote(vote: ConsensusVote): ConsensusVote {
  const { docketHash, validatorId, validatorAddress, approved, timestamp, signature, algorithm } = vote;
  const publicKey = normaliseBase64(vote.publicKey);
  const facts = { docketHash, validatorId, validatorAddress, approved, timestamp };
  return { ...facts, signature: signature.toLowerCase(), algorithm, publicKey };
}

function plainCertificate(given: Certificate): Certificate {
  const signatures = given.signatures.map(({ validatorId, index, timestamp, signature }) => ({
    validatorId,
    index,
    timestamp,
    signature: normaliseBase64(signature),
  }));
  const { version, height, round, docketHash, merkleRoot, logRoot, validatorSetHash } = given;
  return { version, height, round, docketHash, merkleRoot, logRoot, validatorSetHash, signatures };
}

/** The line of a docket, before the lines of its transactions. */
export function writeDocket({ header, certificate: given, attestations }: SealedDocket): string {
  return line({
    docket: header,
    certificate: plainCertificate(given),
    attestations: attestations.map(plainVote),
  });
}

/** The line of a transaction: exact record and payload bytes. */
export function writeTransaction(record: Uint8Array, payload: Uint8Array): string {
  return line({ record: encodeBase64(record), payload: encodeBase64(payload) });
}

/** The last line: the signed checkpoint with its cosignatures, and the number of transactions before it. */
export function writeCheckpoint(note: string, transactions: number): string {
  return line({ checkpoint: note, transactions });
}

function refuse(reason: string, cause?: unknown): never {
  throw new AppError('invalid', 'EXPORT_LINE_INVALID', reason, cause === undefined ? {} : { cause });
}

function parseJson(source: string): unknown {
  try {
    return JSON.parse(source);
  } catch (cause) {
    return refuse('The line is not JSON', cause);
  }
}

/** Parses the JSON data of a line without its newline. The line must be in canonical form. */
function readCanonical(bytes: Uint8Array): object {
  const source = fromUtf8(bytes) ?? refuse('The line is not UTF-8');
  const value = parseJson(source);
  if (typeof value !== 'object' || value === null) refuse('The line is no JSON object');
  let canonical: string;
  try {
    canonical = canonicalJson(value);
  } catch (cause) {
    return refuse('The line has no canonical form', cause);
  }
  return canonical === source ? value : refuse('The line is not in canonical form');
}

function shape<T>(schema: z.ZodType<T>, value: object): T {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  return refuse(`${issue?.path.join('.') || 'The line'}: ${issue?.message}`);
}

function docketOf(value: object): SealedDocket {
  const { docket, certificate: given, attestations } = shape(docketLine, value);
  const { genesisConfig, ...rest } = docket;
  const header: DocketHeader = { ...rest, ...(genesisConfig !== undefined && { genesisConfig }) };
  return { header, certificate: given, attestations };
}

/**
 * Parses one line, without the newline. Shape and spelling only; nothing is verified.
 * @throws AppError invalid EXPORT_LINE_INVALID
 */
export function parseExportLine(bytes: Uint8Array): ExportLine {
  const value = readCanonical(bytes);
  if ('export' in value) return { kind: 'header', header: shape(headerLine, value).export };
  if ('docket' in value) return { kind: 'docket', docket: docketOf(value) };
  if ('checkpoint' in value) {
    const { checkpoint: note, transactions } = shape(checkpointLine, value);
    return { kind: 'checkpoint', note, transactions };
  }
  const { record, payload } = shape(transactionLine, value);
  return { kind: 'transaction', record: decodeBase64Any(record), payload: decodeBase64Any(payload) };
}
