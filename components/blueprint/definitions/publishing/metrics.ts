import { createTelemetry, type Telemetry } from '#kit/telemetry/telemetry.ts';

/** The meter of designers: what happens to definitions before they are published. */
export interface DesignerMeter {
  /** A rehearsal has ended. */
  rehearsed(outcome: string, seconds: number): void;
  /** A publication was made without a rehearsal. */
  overridden(hasReason: boolean): void;
  /** The sandbox register of an organisation was made. */
  sandboxMade(): void;
}

/** Counts into `chancery_designer_...` of the process's registry. */
export function createDesignerMeter({ registry }: Pick<Telemetry, 'registry'>): DesignerMeter {
  const meter = createTelemetry({ service: 'designer', registry });
  const runs = meter.counter('rehearsal_run_total', 'Rehearsals that have ended.', ['outcome']);
  const overrides = meter.counter('publish_override_total', 'Publications without a rehearsal.', [
    'reason_provided',
  ]);
  const sandboxes = meter.counter('sandbox_provision_total', 'Sandbox registers that were made.');
  const duration = meter.histogram(
    'rehearsal_duration_seconds',
    'Time from the start of a rehearsal to its end.',
    {
      labels: ['outcome'],
      buckets: [1, 5, 15, 60, 300, 900, 3_600, 14_400, 86_400],
    },
  );
  return {
    rehearsed: (outcome, seconds) => {
      runs.inc({ outcome });
      duration.observe({ outcome }, seconds);
    },
    overridden: (hasReason) => overrides.inc({ reason_provided: String(hasReason) }),
    sandboxMade: () => sandboxes.inc(),
  };
}
