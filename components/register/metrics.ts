import type { Telemetry } from '#kit/telemetry/telemetry.ts';
import type { WriteDeps } from './ledger/writing/write.ts';

/** Measures writes: dockets by outcome, duration, and sealed transactions. */
export function measureWrites(telemetry: Telemetry): WriteDeps['onResult'] {
  const dockets = telemetry.counter('dockets_total', 'Dockets that validators asked to store.', ['outcome']);
  const sealed = telemetry.counter('transactions_sealed_total', 'Transactions of stored dockets.');
  const duration = telemetry.histogram('docket_write_seconds', 'Time to verify and store a docket.');
  return (outcome, seconds, transactions) => {
    dockets.inc({ outcome });
    duration.observe(seconds);
    if (outcome === 'stored') sealed.inc(transactions);
  };
}

/** Reports whether the system register and its initial blueprints exist: 1, else 0. */
export function measureSystemRegister(telemetry: Telemetry): (isReady: boolean) => void {
  const ready = telemetry.gauge('system_register_ready', 'Whether the system register is ready.');
  return (isReady) => ready.set(isReady ? 1 : 0);
}
