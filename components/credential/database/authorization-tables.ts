/** A pushed authorization request (RFC 9126), used once. */
interface PushedRequestTable {
  /** SHA-256 of the request URI. */
  request_hash: Buffer;
  offer_id: string;
  client_id: string;
  redirect_uri: string;
  /** S256 (RFC 7636). */
  code_challenge: string;
  /** Of the key that the code will be bound to; null where the wallet named none. */
  dpop_thumbprint: string | null;
  /** Whether the wallet asked by `authorization_details`. */
  has_details: boolean;
  state: string | null;
  /** Claims and the issuer state, sealed under the request URI. */
  sealed: Buffer;
  expires_at: Date;
}

/** An authorization code (RFC 6749, section 4.1.2), used once. */
interface AuthorizationCodeTable {
  code_hash: Buffer;
  offer_id: string;
  client_id: string;
  redirect_uri: string;
  code_challenge: string;
  /** Of the key that the code is bound to; null where it is to none. */
  dpop_thumbprint: string | null;
  /** As of the pushed request. */
  has_details: boolean;
  /** Claims, sealed under the code. */
  sealed_claims: Buffer;
  expires_at: Date;
}

/** A refresh token; it is replaced with each use. */
interface RefreshTokenTable {
  token_hash: Buffer;
  offer_id: string;
  client_id: string;
  /** Of the attested key of the wallet's instance; null in rows of earlier builds. */
  client_thumbprint: string | null;
  dpop_thumbprint: string;
  /** Claims, sealed under the token; null once it was used. */
  sealed_claims: Buffer | null;
  expires_at: Date;
}

export interface AuthorizationTables {
  pushed_requests: PushedRequestTable;
  authorization_codes: AuthorizationCodeTable;
  refresh_tokens: RefreshTokenTable;
}
