import { z } from 'zod';
import { hkdfSha256, sha256Hex } from '../../crypto/hash.ts';
import { XCHACHA, xchacha20poly1305 } from '../../crypto/xchacha.ts';
import { findBase64Any } from '../../encoding/base64.ts';
import { isJsonObject, type JsonObject } from '../../encoding/json.ts';
import { concatBytes, utf8 } from '../../encoding/text.ts';

const CHUNK_DOMAIN = 'platform:file-chunk:v1';
const SEPARATOR = '\u001f';
const SECRET_BYTES = 32;

/** Bounds of a file: chunks, plaintext bytes of a chunk and of the whole. */
export const FILE_LIMITS = { chunks: 10, chunkBytes: 4 * 1024 * 1024, bytes: 40 * 1024 * 1024 } as const;

/** Bytes of a sealed chunk: nonce, ciphertext, tag. */
export const SEALED_CHUNK = {
  leastBytes: XCHACHA.nonceBytes + XCHACHA.tagBytes,
  mostBytes: XCHACHA.nonceBytes + FILE_LIMITS.chunkBytes + XCHACHA.tagBytes,
} as const;

const secret = z.string().transform((text, context) => {
  const bytes = findBase64Any(text);
  if (bytes?.length === SECRET_BYTES) return bytes;
  context.addIssue({ code: 'custom', message: 'expected base64 of 32 bytes' });
  return z.NEVER;
});

const referenceSchema = z.object({
  fileName: z.string().min(1).max(255),
  contentType: z.string().max(255),
  size: z.int().min(0).max(FILE_LIMITS.bytes),
  hash: z.string().regex(/^sha256:[0-9a-f]{64}$/),
  salt: secret,
  uploadId: z.guid(),
  chunkTransactionIds: z
    .array(z.string().regex(/^[0-9a-f]{64}$/))
    .min(1)
    .max(FILE_LIMITS.chunks),
  fileKey: secret,
});

/**
 * A file in the data of an action. Its key is inside the encrypted group, so disclosing the field discloses the file.
 * The holder wipes `fileKey` after use.
 */
export type FileReference = z.output<typeof referenceSchema>;

/** What the key and the additional data of a chunk are made of. */
type ChunkOwner = Pick<FileReference, 'fileKey' | 'salt' | 'uploadId' | 'hash'> & {
  readonly chunkTransactionIds: readonly unknown[];
};

/**
 * The file at a field of disclosed data.
 *
 * @param field a member's name, or a JSON Pointer (RFC 6901), which begins with a slash
 * @param index position in a list of files; 0 for a field with one file
 */
export function findFile(data: JsonObject, field: string, index: number): FileReference | undefined {
  const value = valueAt(data, field);
  const [list, at] = Array.isArray(value) ? [value, index] : [[value], index];
  return parseFile(list[at]);
}

/** A FileReference; undefined when the value is none. */
export function parseFile(value: unknown): FileReference | undefined {
  return referenceSchema.safeParse(value).data;
}

function valueAt(data: JsonObject, field: string): unknown {
  const names = field.startsWith('/') ? field.slice(1).split('/').map(unescapeName) : [field];
  return names.reduce<unknown>((value, name) => memberOf(value, name), data);
}

function unescapeName(name: string): string {
  return name.replaceAll('~1', '/').replaceAll('~0', '~');
}

function memberOf(value: unknown, name: string): unknown {
  if (Array.isArray(value)) return /^(?:0|[1-9][0-9]{0,5})$/.test(name) ? value[Number(name)] : undefined;
  return isJsonObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}

/** The file in disclosed data whose first chunk has an id; undefined when there is none. */
export function findFileOfChunk(value: unknown, chunkId: string): FileReference | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const ids = isJsonObject(value) ? value['chunkTransactionIds'] : undefined;
  const file = Array.isArray(ids) && ids[0] === chunkId ? parseFile(value) : undefined;
  if (file !== undefined) return file;
  for (const inner of Object.values(value)) {
    const found = findFileOfChunk(inner, chunkId);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** The chunks of a file: XChaCha20-Poly1305 under a key for each; nonce, ciphertext and tag in one piece. */
export const fileChunks = {
  /** @param nonce 24 random bytes */
  seal(owner: ChunkOwner, index: number, { nonce, bytes }: { nonce: Uint8Array; bytes: Uint8Array }): Buffer {
    const key = chunkKey(owner, index);
    try {
      const sealed = xchacha20poly1305.seal({ key, nonce, aad: chunkAad(owner, index) }, bytes);
      return Buffer.concat([nonce, sealed]);
    } finally {
      key.fill(0);
    }
  },

  /** The plaintext of a chunk; undefined when it is no chunk of the file at that position. */
  open(owner: ChunkOwner, index: number, sealed: Uint8Array): Buffer | undefined {
    if (sealed.length < XCHACHA.nonceBytes || sealed.length > SEALED_CHUNK.mostBytes) return undefined;
    const key = chunkKey(owner, index);
    const nonce = sealed.subarray(0, XCHACHA.nonceBytes);
    try {
      const input = { key, nonce, aad: chunkAad(owner, index) };
      return xchacha20poly1305.open(input, sealed.subarray(XCHACHA.nonceBytes));
    } finally {
      key.fill(0);
    }
  },

  /** The id of a sealed chunk, lower-case hex: its content address in a register. */
  id(place: { registerId: string; uploadId: string; index: number }, sealed: Uint8Array): string {
    const checksum = `sha256:${sha256Hex(sealed)}`;
    const { registerId, uploadId, index } = place;
    return sha256Hex([CHUNK_DOMAIN, registerId, uploadId, String(index), checksum].join(SEPARATOR));
  },
};

function chunkKey({ fileKey, salt, chunkTransactionIds }: ChunkOwner, index: number): Buffer {
  const position = Buffer.alloc(8);
  position.writeUInt32BE(index, 0);
  position.writeUInt32BE(chunkTransactionIds.length, 4);
  const info = concatBytes([utf8(CHUNK_DOMAIN), position]);
  return hkdfSha256(fileKey, salt, { info, sizeBytes: XCHACHA.keyBytes });
}

function chunkAad({ uploadId, hash, chunkTransactionIds }: ChunkOwner, index: number): Uint8Array {
  return utf8([uploadId, String(index), String(chunkTransactionIds.length), hash].join('|'));
}
