import type { ColumnType, Insertable } from 'kysely';

type Json<T> = ColumnType<T, string, string>;
/** int8 columns are read as numbers while they are safe integers. */
type Count = ColumnType<number, number, number>;

/** An instance as its sealed steps leave it. */
export interface InstanceTable {
  register_id: string;
  instance_id: string;
  publication_tx_id: string;
  blueprint_id: string;
  first_tx_id: string;
  last_tx_id: string;
  /** Of the last step. */
  seq: number;
  /** Of the last step; canonical JSON. */
  routing: string;
  /** Active, Completed or Failed. A deadline that has passed is judged when the row is read. */
  state: string;
  state_reason: string | null;
  /** Actions taken, without rejections. */
  completed_count: number;
  started_at: Date;
  updated_at: Date;
  completed_at: Date | null;
  /** Moment after which no current action can be taken; null while one of them has no deadline. */
  times_out_at: Date | null;
}

/** A sealed step. */
interface StepTable {
  register_id: string;
  tx_id: string;
  instance_id: string;
  seq: number;
  action_id: number;
  /** Action or Rejection. */
  type: string;
  sender: string;
  docket_number: Count;
  position: number;
  sealed_at: Date;
  routing: string;
}

interface InstanceRoleTable {
  register_id: string;
  instance_id: string;
  participant_id: string;
  wallet: string;
}

/** The first position of a register that was not read yet. */
interface StepCursorTable {
  register_id: string;
  docket_number: Count;
  position: number;
  /** Number of times that the rows of the register were rebuilt. */
  rebuilds: ColumnType<number, never, number>;
  /** While they are rebuilt, the position that they had been read up to before. */
  rebuild_docket: ColumnType<number | null, never, number | null>;
  rebuild_position: ColumnType<number | null, never, number | null>;
  /** When the rows were made from instances that were not started in this database. */
  restored_at: ColumnType<Date | null, never, Date | null>;
}

/** An instance as it was created here. */
export interface InstanceStartTable {
  instance_id: string;
  register_id: string;
  publication_tx_id: string;
  blueprint_id: string;
  /** Wallets of open roles, by participant. */
  participant_wallets: Json<Readonly<Record<string, string>>>;
  tenant_id: string;
  metadata: Json<Readonly<Record<string, string | number | boolean>>>;
  /** Platform user, or client id of a service. */
  created_by: string;
  organization_id: string | null;
  created_at: Date;
  /** The operation that has reserved the first step. */
  start_operation: string | null;
  cancelled_at: Date | null;
  cancel_reason: string | null;
}

/** Tables of instances. */
export interface InstanceTables {
  instances: InstanceTable;
  steps: StepTable;
  instance_roles: InstanceRoleTable;
  step_cursors: StepCursorTable;
  instance_starts: InstanceStartTable;
}

/** Rows that the projection writes. */
export type InstanceRow = Insertable<InstanceTable>;
export type StepRow = Insertable<StepTable>;
export type RoleRow = Insertable<InstanceRoleTable>;
