import type { X509Certificate } from 'node:crypto';
import type { Clock } from '#kit/clock/clock.ts';
import type { Logger } from '#kit/log/log.ts';
import { openWorkload } from './client.ts';
import type { Workload } from './identity.ts';
import { parseSpiffeId, readNodeCertificate } from './svid.ts';

export type { Svid, Workload } from './identity.ts';
export type { SpiffeName, SvidFacts } from './svid.ts';

export interface WorkloadOptions {
  /** Path of the Workload API's unix socket, with or without `unix:` in front. */
  readonly socket: string;
  readonly log: Logger;
  readonly clock: Clock;
  /** How long the first SVID may take, milliseconds. Default 30000. */
  readonly firstSvidTimeoutMs?: number;
}

/**
 * Opens the SPIFFE Workload API (FetchX509SVID) and resolves with the first SVID in hand. The stream is reopened for
 * ever with growing pauses, also after PermissionDenied (no identity registered yet); every message is a full
 * snapshot that replaces the one before (SPIFFE Workload API standard, sections 4 and 5).
 *
 * Errors: unavailable/WORKLOAD_IDENTITY_MISSING when no SVID came in time.
 */
export function connectWorkload(options: WorkloadOptions): Promise<Workload> {
  return openWorkload(options);
}

/**
 * The SPIFFE id in a certificate's one URI SAN, read from the ASN.1; the certificate must be a leaf (CA:FALSE) whose
 * key usage has digitalSignature.
 *
 * Errors: unauthenticated/SVID_REFUSED.
 */
export function spiffeIdOf(certificate: X509Certificate): string {
  return readNodeCertificate(certificate).id;
}

/**
 * `spiffe://{installation}/service/{client_id}` (decision D28).
 *
 * Errors: unauthenticated/SVID_REFUSED when the parts do not make a SPIFFE id.
 */
export function serviceSpiffeId(installation: string, clientId: string): string {
  return parseSpiffeId(`spiffe://${installation}/service/${clientId}`).id;
}
