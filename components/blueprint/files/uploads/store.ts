import { type Selectable, sql } from 'kysely';
import { SEALED_CHUNK } from '#core/blueprint/payload/files.ts';
import type { Reader, Transactor } from '#kit/db/db.ts';
import type { FileTables } from '../../database/file-tables.ts';
import { refusal } from '../../errors.ts';
import { type DeclaredFile, declarationDigest } from './upload.ts';

type DB = FileTables;

/** How long an upload is kept that no operation claims. */
const unclaimedMs = 24 * 3_600_000;
/** How long a purged upload is remembered. */
const rememberedMs = 30 * 24 * 3_600_000;
const purgedAtATime = 20;

/** What a chunk counts for at least, so that small ones do not fill the tables. */
const leastCounted = 4_096;

/** An upload before its first chunk is stored. */
interface NewUpload {
  readonly registerId: string;
  readonly senderWallet: string;
  readonly file: DeclaredFile;
}

export interface NewChunk {
  readonly uploadId: string;
  readonly totalChunks: number;
  readonly index: number;
  readonly encryptedData: Uint8Array;
  /** The id of the chunk in a register. */
  readonly idIn: (registerId: string) => string;
  /** Present on the first chunk, and where the client repeats it. */
  readonly upload: Partial<NewUpload>;
  /** Wallets of the caller. */
  readonly wallets: readonly string[];
  readonly quotaOwner: string;
}

interface StoredChunk {
  readonly chunkId: string;
  readonly receivedChunks: number;
  readonly receivedAt: Date;
  /** It was stored before. */
  readonly isReplay: boolean;
}

type UploadRow = Selectable<FileTables['file_uploads']>;

/** The register and the sender of an upload; undefined for an unknown one. */
export async function findUpload(
  db: Reader<DB>,
  uploadId: string,
): Promise<{ readonly registerId: string } | undefined> {
  const row = await db
    .selectFrom('file_uploads')
    .select('register_id')
    .where('upload_id', '=', uploadId)
    .executeTakeFirst();
  return row && { registerId: row.register_id };
}

/** Time of storing, and encrypted bytes that the owner of a quota may keep. */
export interface StoreLimits {
  readonly now: Date;
  readonly quotaBytes: number;
}

/**
 * Stores a chunk; one that was stored before is recognised.
 * @throws AppError invalid CHUNK_INVALID, conflict CHUNK_CONFLICT, forbidden WALLET_NOT_OWNED, unprocessable FILE_QUOTA
 */
export async function storeChunk(
  tx: Transactor<DB>,
  chunk: NewChunk,
  { now, quotaBytes }: StoreLimits,
): Promise<StoredChunk> {
  await insertUpload(tx, chunk, now);
  const upload = await lockUpload(tx, chunk.uploadId);
  if (upload === undefined) throw refusal('CHUNK_INVALID', { message: 'the first chunk describes the file' });
  assertSameUpload(upload, chunk);
  const stored = await tx
    .selectFrom('file_chunks')
    .select(['chunk_index', 'chunk_id', 'size', 'created_at'])
    .where('upload_id', '=', chunk.uploadId)
    .execute();
  const chunkId = chunk.idIn(upload.register_id);
  const before = stored.find(({ chunk_index }) => chunk_index === chunk.index);
  if (before !== undefined) {
    if (before.chunk_id !== chunkId) throw refusal('CHUNK_CONFLICT');
    const receivedChunks = stored.length;
    return { chunkId, receivedChunks, receivedAt: before.created_at, isReplay: true };
  }
  const receivedChunks = stored.length + 1;
  const size = chunk.encryptedData.length;
  const plain = [...stored.map((each) => each.size), size].reduce(
    (sum, each) => sum + each - SEALED_CHUNK.leastBytes,
    0,
  );
  const isComplete = receivedChunks === upload.total_chunks;
  if (isComplete ? plain !== upload.file_size : plain > upload.file_size)
    throw refusal('CHUNK_INVALID', { message: 'the chunks together have not the size of the file' });
  await count(tx, { owner: upload.quota_owner, bytes: Math.max(size, leastCounted), quotaBytes });
  await tx
    .insertInto('file_chunks')
    .values({
      upload_id: chunk.uploadId,
      chunk_index: chunk.index,
      chunk_id: chunkId,
      size,
      encrypted_data: Buffer.from(chunk.encryptedData),
      created_at: now,
    })
    .execute();
  return { chunkId, receivedChunks, receivedAt: now, isReplay: false };
}

