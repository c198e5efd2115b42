import type { Telemetry } from '#kit/telemetry/telemetry.ts';
import type { PeerEvidence } from './chain/consensus/evidence.ts';
import type { RegisterChain } from './chain/sealing/register-chain.ts';
import type { SealingMetrics } from './chain/sealing/register-options.ts';
import type { KeyEvent } from './intake/lookup/key-loader.ts';
import type { PeeringMetrics } from './network/peering/options.ts';

interface ValidatorMetrics extends SealingMetrics, PeeringMetrics {
  /** The keys of a register were loaded or dropped. */
  keyEvent(event: KeyEvent): void;
  /** The keys of a register called a transaction new that was not. */
  keysDisagreed(): void;
  /** One submission was answered: `added`, `known` or the code of the refusal. */
  submissionAnswered(outcome: string): void;
  /** A proposal to suspend another validator was opened here. */
  suspensionProposed(): void;
  /** The volume lacked this many dockets of a register when the process started. */
  volumeBehind(dockets: number): void;
}

/** Every kind starts at zero, so that the series exists before the first event. */
const evidenceKinds: readonly PeerEvidence['kind'][] = [
  'duplicate-proposal',
  'duplicate-vote',
  'conflicting-certificate',
];

/** Values that are read when the metrics are scraped. */
interface MeasuredState {
  registers(): Iterable<RegisterChain>;
  clockAheadMs(): number | undefined;
  isFull(): boolean;
  evidenceHeld(): number;
  keyBytes(): number;
  /** Questions about transactions so far. */
  answered(): { readonly keys: number; readonly register: number };
  /** Judges answers that could not be compared when they came. */
  settleShadow(): void;
}

/** The validator's counters. */
export function createMetrics(telemetry: Telemetry): ValidatorMetrics {
  const submissions = telemetry.counter('submissions_total', 'Submissions answered', ['outcome']);
  const dockets = telemetry.counter('dockets_decided_total', 'Dockets decided');
  const rounds = telemetry.counter('rounds_total', 'Consensus rounds of decided dockets');
  const sealed = telemetry.counter('transactions_stored_total', 'Transactions in stored dockets');
  const equivocations = telemetry.counter(
    'consensus_equivocations_total',
    'Proven equivocations, each position counted once',
    ['kind'],
  );
  for (const kind of evidenceKinds) equivocations.inc({ kind }, 0);
  const suspensions = telemetry.counter(
    'suspension_proposals_total',
    'Proposals to suspend a validator that this one opened',
  );
  const peerFaults = telemetry.counter('peer_faults_total', 'Faulty messages of other validators', [
    'reason',
  ]);
  const behind = telemetry.counter(
    'volume_behind_dockets_total',
    'Dockets that the volume lacked when the process started',
  );
  return {
    ...countKeys(telemetry),
    submissionAnswered: (outcome) => submissions.inc({ outcome }),
    volumeBehind: (dockets) => behind.inc(dockets),
    decided: (_transactions, needed) => {
      dockets.inc();
      rounds.inc(needed);
    },
    stored: (transactions) => sealed.inc(transactions),
    equivocation: (kind) => equivocations.inc({ kind }),
    suspensionProposed: () => suspensions.inc(),
    peerFault: (reason) => peerFaults.inc({ reason }),
  };
}

/** Counters of the keys of registers. */
function countKeys(telemetry: Telemetry): Pick<ValidatorMetrics, 'keyEvent' | 'keysDisagreed'> {
  const events = telemetry.counter('key_filter_events_total', 'Keys of a register loaded or dropped', [
    'event',
  ]);
  const disagreements = telemetry.counter(
    'key_filter_disagreements_total',
    'Transactions that the keys of a register called new and the register service did not',
  );
  return {
    keyEvent: (event) => events.inc({ event }),
    keysDisagreed: () => disagreements.inc(),
  };
}

/** Registers the validator's gauges, which are computed when the metrics are scraped. */
export function observeState(telemetry: Telemetry, measured: MeasuredState): void {
  const evidence = telemetry.gauge('evidence_held', 'Pieces of evidence in the log');
  Object.assign(evidence, { collect: () => evidence.set(measured.evidenceHeld()) });
  const halted = telemetry.gauge('registers_halted', 'Registers that this validator has halted');
  Object.assign(halted, { collect: () => halted.set(countHalted(measured.registers())) });
  const waiting = telemetry.gauge('pool_transactions', 'Waiting transactions');
  const collect = () => {
    let count = 0;
    for (const register of measured.registers()) count += register.pool.size;
    waiting.set(count);
  };
  Object.assign(waiting, { collect });
  const ahead = telemetry.gauge('clock_ahead_seconds', 'How far this clock is ahead of the other validators');
  Object.assign(ahead, { collect: () => ahead.set((measured.clockAheadMs() ?? 0) / 1_000) });
  const questions = telemetry.counter(
    'lookup_questions_total',
    'Questions whether a transaction is sealed or repeats a sealed one, by who answered them',
    ['by'],
  );
  const collectQuestions = () => {
    questions.reset();
    for (const [by, count] of Object.entries(measured.answered())) questions.inc({ by }, count);
  };
  Object.assign(questions, { collect: collectQuestions });
  const keys = telemetry.gauge('key_filter_bytes', 'Memory of the keys of all registers');
  const collectKeys = () => {
    measured.settleShadow();
    keys.set(measured.keyBytes());
  };
  Object.assign(keys, { collect: collectKeys });
  const full = telemetry.gauge('disk_full', '1 while the volume of the log is full');
  Object.assign(full, { collect: () => full.set(measured.isFull() ? 1 : 0) });
}

function countHalted(registers: Iterable<RegisterChain>): number {
  let count = 0;
  for (const { status } of registers) if (status === 'Halted') count += 1;
  return count;
}
