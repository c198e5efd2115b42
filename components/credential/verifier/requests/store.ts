import type { Selectable } from 'kysely';
import type { Reader, Transactor } from '#kit/db/db.ts';
import type { CredentialDatabase } from '../../database/schema.ts';
import { type RequestTerms, readTerms, writeTerms } from './terms.ts';

type DB = CredentialDatabase;

interface NewRequest {
  readonly id: string;
  readonly createdBy: string;
  readonly organizationId: string | undefined;
  readonly terms: RequestTerms;
  readonly nonce: string;
  readonly state: string;
  readonly clientId: string;
  /** Private JWK. */
  readonly decryptionKey: object | undefined;
  readonly redirectUri: string | undefined;
  readonly createdAt: Date;
  readonly expiresAt: Date;
}

/** A request for presentations, as it is stored. */
export interface StoredRequest extends Omit<NewRequest, 'redirectUri' | 'decryptionKey'> {
  readonly status: 'Pending' | 'Verified' | 'Failed' | 'Expired';
  readonly decryptionKey: unknown;
  readonly redirectUri: string | null;
  readonly responseCodeHash: Buffer | null;
  readonly verdict: unknown;
  readonly claims: unknown;
}

export async function insertRequest(tx: Transactor<DB>, request: NewRequest): Promise<void> {
  await tx
    .insertInto('presentation_requests')
    .values({
      id: request.id,
      created_by: request.createdBy,
      organization_id: request.organizationId ?? null,
      status: 'Pending',
      terms: writeTerms(request.terms),
      nonce: request.nonce,
      state: request.state,
      client_id: request.clientId,
      decryption_key: request.decryptionKey === undefined ? null : JSON.stringify(request.decryptionKey),
      redirect_uri: request.redirectUri ?? null,
      response_code_hash: null,
      verdict: null,
      claims: null,
      created_at: request.createdAt,
      expires_at: request.expiresAt,
      answered_at: null,
    })
    .execute();
}

export async function findRequest(db: Reader<DB>, id: string): Promise<StoredRequest | undefined> {
  const row = await db
    .selectFrom('presentation_requests')
    .selectAll()
    .where('id', '=', id)
    .executeTakeFirst();
  return row && requestOf(row);
}

/** The verdict about an answer. */
interface Verdict {
  readonly status: 'Verified' | 'Failed';
  readonly verdict: object;
  readonly claims: object;
  readonly responseCodeHash: Buffer | undefined;
  readonly at: Date;
}

/** Writes the verdict about the first answer; false when there was one before, or the request has expired. */
export async function writeVerdict(tx: Transactor<DB>, id: string, verdict: Verdict): Promise<boolean> {
  const written = await tx
    .updateTable('presentation_requests')
    .set({
      status: verdict.status,
      verdict: JSON.stringify(verdict.verdict),
      claims: JSON.stringify(verdict.claims),
      response_code_hash: verdict.responseCodeHash ?? null,
      decryption_key: null,
      answered_at: verdict.at,
    })
    .where('id', '=', id)
    .where('status', '=', 'Pending')
    .where('expires_at', '>', verdict.at)
    .returning('id')
    .executeTakeFirst();
  return written !== undefined;
}

/** Releases a result whose code came back. */
export async function releaseResult(tx: Transactor<DB>, id: string): Promise<void> {
  await tx
    .updateTable('presentation_requests')
    .set({ response_code_hash: null })
    .where('id', '=', id)
    .execute();
}

/** Ends requests that have expired, at most so many; returns their number. */
export async function expireRequests(
  tx: Transactor<DB>,
  { now, most }: { readonly now: Date; readonly most: number },
): Promise<number> {
  const expired = tx
    .selectFrom('presentation_requests')
    .select('id')
    .where('status', '=', 'Pending')
    .where('expires_at', '<=', now)
    .limit(most)
    .forUpdate()
    .skipLocked();
  const { numUpdatedRows } = await tx
    .updateTable('presentation_requests')
    .set({ status: 'Expired', decryption_key: null })
    .where('id', 'in', expired)
    .executeTakeFirstOrThrow();
  return Number(numUpdatedRows);
}

/** Erases verified claims of requests that were answered before a time, at most so many; returns their number. */
export async function eraseClaims(
  tx: Transactor<DB>,
  { answeredBefore, most }: { readonly answeredBefore: Date; readonly most: number },
): Promise<number> {
  const kept = tx
    .selectFrom('presentation_requests')
    .select('id')
    .where('claims', 'is not', null)
    .where('answered_at', '<=', answeredBefore)
    .limit(most)
    .forUpdate()
    .skipLocked();
  const { numUpdatedRows } = await tx
    .updateTable('presentation_requests')
    .set({ claims: null })
    .where('id', 'in', kept)
    .executeTakeFirstOrThrow();
  return Number(numUpdatedRows);
}

function requestOf(row: Selectable<DB['presentation_requests']>): StoredRequest {
  return {
    id: row.id,
    createdBy: row.created_by,
    organizationId: row.organization_id ?? undefined,
    status: row.status,
    terms: readTerms(row.terms),
    nonce: row.nonce,
    state: row.state,
    clientId: row.client_id,
    decryptionKey: row.decryption_key,
    redirectUri: row.redirect_uri,
    responseCodeHash: row.response_code_hash,
    verdict: row.verdict,
    claims: row.claims,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
  };
}
