import type { JsonSchema } from '#core/blueprint/model/values.ts';
import { type FileReference, parseFile } from '#core/blueprint/payload/files.ts';
import type { PayloadError } from '#core/blueprint/schemas/compile.ts';
import { fileValues, misfitOf } from '#core/blueprint/schemas/file-fields.ts';
import type { JsonObject } from '#core/encoding/json.ts';
import type { Transactor } from '#kit/db/db.ts';
import type { FileTables } from '../database/file-tables.ts';
import { refusal } from '../errors.ts';
import {
  claimUploads,
  type NewChunk,
  type ReferredFile,
  type StoreLimits,
  storeChunk,
} from './uploads/store.ts';

/** Files of one payload. */
const mostFiles = 64;

/** A file that a payload refers to, without its key. */
export interface FileAt extends ReferredFile {
  /** JSON Pointer into the payload. */
  readonly path: string;
}

/**
 * The files that a payload refers to, which fit the fields where they stand.
 * @param schemas of the payload, which it matches
 * @throws AppError unprocessable PAYLOAD_INVALID
 */
export function judgeFiles(schemas: readonly JsonSchema[], payload: JsonObject): readonly FileAt[] {
  const files = new Map<string, FileAt>();
  const errors: PayloadError[] = [];
  for (const { path, value, field } of fileValues(schemas, payload)) {
    const reference = parseFile(value);
    const misfit = reference === undefined ? 'expected a file reference' : misfitOf(field, reference);
    if (reference === undefined || misfit !== undefined) errors.push(errorAt(path, misfit ?? ''));
    else files.set(path, withoutKey(path, reference));
  }
  if (files.size > mostFiles) errors.push(errorAt('', `a payload has at most ${mostFiles} files`));
  if (errors.length > 0) throw payloadInvalid(errors);
  return [...files.values()];
}

function withoutKey(path: string, reference: FileReference): FileAt {
  const { fileName, contentType, size, hash, uploadId, chunkTransactionIds: chunkIds } = reference;
  reference.fileKey.fill(0);
  return { path, fileName, contentType, size, hash, uploadId, chunkIds };
}

function errorAt(path: string, message: string): PayloadError {
  return { path, message, schemaLocation: '/dataSchemas', keyword: 'x-file' };
}

function payloadInvalid(errors: readonly PayloadError[]) {
  return refusal('PAYLOAD_INVALID', { details: { errors: [...errors] } });
}

interface Claimant {
  readonly operationId: string;
  readonly registerId: string;
  /** Address of the sender. */
  readonly wallet: string;
}

/** Files that a request carries, sealed. */
interface InlineUploads {
  /** Each is the only chunk of its upload. */
  readonly chunks: readonly NewChunk[];
  readonly limits: StoreLimits;
}

/**
 * Claims the uploads of files for an operation, in the transaction that makes it, and stores those that its request
 * carries.
 * @throws AppError unprocessable PAYLOAD_INVALID for a file that was not uploaded completely, for that register, by the
 * sender, or with another description; FILE_QUOTA
 */
export async function claimFiles(
  tx: Transactor<FileTables>,
  claimant: Claimant,
  files: readonly FileAt[],
  { chunks, limits }: InlineUploads,
): Promise<void> {
  const carried = new Set(chunks.map(({ uploadId }) => uploadId));
  const placed = [...files.entries()];
  // Uploads are locked before the usage of the owner, in the order of all transactions.
  await claim(
    tx,
    claimant,
    placed.filter(([, { uploadId }]) => !carried.has(uploadId)),
  );
  for (const chunk of chunks) await storeChunk(tx, chunk, limits);
  await claim(
    tx,
    claimant,
    placed.filter(([, { uploadId }]) => carried.has(uploadId)),
  );
}

async function claim(
  tx: Transactor<FileTables>,
  { operationId, registerId, wallet }: Claimant,
  files: readonly (readonly [position: number, file: FileAt])[],
): Promise<void> {
  const refused = await claimUploads(tx, { operationId, registerId, senderWallet: wallet }, files);
  const message = 'the sender has uploaded no such file for this register';
  const errors = files.flatMap(([position, { path }]) =>
    refused.includes(position) ? [errorAt(path, message)] : [],
  );
  if (errors.length > 0) throw payloadInvalid(errors);
}
