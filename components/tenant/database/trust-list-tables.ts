import type { ColumnType } from 'kysely';

/** How many services and certificates of a list made no anchor, by reason. */
interface SkippedCounts {
  readonly type: number;
  readonly status: number;
  readonly expired: number;
  readonly notCa: number;
  readonly unparsable: number;
}

/** A version of a trust list. One of a list is Active. */
interface TrustListSnapshotTable {
  trust_list_id: string;
  sequence_number: string | number;
  status: string;
  format: string;
  scheme_territory: string | null;
  scheme_operator_name: string;
  list_issue_at: Date;
  next_update_at: Date | null;
  signer_subject: string;
  /** SHA-256 of the signer's certificate, hex. */
  signer_thumbprint: string;
  imported_at: Date;
  /** Null: it was uploaded. */
  source_url: string | null;
  /** The list as it was received. */
  document: Buffer;
  document_sha256: string;
  root_count: number;
  extracted: number;
  skipped: ColumnType<SkippedCounts, string, string>;
}

interface TrustListAnchorTable {
  trust_list_id: string;
  sequence_number: string | number;
  /** In the order of the list. */
  position: number;
  thumbprint: string;
  der: Buffer;
  subject_dn: string;
  service_type: string;
  service_status: string | null;
  not_before: Date;
  not_after: Date;
}

export interface TrustListTables {
  trust_list_snapshots: TrustListSnapshotTable;
  trust_list_anchors: TrustListAnchorTable;
}
