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
  const token = await db
    .selectFrom('access_tokens')
    .selectAll()
    .where('token_hash', '=', tokenHash)
    .executeTakeFirst();
  if (token === undefined) return undefined;
  const offer = await db
    .selectFrom('offers')
    .selectAll()
    .where('id', '=', token.offer_id)
    .executeTakeFirstOrThrow();
  return {
    tokenHash,
    offerId: token.offer_id,
    sealedClaims: token.sealed_claims,
    dpopThumbprint: token.dpop_thumbprint,
    expiresAt: token.expires_at,
    issued: token.issued,
    offer: offerOf(offer),
  };
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
