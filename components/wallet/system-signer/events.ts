import type { Telemetry } from '#kit/telemetry/telemetry.ts';

/** Counters of the signing component. Alert on a refused double sign. */
export interface SignerEvents {
  /** `kind`: control, checkpoint, proposal, prevote, precommit, attestation, rejection, possession, suspension. */
  signed(kind: string): void;
  /** `code` of the refusal. */
  refused(code: string): void;
}

export function createSignerEvents(telemetry: Telemetry): SignerEvents {
  const signatures = telemetry.counter('system_signatures_total', 'Signatures of the signing component', [
    'kind',
  ]);
  const refusals = telemetry.counter('system_refusals_total', 'Refusals of the signing component', ['code']);
  return {
    signed: (kind) => signatures.inc({ kind }),
    refused: (code) => refusals.inc({ code }),
  };
}
