import type { Telemetry } from '#kit/telemetry/telemetry.ts';

/** Counters of the service, by format, status or result alone: nothing that names a person or an organisation. */
export interface Meter {
  issued(format: string, count: number): void;
  statusChanged(status: string): void;
  answered(result: 'verified' | 'failed'): void;
}

export function createMeter(telemetry: Pick<Telemetry, 'counter'>): Meter {
  const issued = telemetry.counter('credentials_issued_total', 'Credentials that were issued.', ['format']);
  const changed = telemetry.counter('status_changes_total', 'Changes of the status of credentials.', [
    'status',
  ]);
  const answered = telemetry.counter('presentations_total', 'Answers of wallets to requests, by verdict.', [
    'result',
  ]);
  return {
    issued: (format, count) => issued.inc({ format }, count),
    statusChanged: (status) => changed.inc({ status }),
    answered: (result) => answered.inc({ result }),
  };
}
