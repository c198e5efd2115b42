import type { Telemetry } from '#kit/telemetry/telemetry.ts';
import type { PeeringMetrics } from './peering/peering.ts';
import type { Register, SealingMetrics } from './sealing/register.ts';

export interface ValidatorMetrics extends SealingMetrics, PeeringMetrics {
  /** One submission was answered: `added`, `known` or the code of the refusal. */
  judged(outcome: string): void;
}

/** The validator's counters; the pools are measured when the metrics are read. */
export function createMetrics(
  telemetry: Telemetry,
  registers: () => Iterable<Register>,
  clockAheadMs: () => number | undefined,
): ValidatorMetrics {
  const submissions = telemetry.counter('submissions_total', 'Submissions answered', ['outcome']);
  const dockets = telemetry.counter('dockets_decided_total', 'Dockets decided');
  const rounds = telemetry.counter('rounds_total', 'Consensus rounds of decided dockets');
  const sealed = telemetry.counter('transactions_stored_total', 'Transactions in stored dockets');
  const equivocations = telemetry.counter(
    'consensus_equivocations_total',
    'Conflicting signed messages seen',
  );
  const peerFaults = telemetry.counter('peer_faults_total', 'Faulty messages of other validators', [
    'reason',
  ]);
  const waiting = telemetry.gauge('pool_transactions', 'Transactions that wait');
  const collect = () => {
    let count = 0;
    for (const register of registers()) count += register.pool.size;
    waiting.set(count);
  };
  Object.assign(waiting, { collect });
  const ahead = telemetry.gauge('clock_ahead_seconds', 'How far this clock is ahead of the other validators');
  Object.assign(ahead, { collect: () => ahead.set((clockAheadMs() ?? 0) / 1_000) });
  return {
    judged: (outcome) => submissions.inc({ outcome }),
    decided: (_transactions, needed) => {
      dockets.inc();
      rounds.inc(needed);
    },
    stored: (transactions) => sealed.inc(transactions),
    equivocation: () => equivocations.inc(),
    peerFault: (reason) => peerFaults.inc({ reason }),
  };
}
