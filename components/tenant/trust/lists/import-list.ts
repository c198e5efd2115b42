import { isAppError } from '#core/errors/errors.ts';
import type { Caller } from '#core/identity/claims.ts';
import { SYSTEM_ORGANIZATION_ID } from '#core/identity/well-known.ts';
import type { Clock } from '#kit/clock/clock.ts';
import { type Database, isUniqueViolation } from '#kit/db/db.ts';
import { type Outbound, OutboundError } from '#kit/outbound/outbound.ts';
import { appendAudit } from '../../audit/log/store.ts';
import type { TenantDatabase } from '../../database/schema.ts';
import { refusal } from '../../errors.ts';
import { auditOf } from '../../organizations/status.ts';
import type { Origin } from '../../requests/origin.ts';
import type { ListReader } from './reading/reader.ts';
import type { Snapshot } from './snapshot.ts';
import { findActive, insertSnapshot, lockTrustList, removeVersions } from './store.ts';
import type { ReadList } from './values/list.ts';

/** Bytes of a list, uploaded or fetched. */
export const MAX_LIST_BYTES = 10_485_760;
const fetchTimeoutMs = 10_000;

export interface TrustListDeps {
  readonly db: Database<TenantDatabase>;
  readonly clock: Clock;
  readonly reader: ListReader;
  readonly door: Outbound;
  /** Stale lists are refused. */
  readonly strictFreshness: boolean;
}

/** The actor and origin of a change. */
interface Actor {
  readonly by: Caller;
  readonly origin: Origin;
}

interface ListImport extends Actor {
  readonly trustListId: string;
  readonly source: { readonly document: Buffer } | { readonly url: string };
  /** SHA-256 of the certificate of the expected signer, hex. */
  readonly expectedSignerSha256: string | undefined;
  /** A person has confirmed that the signer may be another one. */
  readonly confirmNewSigner: boolean;
}

/**
 * Verifies a trust list and makes it the active version. The first version of a list needs the expected signer or a
 * confirmation; a later one is signed by the signer of the active version, or needs one of the two again.
 *
 * @throws TRUSTLIST_MALFORMED, TRUSTLIST_SIGNATURE_INVALID, TRUSTLIST_SOURCE_UNAVAILABLE, TRUSTLIST_SEQUENCE_REGRESSION,
 * TRUSTLIST_IMPORT_BUSY
 */
export async function importTrustList(deps: TrustListDeps, request: ListImport): Promise<Snapshot> {
  try {
    return await importOf(deps, request);
  } catch (error) {
    if (isAppError(error, 'invalid') || isAppError(error, 'conflict')) {
      await recordRefusal(deps, request, error.code);
    }
    throw error;
  }
}

async function importOf(deps: TrustListDeps, request: ListImport): Promise<Snapshot> {
  const { trustListId, source } = request;
  const signerSha256 = acceptedSigner(request, await findActive(deps.db.read, trustListId));
  const document = 'url' in source ? await fetchList(deps.door, source.url) : source.document;
  const list = await deps.reader.read(document, { signerSha256, nowMs: deps.clock.nowMs() });
  return deps.db
    .transact(async (tx) => {
      await lockTrustList(tx, trustListId);
      const active = await findActive(tx, trustListId);
      assertSigner(list, acceptedSigner(request, active));
      if (active !== undefined && list.sequenceNumber <= active.sequenceNumber) throw regression(active);
      const snapshot = snapshotOf(request, list, deps.clock.nowMs());
      await insertSnapshot(tx, snapshot, { format: list.format, document, anchors: list.anchors });
      await appendAudit(tx, imported(request, snapshot));
      return snapshot;
    })
    .catch((cause: unknown) => {
      throw isUniqueViolation(cause) ? refusal('TRUSTLIST_SEQUENCE_REGRESSION', { cause }) : cause;
    });
}

