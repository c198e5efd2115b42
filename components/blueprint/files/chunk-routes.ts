import { z } from 'zod';
import { FILE_LIMITS, fileChunks, SEALED_CHUNK } from '#core/blueprint/payload/files.ts';
import { sha256Hex } from '#core/crypto/hash.ts';
import { decodeBase64Any } from '#core/encoding/base64.ts';
import { readableText } from '#core/encoding/readable.ts';
import { isAppError } from '#core/errors/errors.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Database } from '#kit/db/db.ts';
import { type App, addRoute, answer, bearerOf, json } from '#kit/http/http.ts';
import type { Ledger } from '../clients/ledger.ts';
import type { FileTables } from '../database/file-tables.ts';
import { refusal, refusals } from '../errors.ts';
import { registerIdSchema } from '../identifiers.ts';
import { creatorOf, type ListOwnWallets } from '../instances/view.ts';
import { findUpload, storeChunk } from './uploads/store.ts';

export interface ChunkRouteDeps {
  readonly db: Database<FileTables>;
  readonly clock: Clock;
  readonly ledger: Pick<Ledger, 'findRegister'>;
  readonly listOwn: ListOwnWallets;
  /** Encrypted bytes that an organisation may keep here. */
  readonly fileQuotaBytes: number;
}

const text = z.string();
const base64Length = Math.ceil(SEALED_CHUNK.mostBytes / 3) * 4;
/** A chunk of the largest size, and the other members. */
const bodyLimitBytes = base64Length + 16_384;

const hash = text.regex(/^sha256:[0-9a-f]{64}$/);
const chunkBody = z.strictObject({
  uploadId: z
    .guid()
    .lowercase()
    .describe('Chosen by the client, one for each file; lower case, as it is part of what is encrypted.'),
  chunkIndex: z
    .int()
    .min(0)
    .max(FILE_LIMITS.chunks - 1),
  totalChunks: z.int().min(1).max(FILE_LIMITS.chunks),
  encryptedData: text.describe('Base64 of nonce (24 bytes), ciphertext and tag (16 bytes).'),
  checksum: hash.describe('SHA-256 of the decoded bytes.'),
  registerAddress: registerIdSchema
    .optional()
    .describe('The register, 32 hexadecimal digits. It and the members below are needed on the first chunk.'),
  senderWallet: text
    .min(1)
    .max(100)
    .optional()
    .describe('Address of your wallet that will refer to the file.'),
  contentType: text.min(1).max(255).optional(),
  fileName: readableText.min(1).max(255).optional(),
  fileSize: z.int().min(0).max(FILE_LIMITS.bytes).optional().describe('Bytes of the plaintext.'),
  fileHash: hash.optional().describe('SHA-256 of the plaintext.'),
});

type ChunkBody = z.output<typeof chunkBody>;

const example = {
  uploadId: '0190a5b2-7c3d-4e4f-8a1b-2c3d4e5f6a7b',
  chunkIndex: 0,
  totalChunks: 1,
  encryptedData: 'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==',
  checksum: 'sha256:2c34ce1df23b838c5abf2a7f6437cca3d3067ed509ff25f11df6b11b582b51eb',
  registerAddress: '0123456789abcdef0123456789abcdef',
  senderWallet: 'w1qdf3q6tl433zl3al00lzv4uqgyy0lucqpq2nf2tsv9txnyqjgr3ss2uttek',
  contentType: 'application/pdf',
  fileName: 'plan.pdf',
  fileSize: 0,
  fileHash: 'sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
} as const;

const chunkSchema = z
  .object({
    chunkTransactionId: text.describe('The id of the chunk: its content address in the register.'),
    uploadId: text,
    chunkIndex: z.int(),
    receivedChunks: z.int(),
    totalChunks: z.int(),
    complete: z.boolean(),
    timestamp: text.describe('When the chunk was stored; ISO 8601, UTC.'),
  })
  .meta({ id: 'FileChunk' });

