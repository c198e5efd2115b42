import { z } from 'zod';
import { decodeBase64Any, encodeBase64, isBase64Url, isStandardBase64 } from '../../encoding/base64.ts';
import { canonicalJson } from '../../encoding/jcs.ts';
import { isJsonObject, type JsonObject, scanJson, toValue } from '../../encoding/json.ts';
import { equalBytes, fromUtf8, utf8 } from '../../encoding/text.ts';
import { type AppError, isAppError } from '../../errors/errors.ts';
import {
  checkpointNote,
  type NoteKey,
  noteKeyHash,
  noteLine,
  parseCheckpoint,
  verifierKey,
} from '../../ledger/checkpoint.ts';
import { jsonPointer } from '../members.ts';

const DISCLOSURE_FORMAT = 'chancery-disclosure';
const DISCLOSURE_VERSION = 1;

/** Maximum size of a file: record and payload of the largest gRPC message, in base64, and the group once more. */
export const MAX_DISCLOSURE_BYTES = 64 * 1024 * 1024;

const hash = z.string().regex(/^[0-9a-f]{64}$/, { error: 'expected 64 lower-case hexadecimal digits' });
const base64 = z
  .string()
  .refine(isStandardBase64, { error: 'expected standard base64' })
  .transform((text) => decodeBase64Any(text));
/** As many steps as a tree of 2^40 leaves has levels. */
const path = z.array(z.strictObject({ hash, position: z.enum(['Left', 'Right']) })).max(40);

const fileSchema = z.strictObject({
  disclosure: z.strictObject({
    format: z.literal(DISCLOSURE_FORMAT),
    version: z.literal(DISCLOSURE_VERSION),
  }),
  record: base64,
  payload: base64,
  group: z.strictObject({
    salt: z.string().refine(isBase64Url, { error: 'expected base64url' }),
    fields: z.array(z.string()),
    data: z.custom<JsonObject>(isJsonObject, { error: 'expected an object' }),
  }),
  docket: z.strictObject({
    registerId: z.string().regex(/^[0-9a-f]{32}$/),
    docketNumber: z.int().min(0),
    hash,
    merkleRoot: hash,
    timestamp: z.string().max(64),
    validatorSetHash: hash,
  }),
  inclusion: path,
  log: path,
  checkpoint: z.string().max(10_000),
  checkpointKey: z.string().max(1000),
});

/**
 * What a recipient of a group shows to others: the sealed transaction, the plaintext of one group, and the proof that the
 * register sealed it. One JSON value in canonical form (RFC 8785) and one newline, in which every value has one spelling.
 *
 * `docket` is the leaf of the register log; `inclusion` leads from the record to its `merkleRoot`, `log` from that leaf
 * to the root of the checkpoint, whose tree has a leaf for each docket. `checkpoint` has the line of `checkpointKey` alone.
 */
export type DisclosureFile = z.output<typeof fileSchema>;

/** The contents of a file without what follows from its format. */
export type DisclosureEvidence = Omit<DisclosureFile, 'disclosure' | 'checkpoint' | 'checkpointKey'> & {
  /** As the register serves it: lines of other keys are left out of the file. */
  readonly checkpoint: string;
  readonly checkpointKey: NoteKey;
};

/** The bytes of a file. Throws like parseCheckpoint. */
export function writeDisclosure(evidence: DisclosureEvidence): Uint8Array {
  const { record, payload, group, docket, inclusion, log, checkpointKey: key } = evidence;
  const { registerId, docketNumber, hash: docketHash, merkleRoot, timestamp, validatorSetHash } = docket;
  const { body, signatures } = parseCheckpoint(evidence.checkpoint);
  const ours = signatures.find(
    ({ name, keyHash }) => name === key.name && equalBytes(keyHash, noteKeyHash(key)),
  );
  const file = {
    disclosure: { format: DISCLOSURE_FORMAT, version: DISCLOSURE_VERSION },
    record: encodeBase64(record),
    payload: encodeBase64(payload),
    group: { salt: group.salt, fields: group.fields, data: group.data },
    docket: { registerId, docketNumber, hash: docketHash, merkleRoot, timestamp, validatorSetHash },
    inclusion,
    log,
    checkpoint: checkpointNote(body, ours === undefined ? [] : [noteLine(key, ours.blob)]),
    checkpointKey: verifierKey(key),
  };
  return utf8(`${canonicalJson(file)}\n`);
}

/** Why a file does not prove what it shows. */
export interface DisclosureFinding {
  readonly code: string;
  readonly message: string;
  /** JSON Pointer into the file (RFC 6901) */
  readonly location: string;
}

/** Reads a file, or lists what is wrong with its form. */
export function readDisclosure(bytes: Uint8Array): DisclosureFile | readonly DisclosureFinding[] {
  if (bytes.length > MAX_DISCLOSURE_BYTES)
    return malformed(`The file has more than ${MAX_DISCLOSURE_BYTES} bytes`);
  const value = findValue(bytes);
  if (isAppError(value)) return malformed(value.message);
  const { data, error } = fileSchema.safeParse(value);
  if (error !== undefined) {
    return error.issues.map((issue) => ({
      code: 'DISCLOSURE_MALFORMED',
      message: issue.message,
      location: jsonPointer(issue.path),
    }));
  }
  const canonical = `${canonicalJson(value)}\n`;
  const text = fromUtf8(bytes) ?? '';
  if (text === canonical) return data;
  return malformed(`The text is not canonical from character ${firstDifference(text, canonical)} on`);
}

function malformed(message: string): readonly DisclosureFinding[] {
  return [{ code: 'DISCLOSURE_MALFORMED', message, location: '' }];
}

function findValue(bytes: Uint8Array): unknown {
  try {
    return toValue(scanJson(bytes));
  } catch (error) {
    if (isAppError(error, 'invalid')) return error satisfies AppError;
    throw error;
  }
}

function firstDifference(left: string, right: string): number {
  let at = 0;
  while (at < left.length && left[at] === right[at]) at += 1;
  return at;
}
