import type { Reader, Transactor } from '#kit/db/db.ts';
import type { CredentialDatabase } from '../../database/schema.ts';
import type { Offer } from '../offers/offer.ts';
import { offerOf } from '../offers/store.ts';

type DB = CredentialDatabase;

interface NewAccessToken {
  readonly tokenHash: Buffer;
  readonly offerId: string;
  readonly sealedClaims: Buffer;
  /** Thumbprint of the key that the token is bound to; null for a bearer token. */
  readonly dpopThumbprint: string | null;
  readonly expiresAt: Date;
}

/** An access token with the offer that it was given for. */
export interface AccessToken extends NewAccessToken {
  /** Credentials that were issued with it. */
  readonly issued: number;
  readonly offer: Offer;
}

export async function insertAccessToken(tx: Transactor<DB>, token: NewAccessToken): Promise<void> {
  await tx
    .insertInto('access_tokens')
    .values({
      token_hash: token.tokenHash,
      offer_id: token.offerId,
      sealed_claims: token.sealedClaims,
      dpop_thumbprint: token.dpopThumbprint,
      expires_at: token.expiresAt,
    })
    .execute();
}

export async function findAccessToken(db: Reader<DB>, tokenHash: Buffer): Promise<AccessToken | undefined> {
  const row = await db
    .selectFrom('access_tokens as token')
    .innerJoin('offers', 'offers.id', 'token.offer_id')
    .selectAll('offers')
    .select(['token.sealed_claims as token_claims', 'token.dpop_thumbprint', 'token.issued'])
    .select('token.expires_at as token_expires_at')
    .where('token.token_hash', '=', tokenHash)
    .executeTakeFirst();
  return (
    row && {
      tokenHash,
      offerId: row.id,
      sealedClaims: row.token_claims,
      dpopThumbprint: row.dpop_thumbprint,
      expiresAt: row.token_expires_at,
      issued: row.issued,
      offer: offerOf(row),
    }
  );
}

/** Counts credentials of a token; false when it would give more than `most`. */
export async function countIssued(
  tx: Transactor<DB>,
  tokenHash: Buffer,
  { count, most }: { readonly count: number; readonly most: number },
): Promise<boolean> {
  const counted = await tx
    .updateTable('access_tokens')
    .set((column) => ({ issued: column('issued', '+', count) }))
    .where('token_hash', '=', tokenHash)
    .where('issued', '<=', most - count)
    .returning('issued')
    .executeTakeFirst();
  return counted !== undefined;
}