/** Makes the upload of a first chunk, unless there is one. */
async function insertUpload(tx: Transactor<DB>, chunk: NewChunk, now: Date): Promise<void> {
  const { registerId, senderWallet, file } = chunk.upload;
  if (registerId === undefined || senderWallet === undefined || file === undefined) return;
  await tx
    .insertInto('file_uploads')
    .values({
      upload_id: chunk.uploadId,
      register_id: registerId,
      sender_wallet: senderWallet,
      quota_owner: chunk.quotaOwner,
      total_chunks: chunk.totalChunks,
      file_size: file.size,
      declared: declarationDigest(file),
      created_at: now,
      expires_at: new Date(now.getTime() + unclaimedMs),
    })
    .onConflict((conflict) => conflict.column('upload_id').doNothing())
    .execute();
}

async function lockUpload(tx: Transactor<DB>, uploadId: string): Promise<UploadRow | undefined> {
  return tx
    .selectFrom('file_uploads')
    .selectAll()
    .where('upload_id', '=', uploadId)
    .forUpdate()
    .executeTakeFirst();
}

function assertSameUpload(row: UploadRow, { upload, wallets, totalChunks }: NewChunk): void {
  if (!wallets.includes(row.sender_wallet)) throw refusal('WALLET_NOT_OWNED');
  const { registerId = row.register_id, senderWallet = row.sender_wallet, file } = upload;
  const isSame =
    row.total_chunks === totalChunks &&
    row.register_id === registerId &&
    row.sender_wallet === senderWallet &&
    (file === undefined || row.declared.equals(declarationDigest(file)));
  if (!isSame) throw refusal('CHUNK_CONFLICT', { message: 'the upload was begun with another description' });
  if (row.purged_at !== null)
    throw refusal('CHUNK_CONFLICT', { message: 'the upload was deleted; begin another one' });
}

interface Counted {
  readonly owner: string;
  readonly bytes: number;
  readonly quotaBytes: number;
}

async function count(tx: Transactor<DB>, { owner, bytes, quotaBytes }: Counted): Promise<void> {
  if (bytes > quotaBytes) throw refusal('FILE_QUOTA');
  const counted = await tx
    .insertInto('file_usage')
    .values({ quota_owner: owner, stored_bytes: bytes })
    .onConflict((conflict) =>
      conflict
        .column('quota_owner')
        .doUpdateSet({ stored_bytes: sql`file_usage.stored_bytes + ${bytes}` })
        .where(sql<boolean>`file_usage.stored_bytes + ${bytes} <= ${quotaBytes}`),
    )
    .returning('quota_owner')
    .executeTakeFirst();
  if (counted === undefined) throw refusal('FILE_QUOTA');
}

/**
 * The bytes of a chunk.
 * @throws AppError not_found CHUNK_NOT_FOUND, gone CHUNK_PURGED
 */
export async function readChunk(
  db: Reader<DB>,
  place: { readonly registerId: string; readonly chunkId: string },
): Promise<Buffer> {
  const row = await db
    .selectFrom('file_chunks')
    .innerJoin('file_uploads', 'file_uploads.upload_id', 'file_chunks.upload_id')
    .select('encrypted_data')
    .where('chunk_id', '=', place.chunkId)
    .where('register_id', '=', place.registerId)
    .executeTakeFirst();
  if (row === undefined) throw refusal('CHUNK_NOT_FOUND');
  if (row.encrypted_data === null) throw refusal('CHUNK_PURGED');
  return row.encrypted_data;
}

/**
 * Deletes the bytes of uploads that no operation has claimed for a day, and forgets those that were purged 30 days ago.
 * One of several replicas purges an upload.
 * @returns whether there may be more
 */
export async function purgeUploads(tx: Transactor<DB>, now: Date): Promise<boolean> {
  const expired = await tx
    .selectFrom('file_uploads')
    .select(['upload_id', 'quota_owner'])
    .where('expires_at', '<=', now)
    .where('purged_at', 'is', null)
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('file_claims')
            .select('operation_id')
            .whereRef('file_claims.upload_id', '=', 'file_uploads.upload_id'),
        ),
      ),
    )
    .orderBy('expires_at')
    .limit(purgedAtATime)
    .forUpdate()
    .skipLocked()
    .execute();
  const freed = new Map<string, number>();
  for (const { upload_id: uploadId, quota_owner: owner } of expired) {
    await tx.updateTable('file_uploads').set({ purged_at: now }).where('upload_id', '=', uploadId).execute();
    const chunks = await tx
      .updateTable('file_chunks')
      .set({ encrypted_data: null })
      .where('upload_id', '=', uploadId)
      .returning('size')
      .execute();
    const bytes = chunks.reduce((sum, { size }) => sum + Math.max(size, leastCounted), 0);
    freed.set(owner, (freed.get(owner) ?? 0) + bytes);
  }
  // One order for all replicas, so that none waits for another one in a circle.
  for (const [owner, bytes] of [...freed].sort(([one], [other]) => (one < other ? -1 : 1))) {
    await tx
      .updateTable('file_usage')
      .set({ stored_bytes: sql`stored_bytes - ${bytes}` })
      .where('quota_owner', '=', owner)
      .execute();
  }
  await tx
    .deleteFrom('file_uploads')
    .where('purged_at', '<', new Date(now.getTime() - rememberedMs))
    .execute();
  return expired.length === purgedAtATime;
}

