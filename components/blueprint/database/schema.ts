import type { ColumnType, Generated } from 'kysely';
import type { FileTables } from './file-tables.ts';
import type { InstanceTables } from './instance-tables.ts';
import type { OperationTables } from './operation-tables.ts';
import type { RehearsalTables } from './rehearsal-tables.ts';

type Json<T> = ColumnType<T, string, string>;

/** The publication that a draft was made from. */
export interface DraftSource {
  readonly registerId: string;
  readonly blueprintId: string;
  readonly publicationTxId: string;
  /** Number of the source among the publications of its blueprint, for people. */
  readonly ordinal: number;
}

interface DraftTable {
  draft_no: Generated<string>;
  organization_id: string;
  /** Names the draft in its organisation: the id of its blueprint, or a UUID for a draft of a publication. */
  id: string;
  blueprint_id: string;
  title: string;
  description: string;
  participant_count: number;
  action_count: number;
  /** JSON text without the members that the service adds. */
  definition: string;
  exec_def_hash: string;
  revision: number;
  source: Json<DraftSource> | null;
  created_at: Date;
  updated_at: Date;
  deleted_at: Date | null;
}

/** A sealed publication. */
export interface PublicationTable {
  register_id: string;
  publication_tx_id: string;
  blueprint_id: string;
  ordinal: number;
  exec_def_hash: string;
  structural_hash: string;
  published_by: string;
  /** Time of the docket, as the ledger writes it. */
  published_at: string;
  docket_number: string | number;
  position: number;
  /** JSON text of the published form. */
  definition: string;
}

/** The last publication that was read of a register. */
interface PublicationCursorTable {
  register_id: string;
  docket_number: string | number;
  position: number;
}

interface RehearsalPassTable {
  id: string;
  organization_id: string;
  blueprint_id: string;
  exec_def_hash: string;
  rehearsal_id: string;
  passed_at: Date;
  passed_by: string;
}

interface SubmittedPublicationTable {
  register_id: string;
  publication_tx_id: string;
  blueprint_id: string;
  organization_id: string;
  published_at: Date;
}

interface PublishOverrideTable {
  id: string;
  organization_id: string;
  blueprint_id: string;
  register_id: string;
  exec_def_hash: string;
  publication_tx_id: string;
  overridden_by_platform_user_id: string;
  overridden_at: Date;
  reason: string | null;
}

export interface BlueprintDatabase extends InstanceTables, OperationTables, RehearsalTables, FileTables {
  drafts: DraftTable;
  publications: PublicationTable;
  publication_cursors: PublicationCursorTable;
  rehearsal_passes: RehearsalPassTable;
  submitted_publications: SubmittedPublicationTable;
  publish_overrides: PublishOverrideTable;
}
