import type { Transactor } from '#kit/db/db.ts';
import type { CredentialDatabase } from '../../database/schema.ts';

type DB = CredentialDatabase;

/** What a wallet pushed. */
export interface PushedRequest {
  readonly offerId: string;
  readonly clientId: string;
  readonly redirectUri: string;
  readonly codeChallenge: string;
  /** Thumbprint of the key that the code is bound to; null where the wallet named none. */
  readonly dpopThumbprint: string | null;
  /** Whether the wallet asked by `authorization_details`. */
  readonly hasDetails: boolean;
  readonly state: string | null;
  readonly sealed: Buffer;
  readonly expiresAt: Date;
}

export async function insertPushed(
  tx: Transactor<DB>,
  requestHash: Buffer,
  request: PushedRequest,
): Promise<void> {
  await tx
    .insertInto('pushed_requests')
    .values({
      request_hash: requestHash,
      offer_id: request.offerId,
      client_id: request.clientId,
      redirect_uri: request.redirectUri,
      code_challenge: request.codeChallenge,
      dpop_thumbprint: request.dpopThumbprint,
      has_details: request.hasDetails,
      state: request.state,
      sealed: request.sealed,
      expires_at: request.expiresAt,
    })
    .execute();
}

/** The request behind a request URI, locked until the transaction ends. */
export async function lockPushed(
  tx: Transactor<DB>,
  requestHash: Buffer,
): Promise<PushedRequest | undefined> {
  const row = await tx
    .selectFrom('pushed_requests')
    .selectAll()
    .where('request_hash', '=', requestHash)
    .forUpdate()
    .executeTakeFirst();
  return (
    row && {
      offerId: row.offer_id,
      clientId: row.client_id,
      redirectUri: row.redirect_uri,
      codeChallenge: row.code_challenge,
      dpopThumbprint: row.dpop_thumbprint,
      hasDetails: row.has_details,
      state: row.state,
      sealed: row.sealed,
      expiresAt: row.expires_at,
    }
  );
}

/** Uses a request up. */
export async function deletePushed(tx: Transactor<DB>, requestHash: Buffer): Promise<void> {
  await tx.deleteFrom('pushed_requests').where('request_hash', '=', requestHash).execute();
}

/** An authorization code with what it is for. */
export interface AuthorizationCode {
  readonly offerId: string;
  readonly clientId: string;
  readonly redirectUri: string;
  readonly codeChallenge: string;
  /** As of the pushed request. */
  readonly dpopThumbprint: string | null;
  readonly hasDetails: boolean;
  readonly sealedClaims: Buffer;
  readonly expiresAt: Date;
}

export async function insertCode(
  tx: Transactor<DB>,
  codeHash: Buffer,
  code: AuthorizationCode,
): Promise<void> {
  await tx
    .insertInto('authorization_codes')
    .values({
      code_hash: codeHash,
      offer_id: code.offerId,
      client_id: code.clientId,
      redirect_uri: code.redirectUri,
      code_challenge: code.codeChallenge,
      dpop_thumbprint: code.dpopThumbprint,
      has_details: code.hasDetails,
      sealed_claims: code.sealedClaims,
      expires_at: code.expiresAt,
    })
    .execute();
}

/** Takes a code: of requests at one time one gets it, and it is gone. */
export async function takeCode(tx: Transactor<DB>, codeHash: Buffer): Promise<AuthorizationCode | undefined> {
  const row = await tx
    .deleteFrom('authorization_codes')
    .where('code_hash', '=', codeHash)
    .returningAll()
    .executeTakeFirst();
  return (
    row && {
      offerId: row.offer_id,
      clientId: row.client_id,
      redirectUri: row.redirect_uri,
      codeChallenge: row.code_challenge,
      dpopThumbprint: row.dpop_thumbprint,
      hasDetails: row.has_details,
      sealedClaims: row.sealed_claims,
      expiresAt: row.expires_at,
    }
  );
}

/** A refresh token with what it is for. */
interface RefreshToken {
  readonly offerId: string;
  readonly clientId: string;
  /** Of the attested key of the wallet's instance; null for a token of an earlier build. */
  readonly clientThumbprint: string | null;
  readonly dpopThumbprint: string;
  /** Null once it was used. */
  readonly sealedClaims: Buffer | null;
  readonly expiresAt: Date;
}

export async function insertRefresh(
  tx: Transactor<DB>,
  tokenHash: Buffer,
  token: RefreshToken,
): Promise<void> {
  await tx
    .insertInto('refresh_tokens')
    .values({
      token_hash: tokenHash,
      offer_id: token.offerId,
      client_id: token.clientId,
      client_thumbprint: token.clientThumbprint,
      dpop_thumbprint: token.dpopThumbprint,
      sealed_claims: token.sealedClaims,
      expires_at: token.expiresAt,
    })
    .execute();
}

/** The token, and its offer, locked until the transaction ends: what ends the tokens of an offer waits for the new ones. */
export async function lockRefresh(tx: Transactor<DB>, tokenHash: Buffer): Promise<RefreshToken | undefined> {
  const found = tx.selectFrom('refresh_tokens').where('token_hash', '=', tokenHash);
  await tx
    .selectFrom('offers')
    .select('id')
    .where('id', 'in', found.select('offer_id'))
    .forUpdate()
    .execute();
  const row = await found.selectAll().forUpdate().executeTakeFirst();
  return (
    row && {
      offerId: row.offer_id,
      clientId: row.client_id,
      clientThumbprint: row.client_thumbprint,
      dpopThumbprint: row.dpop_thumbprint,
      sealedClaims: row.sealed_claims,
      expiresAt: row.expires_at,
    }
  );
}

/** Marks a token as used; what is sealed in it is erased. */
export async function useRefresh(tx: Transactor<DB>, tokenHash: Buffer): Promise<void> {
  await tx
    .updateTable('refresh_tokens')
    .set({ sealed_claims: null })
    .where('token_hash', '=', tokenHash)
    .execute();
}

/** Ends all tokens of an offer, whose row is locked. */
export async function endOfferTokens(tx: Transactor<DB>, offerId: string): Promise<void> {
  await tx
    .updateTable('refresh_tokens')
    .set({ sealed_claims: null })
    .where('offer_id', '=', offerId)
    .execute();
  await tx.deleteFrom('access_tokens').where('offer_id', '=', offerId).execute();
}
