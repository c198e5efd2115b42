import { randomBytes, randomUUID } from 'node:crypto';
import { jsonPointer } from '#core/blueprint/members.ts';
import type { JsonSchema } from '#core/blueprint/model/values.ts';
import { fileChunks } from '#core/blueprint/payload/files.ts';
import { findPath } from '#core/blueprint/pointer.ts';
import { fileValues, onlyFileProperty } from '#core/blueprint/schemas/file-fields.ts';
import { sha256Hex } from '#core/crypto/hash.ts';
import { encodeBase64, findBase64Any } from '#core/encoding/base64.ts';
import { isJsonObject, type JsonObject } from '#core/encoding/json.ts';
import { refusal } from '../errors.ts';
import type { NewChunk } from './uploads/store.ts';

/** Bounds of the files of one request. */
export const INLINE_LIMITS = { files: 10, fileBytes: 1024 ** 2, bytes: 6 * 1024 ** 2 } as const;

/** A file that an action request carries. */
export interface InlineFile {
  readonly fileName: string;
  readonly contentType: string;
  readonly contentBase64: string;
}

/** Whose upload a file becomes. */
interface InlineOwner {
  readonly registerId: string;
  /** Address of the sender. */
  readonly wallet: string;
  readonly quotaOwner: string;
}

interface InlineRequest {
  readonly payload: JsonObject;
  readonly files: readonly InlineFile[];
}

interface PlacedFiles {
  /** The payload, with a reference wherever it takes a file. */
  readonly payload: JsonObject;
  /** One for each file. */
  readonly chunks: readonly NewChunk[];
}

/** A place of the payload, and the name of the file that it takes. */
interface Placement {
  readonly path: readonly string[];
  readonly fileName: string;
  /** The place is a list, which begins with the file. */
  readonly isList?: boolean;
}

/**
 * Puts the references of inline files into a payload, and seals each file as the only chunk of an upload. A file belongs
 * where a field of the schemas with `x-file` holds `{fileName}` alone. One file needs no such object when the schemas
 * declare one field for files, and the payload has nothing there.
 *
 * @param schemas of the payload, which need not match them yet
 * @throws AppError invalid INLINE_FILE_INVALID, INLINE_FILE_ABSENT, INLINE_FILE_UNPLACED, too_large INLINE_FILE_TOO_LARGE;
 * `errors` has texts by JSON Pointer into the request
 */
export function placeInlineFiles(
  owner: InlineOwner,
  schemas: readonly JsonSchema[],
  { payload, files }: InlineRequest,
): PlacedFiles {
  const contents = readContents(files);
  const placements = findPlacements(schemas, { payload, files });
  const sealed = new Map(files.map((file, index) => [file.fileName, sealFile(owner, file, contents[index])]));
  const placed = placements.reduce<unknown>((whole, { path, fileName, isList }) => {
    const reference = sealed.get(fileName)?.reference;
    return withValue(whole, path, isList === true ? [reference] : reference);
  }, payload);
  return { payload: placed as JsonObject, chunks: [...sealed.values()].map(({ chunk }) => chunk) };
}

function readContents(files: readonly InlineFile[]): readonly Uint8Array[] {
  const contents = files.map(({ contentBase64 }) => findBase64Any(contentBase64));
  const names = files.map(({ fileName }) => fileName);
  refuseAll('INLINE_FILE_INVALID', [
    ...contents.flatMap((bytes, index) =>
      bytes === undefined ? [[`/files/${index}/contentBase64`, 'expected base64'] as const] : [],
    ),
    ...names.flatMap((name, index) =>
      names.indexOf(name) === index
        ? []
        : [[`/files/${index}/fileName`, 'another file of the request has this name'] as const],
    ),
  ]);
  const known = contents.map((bytes) => bytes ?? new Uint8Array());
  const total = known.reduce((sum, { length }) => sum + length, 0);
  refuseAll('INLINE_FILE_TOO_LARGE', [
    ...known.flatMap(({ length }, index) =>
      length > INLINE_LIMITS.fileBytes ? [[`/files/${index}`, `the file has ${length} bytes`] as const] : [],
    ),
    ...(total > INLINE_LIMITS.bytes ? [['/files', `the files have ${total} bytes`] as const] : []),
  ]);
  return known;
}

