import type { ColumnType } from 'kysely';

type Json<T> = ColumnType<T, string, string>;

/** A request for presentations. */
interface PresentationRequestTable {
  id: string;
  /** The creator, which alone reads the result. */
  created_by: string;
  /** Organisation of the creator; null for a service without one. */
  organization_id: string | null;
  status: 'Pending' | 'Verified' | 'Failed' | 'Expired';
  /** What is asked, as JSON (`RequestTerms`). */
  terms: Json<unknown>;
  nonce: string;
  state: string;
  client_id: string;
  /** Private key that an encrypted answer is opened with, as JWK; null where none is asked for, and once it ended. */
  decryption_key: Json<unknown> | null;
  redirect_uri: string | null;
  /** SHA-256 of the code that releases the result; null when it is released. */
  response_code_hash: Buffer | null;
  /** The verdict without claims, as JSON. */
  verdict: Json<unknown> | null;
  /** Verified claims by query, as JSON; null when they were erased. */
  claims: Json<unknown> | null;
  created_at: Date;
  expires_at: Date;
  answered_at: Date | null;
}

export interface VerifierTables {
  presentation_requests: PresentationRequestTable;
}
