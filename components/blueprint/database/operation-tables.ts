import type { ColumnType } from 'kysely';

type Json<T> = ColumnType<T | null, string | null, string | null>;

/** Why an operation failed. */
export interface OperationFailure {
  readonly code: string;
  readonly message: string;
  /** Number of the step that failed. */
  readonly step: number;
}

/** A step of an instance that a caller asked for. */
export interface OperationTable {
  id: string;
  /** Action or Rejection. */
  kind: string;
  instance_id: string;
  register_id: string;
  blueprint_id: string;
  action_id: number;
  action_title: string;
  wallet: string;
  /** Platform user, or client id of a service. */
  owner: string;
  organization_id: string | null;
  status: string;
  current_step: number;
  percent: number;
  recipient_count: number;
  warnings: Json<readonly string[]>;
  /** Sealed under the key of the service; null at the end. */
  sealed_input: Buffer | null;
  sealed_delegation: Buffer | null;
  delegation_expires_at: Date;
  /** The transaction before it is signed, with its payload; null at the end. */
  draft: Buffer | null;
  /** JSON text of the signed transaction: the bytes that are sent. */
  submission: Buffer | null;
  tx_id: string | null;
  /** Moment after which the transaction cannot be sealed. */
  expires_at: Date | null;
  is_accepted: boolean;
  error: Json<OperationFailure>;
  /** Evaluations behind other steps that were first. */
  forks: number;
  /** Passes that failed in a row. */
  attempts: number;
  lease_owner: string | null;
  lease_until: Date | null;
  next_attempt_at: Date;
  created_at: Date;
  updated_at: Date;
  completed_at: Date | null;
}

export interface OperationTables {
  operations: OperationTable;
}
