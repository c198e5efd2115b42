import { isAlgorithm } from '#core/crypto/algorithm.ts';
import { encodeBase64 } from '#core/encoding/base64.ts';
import { AppError } from '#core/errors/errors.ts';
import type { Clock } from '#kit/clock/clock.ts';
import { startJob } from '#kit/clock/jobs.ts';
import type { PollLoop } from '#kit/clock/poll-loop.ts';
import type { Database } from '#kit/db/db.ts';
import type { Logger } from '#kit/log/log.ts';
import type { Telemetry } from '#kit/telemetry/telemetry.ts';
import { submissionText } from '../../clients/submission.ts';
import type { ValidatorAddress, Validators } from '../../clients/validators.ts';
import type { Wallets } from '../../clients/wallets.ts';
import type { RegisterSchema } from '../../database/schema.ts';
import { refusal } from '../../errors.ts';
import { memberAddresses } from '../directory/store.ts';
import type { GenesisWork } from './genesis.ts';
import { type ClaimedGenesis, claimGenesisWork, expediteGenesisWork, releaseGenesisWork } from './store.ts';

interface DispatchDeps {
  readonly database: Database<RegisterSchema>;
  readonly wallets: Wallets;
  readonly validators: Validators;
  readonly clock: Clock;
  readonly log: Logger;
  readonly telemetry: Pick<Telemetry, 'counter'>;
}

/** Woken when new work is committed. */
export interface GenesisDispatcher extends PollLoop {
  /** A validator announced itself: what it refused, or could not be sent, is submitted at once. */
  retryAt(validatorId: string): void;
}

const leaseMs = 30_000;
const firstRetryMs = 500;
const longestRetryMs = 15_000;
const idleMs = 2_000;

/** Signs if not done yet; the wallet service returns the same signature for the same transaction. */
async function signed(deps: DispatchDeps, work: GenesisWork): Promise<GenesisWork> {
  if (work.signatureValue !== undefined) return work;
  const { signature, key } = await deps.wallets.signControl({
    registerId: work.registerId,
    transactionId: work.txId,
    payloadHash: work.envelope.payloadHash,
    transactionType: 'Genesis',
  });
  if (key.publicKey !== work.systemKey.publicKey) {
    throw refusal('SYSTEM_KEY_CHANGED');
  }
  return { ...work, signatureValue: encodeBase64(signature) };
}

function submissionOf(work: GenesisWork): Uint8Array {
  const { algorithm, publicKey } = work.systemKey;
  if (!isAlgorithm(algorithm))
    throw new AppError('internal', 'INTERNAL_ERROR', 'The system key has no algorithm.');
  const signatures = [{ publicKey, signatureValue: work.signatureValue ?? '', algorithm }];
  return Buffer.from(submissionText({ ...work, signatures }));
}

/** The reason why one member did not accept it; undefined when it did. */
async function submitTo(
  deps: DispatchDeps,
  at: ValidatorAddress,
  submission: Uint8Array,
): Promise<string | undefined> {
  if (at.endpoint === '') return `${at.validatorId}: not announced`;
  try {
    const { status, body } = await deps.validators.submit(at, submission);
    if (status < 300) return undefined;
    return `${at.validatorId}: status ${status}: ${JSON.stringify(body).slice(0, 500)}`;
  } catch (error) {
    return `${at.validatorId}: ${error instanceof Error ? error.message : String(error)}`;
  }
}

/** Submits the genesis to every member, because members do not forward it to each other. Null when all have it. */
async function submitToAll(
  deps: DispatchDeps,
  members: readonly ValidatorAddress[],
  submission: Uint8Array,
): Promise<string | null> {
  const refusals = await Promise.all(members.map((at) => submitTo(deps, at, submission)));
  return refusals.filter((one) => one !== undefined).join('; ') || null;
}

async function dispatch(deps: DispatchDeps, claimed: ClaimedGenesis): Promise<void> {
  let { work } = claimed;
  let error: string | null;
  try {
    work = await signed(deps, work);
    const members = await memberAddresses(deps.database.read, claimed.registerNo);
    error = await submitToAll(deps, members, submissionOf(work));
  } catch (thrown) {
    error = thrown instanceof Error ? thrown.message : String(thrown);
  }
  if (error !== null) {
    deps.log.warn(
      { registerId: work.registerId, attempts: claimed.attempts, reason: error },
      'the genesis transaction was not accepted by every validator; it is submitted again',
    );
  }
  // An accepted genesis is resubmitted at a low rate until its docket is stored: the pool that accepted it may be lost.
  const delayMs =
    error === null ? longestRetryMs : Math.min(firstRetryMs * 2 ** claimed.attempts, longestRetryMs);
  const retryAt = new Date(deps.clock.nowMs() + delayMs);
  await deps.database.transact((tx) =>
    releaseGenesisWork(tx, { registerNo: claimed.registerNo, work, retryAt, error }),
  );
}

/**
 * Submits genesis transactions to the validators until their dockets are stored. The work row is written with the
 * register and deleted with docket 0, so a crash in between loses nothing.
 */
export function startGenesisDispatcher(deps: DispatchDeps): GenesisDispatcher {
  const announced = new Set<string>();

  async function run(): Promise<void> {
    const now = new Date(deps.clock.nowMs());
    const validatorIds = [...announced];
    announced.clear();
    const claimed = await deps.database.transact(async (tx) => {
      if (validatorIds.length > 0) await expediteGenesisWork(tx, validatorIds, now);
      return claimGenesisWork(tx, now, leaseMs);
    });
    await Promise.all(claimed.map((one) => dispatch(deps, one)));
  }

  const job = startJob({ name: 'genesis-submissions', firstMs: 0, everyMs: idleMs, run }, deps);
  return {
    ...job,
    retryAt: (validatorId) => {
      announced.add(validatorId);
      job.wake();
    },
  };
}
