import { refusalOf } from '#kit/http/http.ts';
import type { Runtime } from '#kit/lifecycle/lifecycle.ts';
import { reasonOf } from './errors.ts';

/** Counters and log lines of the issuer: one function for each event. */
export interface IssuerEvents {
  issued(clientId: string, expiresAtMs: number): void;
  /** Internal errors are logged by the listener. */
  refused(error: unknown, address: string): void;
}

/** Counters `svids_total` by client id and `refusals_total` by reason. */
export function createIssuerEvents({ telemetry, log }: Runtime): IssuerEvents {
  const issued = telemetry.counter('svids_total', 'SVIDs given, by client id.', ['client_id']);
  const refused = telemetry.counter('refusals_total', 'Requests refused, by reason.', ['reason']);
  return {
    issued: (clientId, expiresAtMs) => {
      issued.inc({ client_id: clientId });
      log.debug({ clientId, expiresAt: new Date(expiresAtMs).toISOString() }, 'svid issued');
    },
    refused: (error, address) => {
      const reason = reasonOf(error);
      refused.inc({ reason });
      if (refusalOf(error).fault !== undefined) return;
      const cause = error instanceof Error && typeof error.cause === 'string' ? error.cause : undefined;
      log.warn({ reason, address, cause: cause?.slice(0, 512) }, 'svid refused');
    },
  };
}
