import { parseTimestamp } from '#core/encoding/timestamp.ts';
import { validationViolation } from '#core/errors/validation-codes.ts';
import type { Clock } from '#kit/clock/clock.ts';
import { nextTimestamp } from '../../chain/building/docket.ts';
import { judgeAlone } from '../../chain/building/overlay.ts';
import type { LookupAnswer } from '../../chain/keys/lookup.ts';
import { judgeWorkflow } from '../../chain/pool/step.ts';
import type { PooledTransaction } from '../../chain/pool/transaction.ts';
import type { RegisterChain } from '../../chain/sealing/register-chain.ts';
import { notReady } from '../../chain/sealing/status.ts';
import type { PinnedWorkflow } from '../../chain/workflows/pinned-workflows.ts';
import { resolveStep } from '../../chain/workflows/resolve.ts';
import { failure } from '../../errors.ts';
import { type Candidate, judgeChain, judgeLabel, judgeReplay, refuseIf } from '../verification/judge.ts';
import { poolFull } from './answer.ts';
import { findPredecessor, findReplay } from './duplicates.ts';

/** What was looked up about a candidate. */
export interface InsertFacts {
  readonly answer: LookupAnswer | undefined;
  /** The workflow of a step; undefined when its pin is unknown. */
  readonly pinned: PinnedWorkflow | undefined;
}

/**
 * Builds the pooled transaction of a new candidate from the register's state and the lookup answer. Throws AppError when
 * the candidate may not enter the pool.
 */
export function linkCandidate(
  register: RegisterChain,
  candidate: Candidate,
  { answer, pinned, clock }: InsertFacts & { readonly clock: Clock },
): PooledTransaction {
  const { state } = register;
  if (!register.isOpen) throw notReady(register.id, register.status);
  refuseIf(judgeLabel(state, candidate));
  judgeGenesisOrder(register, candidate);
  const predecessor = findPredecessor(register, candidate, answer);
  refuseIf(judgeChain(predecessor));
  const exclusivePredecessor = predecessor?.exclusive ?? false;
  const replayKey = exclusivePredecessor ? undefined : candidate.replayKey;
  refuseIf(judgeReplay(findReplay(register, replayKey, answer)));
  if (candidate.type === 'Control') {
    refuseIf(judgeAlone(state, candidate, nextTimestamp(state, clock.nowMicros())));
  }
  const step = candidate.step && resolveStep(candidate.step, pinned, answer);
  judgeStepOf(register, { ...candidate, step }, answer, clock);
  const full = register.pool.exceededLimit(candidate.lane, candidate.senderAddress, candidate.sizeBytes);
  if (full !== undefined) throw poolFull(full);
  return { ...candidate, exclusivePredecessor, replayKey, addedAtMs: clock.nowMs(), step };
}

/** Judges a step, and what follows one, by the clock: a docket's time is not known yet. */
function judgeStepOf(
  { pool, state }: RegisterChain,
  candidate: Candidate,
  answer: LookupAnswer | undefined,
  clock: Clock,
): void {
  const { step, previousTransactionId: txId } = candidate;
  const { previousKnown = false, previousType = '', previousRouting = '' } = answer ?? {};
  if (step === undefined && previousRouting === '' && !isBehindPooledStep(pool, txId)) return;
  if (step?.context?.isPinKnown === false && pool.find(step.pin) !== undefined) {
    throw failure('VAL_CHAIN_TRANSIENT', {
      message: `The publication ${step.pin} is not stored yet; retry`,
      retryAfterSeconds: 1,
    });
  }
  const sealed =
    txId !== undefined && previousKnown
      ? { txId, type: previousType, routing: previousRouting || undefined }
      : undefined;
  const nowTicks = parseTimestamp(nextTimestamp(state, clock.nowMicros()));
  const find = (id: string) => pool.find(id)?.transaction;
  refuseIf(judgeWorkflow(candidate, { nowTicks, find, sealed }));
}

function isBehindPooledStep(pool: RegisterChain['pool'], previous: string | undefined): boolean {
  return previous !== undefined && pool.find(previous)?.transaction.step !== undefined;
}

/** A register has one genesis transaction. Nothing else is admitted before it, since the log could not tell the register's rules. */
function judgeGenesisOrder(register: RegisterChain, { type }: Candidate): void {
  if (register.state.height > 0) return;
  const [first] = register.pool.waiting();
  const hasBegun = first?.type === 'Genesis';
  if (type === 'Genesis' && hasBegun) refuseIf([validationViolation('VAL_PERM_002', 'Metadata.Type')]);
  if (type === 'Genesis' || hasBegun) return;
  throw failure('REGISTER_NOT_READY', {
    message: `Register ${register.id} has not received its genesis transaction yet; retry`,
    retryAfterSeconds: 1,
  });
}