/** The signer that an import must have; undefined: any. */
function acceptedSigner(request: ListImport, active: Snapshot | undefined): string | undefined {
  const { expectedSignerSha256, confirmNewSigner } = request;
  if (expectedSignerSha256 !== undefined) return expectedSignerSha256;
  if (confirmNewSigner) return undefined;
  if (active === undefined) {
    throw refusal('TRUSTLIST_SIGNATURE_INVALID', {
      message: 'The first import of a trust list needs expectedSignerSha256 or confirmNewSigner.',
    });
  }
  return active.signerThumbprint;
}

/** The active version may have changed while the list was read. */
function assertSigner({ signer }: ReadList, accepted: string | undefined): void {
  if (accepted !== undefined && signer.thumbprint !== accepted) throw refusal('TRUSTLIST_SIGNATURE_INVALID');
}

function regression({ sequenceNumber }: Snapshot) {
  return refusal('TRUSTLIST_SEQUENCE_REGRESSION', {
    message: `The sequence number of the trust list must exceed ${sequenceNumber}.`,
  });
}

async function fetchList(door: Outbound, url: string): Promise<Buffer> {
  const limits = { timeoutMs: fetchTimeoutMs, maxBytes: MAX_LIST_BYTES };
  try {
    const { status, body } = await door.send(url, { limits });
    if (status === 200) return body;
  } catch (cause) {
    if (!(cause instanceof OutboundError)) throw cause;
    throw refusal('TRUSTLIST_SOURCE_UNAVAILABLE', { message: `No trust list: ${cause.message}.`, cause });
  }
  throw refusal('TRUSTLIST_SOURCE_UNAVAILABLE', { message: 'No trust list: the server does not have it.' });
}

function snapshotOf({ trustListId, source }: ListImport, list: ReadList, importedAtMs: number): Snapshot {
  return {
    trustListId,
    sequenceNumber: list.sequenceNumber,
    status: 'Active',
    schemeTerritory: list.schemeTerritory,
    schemeOperatorName: list.schemeOperatorName,
    listIssueAtMs: list.listIssueAtMs,
    nextUpdateAtMs: list.nextUpdateAtMs,
    signerSubject: list.signer.subjectDn,
    signerThumbprint: list.signer.thumbprint,
    importedAtMs,
    sourceUrl: 'url' in source ? source.url : undefined,
    documentSha256: list.documentSha256,
    rootCount: list.anchors.length,
    extracted: list.extracted,
    skipped: list.skipped,
  };
}

function imported(request: ListImport, snapshot: Snapshot) {
  const { trustListId, sequenceNumber, signerThumbprint, documentSha256, rootCount, sourceUrl } = snapshot;
  return auditOf(SYSTEM_ORGANIZATION_ID, 'TrustListImported', {
    ...actOf(request, snapshot.importedAtMs),
    details: { trustListId, sequenceNumber, signerThumbprint, documentSha256, rootCount, sourceUrl },
  });
}

const actOf = ({ by, origin }: Actor, atMs: number) => ({ by, origin, atMs });

async function recordRefusal(deps: TrustListDeps, request: ListImport, reason: string): Promise<void> {
  const { trustListId, source } = request;
  const details = { trustListId, reason, ...('url' in source && { sourceUrl: source.url }) };
  const event = auditOf(SYSTEM_ORGANIZATION_ID, 'TrustListImported', {
    ...actOf(request, deps.clock.nowMs()),
    details,
  });
  await deps.db.transact((tx) => appendAudit(tx, { ...event, success: false }));
}

/** Removes all versions of a trust list with their documents. @throws TRUSTLIST_UNAVAILABLE */
export async function removeTrustList(
  deps: Pick<TrustListDeps, 'db' | 'clock'>,
  removal: Actor & { readonly trustListId: string },
): Promise<void> {
  const { trustListId } = removal;
  await deps.db.transact(async (tx) => {
    await lockTrustList(tx, trustListId);
    const versions = await removeVersions(tx, trustListId);
    if (versions === 0) throw refusal('TRUSTLIST_UNAVAILABLE');
    const act = { ...actOf(removal, deps.clock.nowMs()), details: { trustListId, versions } };
    await appendAudit(tx, auditOf(SYSTEM_ORGANIZATION_ID, 'TrustListRemoved', act));
  });
}