/** Mounts the upload of files. */
export function mountChunkRoutes(app: App, deps: ChunkRouteDeps): void {
  addRoute(app, {
    method: 'POST',
    path: '/api/file-chunks',
    operationId: 'addFileChunk',
    tag: 'Files',
    summary: 'Upload an encrypted chunk of a file',
    description:
      'A file is kept once a submitted action refers to it; one that none refers to is deleted after 24 h. Repeating a ' +
      'chunk changes nothing.',
    policy: 'RequireAuthenticated',
    rateLimit: 'Strict',
    query: z.strictObject({}),
    body: { schema: chunkBody, example },
    bodyLimitBytes,
    noStore: true,
    answers: {
      200: json('The chunk was stored before.', chunkSchema),
      201: json('The chunk is stored.', chunkSchema),
    },
    refusals: refusals(
      'CHUNK_INVALID',
      'CHUNK_TOO_LARGE',
      'WALLETS_UNAVAILABLE',
      'WALLET_NOT_OWNED',
      'REGISTER_UNAVAILABLE',
      'REGISTER_NOT_FOUND',
      'CHUNK_CONFLICT',
      'FILE_QUOTA',
    ),
    handle: async ({ caller, body, request }) => {
      const encryptedData = readData(body);
      const upload = describedUpload(body);
      const wallets = await deps.listOwn(bearerOf(request));
      if (body.senderWallet !== undefined && !wallets.includes(body.senderWallet))
        throw refusal('WALLET_NOT_OWNED');
      await assertRegister(deps, body);
      const { uploadId, totalChunks, chunkIndex: index } = body;
      const chunk = {
        uploadId,
        totalChunks,
        index,
        encryptedData,
        upload,
        wallets,
        idIn: (registerId: string) => fileChunks.id({ registerId, uploadId, index }, encryptedData),
        quotaOwner: caller.organizationId ?? creatorOf(caller),
      };
      const limits = { now: new Date(deps.clock.nowMs()), quotaBytes: deps.fileQuotaBytes };
      const stored = await deps.db.transact((tx) => storeChunk(tx, chunk, limits));
      const { chunkId, receivedChunks, receivedAt, isReplay } = stored;
      const found = {
        chunkTransactionId: chunkId,
        uploadId,
        chunkIndex: index,
        receivedChunks,
        totalChunks,
        complete: receivedChunks === totalChunks,
        timestamp: receivedAt.toISOString(),
      };
      return isReplay ? answer(200, found) : answer(201, found);
    },
  });
}

/** @throws AppError invalid CHUNK_INVALID, too_large CHUNK_TOO_LARGE */
function readData({ encryptedData, checksum, chunkIndex, totalChunks }: ChunkBody): Uint8Array {
  if (chunkIndex >= totalChunks)
    throw refusal('CHUNK_INVALID', { message: 'chunkIndex is not below totalChunks' });
  if (encryptedData.length > base64Length) throw refusal('CHUNK_TOO_LARGE');
  const bytes = decode(encryptedData);
  if (bytes.length > SEALED_CHUNK.mostBytes) throw refusal('CHUNK_TOO_LARGE');
  if (bytes.length < SEALED_CHUNK.leastBytes)
    throw refusal('CHUNK_INVALID', { message: 'encryptedData has no nonce and tag' });
  if (`sha256:${sha256Hex(bytes)}` !== checksum)
    throw refusal('CHUNK_INVALID', { message: 'checksum is not that of encryptedData' });
  return bytes;
}

function decode(base64: string): Uint8Array {
  try {
    return decodeBase64Any(base64);
  } catch (cause) {
    if (!isAppError(cause, 'invalid')) throw cause;
    throw refusal('CHUNK_INVALID', { cause, message: 'encryptedData is not base64' });
  }
}

/** What the body says of the upload; the description of the file is complete, or absent. */
function describedUpload(body: ChunkBody) {
  const { registerAddress: registerId, senderWallet, fileName, contentType, fileSize, fileHash } = body;
  const upload = {
    ...(registerId !== undefined && { registerId }),
    ...(senderWallet !== undefined && { senderWallet }),
  };
  const members = [fileName, contentType, fileSize, fileHash];
  if (members.every((member) => member === undefined)) return upload;
  if (fileName === undefined || contentType === undefined || fileSize === undefined || fileHash === undefined)
    throw refusal('CHUNK_INVALID', {
      message: 'fileName, contentType, fileSize and fileHash belong together',
    });
  return { ...upload, file: { fileName, contentType, size: fileSize, hash: fileHash } };
}

async function assertRegister(deps: ChunkRouteDeps, { uploadId, registerAddress }: ChunkBody): Promise<void> {
  if (registerAddress === undefined) return;
  const known = await findUpload(deps.db.read, uploadId);
  if (known?.registerId === registerAddress) return;
  if ((await deps.ledger.findRegister(registerAddress)) === undefined) throw refusal('REGISTER_NOT_FOUND');
}
