import type { X509Certificate } from 'node:crypto';
import { AppError } from '#core/errors/errors.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Logger } from '#kit/log/log.ts';
import type { Telemetry } from '#kit/telemetry/telemetry.ts';
import type { Svid, Workload, WorkloadSource } from './identity.ts';
import { IssuerClient } from './issuer-client.ts';
import { parseSpiffeId, readNodeCertificate } from './svid.ts';
import { identityMissing, SvidHolder } from './svid-holder.ts';
import { WorkloadApiStream } from './workload-api.ts';

export type { IssuerCredentials, IssuerSource, Svid, Workload, WorkloadSource } from './identity.ts';

const defaultFirstSvidTimeoutMs = 30_000;

type WorkloadOptions = WorkloadSource & {
  readonly log: Logger;
  readonly clock: Clock;
  /** Maximum wait for the first SVID, milliseconds. Default 30000. */
  readonly firstSvidTimeoutMs?: number;
};

/**
 * Resolves with the first SVID and keeps it current.
 *
 * From a Workload API (FetchX509SVID): the stream is reopened without limit and with growing pauses, also after
 * PermissionDenied (no identity registered yet); every message is a full snapshot that replaces the one before (SPIFFE
 * Workload API standard, sections 4 and 5). From an issuer: a new key and SVID at half of the life of the previous one,
 * retried with growing pauses. Either way the current SVID stays in use while its source is away.
 *
 * Errors: unavailable/WORKLOAD_IDENTITY_MISSING when no SVID came in time.
 */
export async function connectWorkload(options: WorkloadOptions): Promise<Workload> {
  const { log } = options;
  const holder = new SvidHolder(log);
  const transport =
    'socket' in options
      ? new WorkloadApiStream(options.socket, holder, log)
      : new IssuerClient({ source: options.issuer, log, clock: options.clock }, holder);
  const stop = () => {
    transport.stop();
    holder.stop();
  };
  const timeoutMs = options.firstSvidTimeoutMs ?? defaultFirstSvidTimeoutMs;
  const { promise: late, resolve: giveUp } = Promise.withResolvers<undefined>();
  const timer = setTimeout(() => giveUp(undefined), timeoutMs);
  const first = await Promise.race([holder.first, late]);
  clearTimeout(timer);
  if (first === undefined) {
    stop();
    const from = 'socket' in options ? `the Workload API at ${options.socket}` : options.issuer.url;
    throw identityMissing(`no X.509-SVID from ${from} within ${timeoutMs} ms (${holder.lastProblem})`);
  }
  const { id, trustDomain } = parseSpiffeId(first.id);
  return {
    id,
    trustDomain,
    current: () => holder.get(),
    onRotate: (callback) => holder.onRotate(callback),
    stop,
  };
}

/** Settings that select the source of a process's identity; exactly one of the two sources is set. */
export interface IdentityConfig {
  readonly CHANCERY_INSTALLATION: string;
  readonly SPIFFE_ENDPOINT_SOCKET?: string | undefined;
  readonly CHANCERY_IDENTITY_ISSUER?: string | undefined;
  readonly CHANCERY_IDENTITY_TOKEN_FILE: string;
  readonly CHANCERY_IDENTITY_CA_FILE: string;
}

/**
 * The source that the settings name.
 *
 * Errors: invalid/IDENTITY_SOURCE without any, which loadConfig refuses before.
 */
export function workloadOf(config: IdentityConfig): WorkloadSource {
  if (config.SPIFFE_ENDPOINT_SOCKET !== undefined) return { socket: config.SPIFFE_ENDPOINT_SOCKET };
  if (config.CHANCERY_IDENTITY_ISSUER === undefined) {
    throw new AppError('invalid', 'IDENTITY_SOURCE', 'no setting says where the identity comes from');
  }
  return {
    issuer: {
      url: config.CHANCERY_IDENTITY_ISSUER,
      installation: config.CHANCERY_INSTALLATION,
      tokenFile: config.CHANCERY_IDENTITY_TOKEN_FILE,
      caFile: config.CHANCERY_IDENTITY_CA_FILE,
    },
  };
}

interface IdentityWatch {
  readonly clock: Clock;
  readonly telemetry: Telemetry;
}

/**
 * A readiness check that fails once the SVID has expired, because every peer then refuses the process's calls. The
 * gauge `identity_expiry_timestamp_seconds` gives the time of expiry, so that an unavailable source is noticed before.
 */
export function identityCheck(
  workload: { current(): Pick<Svid, 'expiresAtMs'> },
  { clock, telemetry }: IdentityWatch,
) {
  telemetry.gauge(
    'identity_expiry_timestamp_seconds',
    'When the SVID in hand ends, seconds since the epoch',
    () => workload.current().expiresAtMs / 1_000,
  );
  return {
    name: 'identity',
    check: () => {
      if (workload.current().expiresAtMs > clock.nowMs()) return;
      throw new AppError('unavailable', 'WORKLOAD_IDENTITY_EXPIRED', 'the identity has expired');
    },
  };
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
 * `spiffe://{installation}/service/{client_id}`.
 *
 * Errors: unauthenticated/SVID_REFUSED when the parts do not make a SPIFFE id.
 */
export function serviceSpiffeId(installation: string, clientId: string): string {
  return parseSpiffeId(`spiffe://${installation}/service/${clientId}`).id;
}
