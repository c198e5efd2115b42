import type { ColumnType } from 'kysely';

type Json<T> = ColumnType<T, string, string>;

/** What happened in a rehearsal beside its sealed steps. */
export interface RehearsalNote {
  /** ISO 8601, UTC. */
  readonly at: string;
  readonly kind: 'info' | 'error';
  readonly message: string;
}

interface SandboxTable {
  organization_id: string;
  register_id: string;
  created_at: Date;
}

/** A walk through the workflow of a draft. What its steps did is read from the ledger. */
export interface RehearsalTable {
  id: string;
  organization_id: string;
  draft_id: string;
  blueprint_id: string;
  /** Of the draft, as it was at the start. */
  exec_def_hash: string;
  /** InProgress, Passed, Failed or Abandoned. */
  status: string;
  started_by: string;
  /** Number of roles, each with a wallet of its own. */
  roles: number;
  /** Null until the copy of the definition is published and the instance exists, as the next three. */
  register_id: string | null;
  publication_tx_id: string | null;
  instance_id: string | null;
  /** Wallets by participant. */
  wallets: ColumnType<Readonly<Record<string, string>> | null, string | null, string | null>;
  /** The role that was chosen last. */
  acting_role: string | null;
  /** Sealed steps when it was chosen; behind more of them the role follows the workflow again. */
  acting_since: number;
  notes: Json<readonly RehearsalNote[]>;
  started_at: Date;
  /** Of the last request that changed something. */
  touched_at: Date;
  ended_at: Date | null;
  wallets_erased_at: Date | null;
}

export interface RehearsalTables {
  sandboxes: SandboxTable;
  rehearsals: RehearsalTable;
}