/** A file that a payload refers to. */
export interface ReferredFile extends DeclaredFile {
  readonly uploadId: string;
  readonly chunkIds: readonly string[];
}

interface Claim {
  readonly operationId: string;
  readonly registerId: string;
  readonly senderWallet: string;
}

/**
 * Claims the uploads of the files that an operation's payload refers to; they are kept from then on.
 * @param files with their positions in the payload
 * @returns positions of files that have no complete upload of that register, sender and description; the caller then
 * gives the transaction up
 */
export async function claimUploads(
  tx: Transactor<DB>,
  { operationId, registerId, senderWallet }: Claim,
  files: readonly (readonly [position: number, file: ReferredFile])[],
): Promise<readonly number[]> {
  const refused: number[] = [];
  const order = files.toSorted(([, one], [, other]) => (one.uploadId < other.uploadId ? -1 : 1));
  for (const [position, file] of order) {
    const upload = await lockUpload(tx, file.uploadId);
    const isOwn =
      upload !== undefined &&
      // PostgreSQL finds other spellings too; the chunks are bound to this one.
      upload.upload_id === file.uploadId &&
      upload.purged_at === null &&
      upload.register_id === registerId &&
      upload.sender_wallet === senderWallet &&
      upload.declared.equals(declarationDigest(file)) &&
      (await hasChunks(tx, upload, file.chunkIds));
    if (!isOwn) {
      refused.push(position);
      continue;
    }
    await tx
      .insertInto('file_claims')
      .values({ upload_id: file.uploadId, operation_id: operationId, position })
      .onConflict((conflict) => conflict.columns(['upload_id', 'operation_id']).doNothing())
      .execute();
    await tx
      .updateTable('file_uploads')
      .set({ expires_at: null })
      .where('upload_id', '=', file.uploadId)
      .execute();
  }
  return refused.sort((one, other) => one - other);
}

/** Whether the chunks are all those of an upload, in its order. */
async function hasChunks(
  tx: Transactor<DB>,
  { upload_id: uploadId, total_chunks: total }: UploadRow,
  ids: readonly string[],
): Promise<boolean> {
  const rows = await tx
    .selectFrom('file_chunks')
    .select('chunk_id')
    .where('upload_id', '=', uploadId)
    .orderBy('chunk_index')
    .execute();
  return rows.length === total && ids.length === total && rows.every((row, at) => row.chunk_id === ids[at]);
}

/** Gives the uploads of an operation that failed back: they are purged in a day unless another one claims them. */
export async function releaseUploads(tx: Transactor<DB>, operationId: string, now: Date): Promise<void> {
  const claims = await tx
    .deleteFrom('file_claims')
    .where('operation_id', '=', operationId)
    .returning('upload_id')
    .execute();
  for (const uploadId of claims.map((claim) => claim.upload_id).sort()) {
    // Locked first: a claim that is made meanwhile is seen by the next statement.
    await lockUpload(tx, uploadId);
    await tx
      .updateTable('file_uploads')
      .set({ expires_at: new Date(now.getTime() + unclaimedMs) })
      .where('upload_id', '=', uploadId)
      .where(({ not, exists, selectFrom }) =>
        not(exists(selectFrom('file_claims').select('position').where('upload_id', '=', uploadId))),
      )
      .execute();
  }
}

/** Ids of the first chunks of the files of an operation, in the order of its payload. */
export async function listFileIds(db: Reader<DB>, operationId: string): Promise<readonly string[]> {
  const rows = await db
    .selectFrom('file_claims')
    .innerJoin('file_chunks', 'file_chunks.upload_id', 'file_claims.upload_id')
    .select('chunk_id')
    .where('operation_id', '=', operationId)
    .where('chunk_index', '=', 0)
    .orderBy('position')
    .execute();
  return rows.map((row) => row.chunk_id);
}
