import { z } from 'zod';
import { encodeBase64 } from '#core/encoding/base64.ts';
import { apiTimestamp } from '#core/encoding/timestamp.ts';
import { freshnessOf } from './freshness.ts';
import type { Snapshot } from './snapshot.ts';
import type { Anchor } from './values/list.ts';

export const trustListId = z.string().regex(/^[a-z0-9-]{1,64}$/);

export const importSchema = z.object({
  trustListId,
  sourceUrl: z
    .url({ protocol: /^https?$/ })
    .max(2048)
    .optional()
    .describe('Where the list is fetched once, over https; absent in a multipart upload, which has `file`.'),
  expectedSignerSha256: z
    .string()
    .regex(/^[0-9a-fA-F]{64}$/)
    .transform((text) => text.toLowerCase())
    .optional()
    .describe('SHA-256 of the certificate that the list must be signed with, hex.'),
  confirmNewSigner: z
    .union([z.boolean(), z.stringbool({ truthy: ['true'], falsy: ['false'] })])
    .default(false)
    .describe('The signer may be one that the list did not have before.'),
});

const time = z.string().describe('ISO 8601, UTC.');
const freshness = z.enum(['Fresh', 'Stale']);
const hash = z.string().describe('SHA-256, hex.');
const count = z.int();

const snapshotShape = {
  trustListId: z.string(),
  sequenceNumber: z.int(),
  status: z.enum(['Active', 'Superseded']),
  schemeTerritory: z.string().nullable(),
  schemeOperatorName: z.string(),
  listIssueDateTime: time,
  nextUpdate: time.nullable(),
  freshness,
  rootCount: count.describe('Distinct anchors.'),
  signerCertSubject: z.string(),
  signerCertThumbprint: hash,
  source: z.string().describe('`upload`, or the address that the list was fetched from.'),
  sourceUrl: z.string().optional(),
  createdAt: time.describe('The same as importedAt.'),
  importedAt: time,
  rawDocumentSha256: hash,
  extracted: count.describe('Certificates taken, equal ones counted each.'),
  skipped: z
    .object({ type: count, status: count, expired: count, notCa: count, unparsable: count })
    .describe('What made no anchor: services by type and status, certificates by the others.'),
};

export const snapshotSchema = z.object(snapshotShape).meta({ id: 'TrustListSnapshot' });

export const detailSchema = z
  .object({
    ...snapshotShape,
    anchors: z.array(
      z.object({
        subjectDn: z.string(),
        thumbprint: hash,
        serviceType: z.string(),
        serviceStatus: z.string().nullable(),
        notBefore: time,
        notAfter: time,
      }),
    ),
    versions: z
      .array(
        z.object({
          sequenceNumber: z.int(),
          status: snapshotShape.status,
          importedAt: time,
          rawDocumentSha256: hash,
        }),
      )
      .describe('The newest first.'),
  })
  .meta({ id: 'TrustListDetail' });

export const anchorsSchema = z
  .object({
    trustListId: z.string(),
    sequenceNumber: z.int(),
    freshness,
    nextUpdate: time.nullable(),
    roots: z.array(z.string()).describe('DER, base64.'),
  })
  .meta({ id: 'TrustListAnchors' });

const timeOrNull = (ms: number | undefined) => (ms === undefined ? null : apiTimestamp(ms));

export function presentSnapshot(snapshot: Snapshot, nowMs: number): z.output<typeof snapshotSchema> {
  const importedAt = apiTimestamp(snapshot.importedAtMs);
  const { sourceUrl } = snapshot;
  return {
    trustListId: snapshot.trustListId,
    sequenceNumber: snapshot.sequenceNumber,
    status: snapshot.status,
    schemeTerritory: snapshot.schemeTerritory ?? null,
    schemeOperatorName: snapshot.schemeOperatorName,
    listIssueDateTime: apiTimestamp(snapshot.listIssueAtMs),
    nextUpdate: timeOrNull(snapshot.nextUpdateAtMs),
    freshness: freshnessOf(snapshot, nowMs),
    rootCount: snapshot.rootCount,
    signerCertSubject: snapshot.signerSubject,
    signerCertThumbprint: snapshot.signerThumbprint,
    source: sourceUrl ?? 'upload',
    ...(sourceUrl !== undefined && { sourceUrl }),
    createdAt: importedAt,
    importedAt,
    rawDocumentSha256: snapshot.documentSha256,
    extracted: snapshot.extracted,
    skipped: snapshot.skipped,
  };
}

export function presentDetail(
  active: Snapshot,
  content: { readonly anchors: readonly Anchor[]; readonly versions: readonly Snapshot[] },
  nowMs: number,
): z.output<typeof detailSchema> {
  return {
    ...presentSnapshot(active, nowMs),
    anchors: content.anchors.map((anchor) => ({
      subjectDn: anchor.subjectDn,
      thumbprint: anchor.thumbprint,
      serviceType: anchor.serviceType,
      serviceStatus: anchor.serviceStatus ?? null,
      notBefore: apiTimestamp(anchor.notBeforeMs),
      notAfter: apiTimestamp(anchor.notAfterMs),
    })),
    versions: content.versions.map((version) => ({
      sequenceNumber: version.sequenceNumber,
      status: version.status,
      importedAt: apiTimestamp(version.importedAtMs),
      rawDocumentSha256: version.documentSha256,
    })),
  };
}

export function presentAnchors(
  active: Snapshot,
  anchors: readonly Anchor[],
  nowMs: number,
): z.output<typeof anchorsSchema> {
  return {
    trustListId: active.trustListId,
    sequenceNumber: active.sequenceNumber,
    freshness: freshnessOf(active, nowMs),
    nextUpdate: timeOrNull(active.nextUpdateAtMs),
    roots: anchors.map(({ der }) => encodeBase64(der)),
  };
}
