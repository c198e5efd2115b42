import type { Skipped } from './values/list.ts';

/** One version of a trust list, without its document and anchors. */
export interface Snapshot {
  readonly trustListId: string;
  readonly sequenceNumber: number;
  readonly status: 'Active' | 'Superseded';
  readonly schemeTerritory: string | undefined;
  readonly schemeOperatorName: string;
  readonly listIssueAtMs: number;
  readonly nextUpdateAtMs: number | undefined;
  readonly signerSubject: string;
  /** SHA-256 of the signer's certificate, hex. */
  readonly signerThumbprint: string;
  readonly importedAtMs: number;
  /** Absent: it was uploaded. */
  readonly sourceUrl: string | undefined;
  readonly documentSha256: string;
  readonly rootCount: number;
  readonly extracted: number;
  readonly skipped: Skipped;
}