/** Refuses for faults, texts by JSON Pointer into the request. */
function refuseAll(
  code: `INLINE_FILE_${'INVALID' | 'TOO_LARGE' | 'ABSENT' | 'UNPLACED'}`,
  faults: readonly (readonly [pointer: string, text: string])[],
): void {
  if (faults.length === 0) return;
  const errors = Object.fromEntries(faults.map(([pointer, text]) => [pointer, [text]]));
  throw refusal(code, { details: { errors } });
}

function findPlacements(
  schemas: readonly JsonSchema[],
  { payload, files }: InlineRequest,
): readonly Placement[] {
  const names = new Set(files.map(({ fileName }) => fileName));
  const named = namedPlaces(schemas, payload);
  refuseAll(
    'INLINE_FILE_ABSENT',
    named.flatMap(({ path, fileName }) =>
      names.has(fileName) ? [] : [[`/payloadData${jsonPointer(path)}`, 'no file has this name'] as const],
    ),
  );
  const [file] = files;
  const alone = file !== undefined && files.length === 1 && named.length === 0;
  const only = alone ? findOnlyPlace(schemas, payload, file.fileName) : undefined;
  const placements = only === undefined ? named : [only];
  const taken = new Set(placements.map(({ fileName }) => fileName));
  refuseAll(
    'INLINE_FILE_UNPLACED',
    files.flatMap(({ fileName }, index) =>
      taken.has(fileName) ? [] : [[`/files/${index}`, 'no field of the payload takes the file'] as const],
    ),
  );
  return placements;
}

/** The fields for files that hold `{fileName}` alone. */
function namedPlaces(schemas: readonly JsonSchema[], payload: JsonObject): readonly Placement[] {
  const places = new Map<string, Placement>();
  for (const { path: pointer, value } of fileValues(schemas, payload)) {
    const { fileName } = value;
    const path = findPath(pointer);
    if (path === undefined || typeof fileName !== 'string' || Object.keys(value).length !== 1) continue;
    places.set(pointer, { path, fileName });
  }
  return [...places.values()];
}

/** The only field for files, when the payload has nothing there and has what the field is a member of. */
function findOnlyPlace(
  schemas: readonly JsonSchema[],
  payload: JsonObject,
  fileName: string,
): Placement | undefined {
  const only = onlyFileProperty(schemas);
  const name = only?.path.at(-1);
  if (only === undefined || name === undefined) return undefined;
  const holder = only.path.slice(0, -1).reduce<unknown>(memberOf, payload);
  return isJsonObject(holder) && !Object.hasOwn(holder, name) ? { ...only, fileName } : undefined;
}

function memberOf(value: unknown, name: string): unknown {
  return isJsonObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}

/** A value with another one at a place inside; what is on the way is copied. */
function withValue(whole: unknown, [name, ...rest]: readonly string[], value: unknown): unknown {
  if (name === undefined) return value;
  if (Array.isArray(whole)) return whole.with(Number(name), withValue(whole[Number(name)], rest, value));
  const members = isJsonObject(whole) ? whole : {};
  return { ...members, [name]: withValue(memberOf(members, name), rest, value) };
}

/** A file as the only chunk of an upload, and the reference with its key. */
function sealFile(
  { registerId, wallet, quotaOwner }: InlineOwner,
  { fileName, contentType }: InlineFile,
  bytes: Uint8Array = new Uint8Array(),
): { readonly reference: JsonObject; readonly chunk: NewChunk } {
  const uploadId = randomUUID();
  const hash = `sha256:${sha256Hex(bytes)}`;
  const [fileKey, salt] = [randomBytes(32), randomBytes(32)];
  const owner = { fileKey, salt, uploadId, hash, chunkTransactionIds: [''] };
  const encryptedData = fileChunks.seal(owner, 0, { nonce: randomBytes(24), bytes });
  const idIn = (register: string) =>
    fileChunks.id({ registerId: register, uploadId, index: 0 }, encryptedData);
  const file = { fileName, contentType, size: bytes.length, hash };
  const reference = {
    ...file,
    salt: encodeBase64(salt),
    uploadId,
    chunkTransactionIds: [idIn(registerId)],
    fileKey: encodeBase64(fileKey),
  };
  fileKey.fill(0);
  const upload = { registerId, senderWallet: wallet, file };
  const chunk = {
    uploadId,
    totalChunks: 1,
    index: 0,
    encryptedData,
    idIn,
    upload,
    wallets: [wallet],
    quotaOwner,
  };
  return { reference, chunk };
}
