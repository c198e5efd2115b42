import { buildEnactment } from '#core/ledger/governance/build.ts';
import { startJob } from '#kit/clock/jobs.ts';
import type { PollLoop } from '#kit/clock/poll-loop.ts';
import type { Logger } from '#kit/log/log.ts';
import type { Telemetry } from '#kit/telemetry/telemetry.ts';
import { findRegister } from '../../registers/state/store.ts';
import { refusedWith } from '../control/answer.ts';
import { type ControlDeps, submitControl } from '../control/submit.ts';
import { loadRules, type RulesDeps } from '../rules/load.ts';
import { listApproved } from './store.ts';

interface EnactmentDeps extends ControlDeps, RulesDeps {
  readonly log: Logger;
  readonly telemetry: Pick<Telemetry, 'counter'>;
}

/** Woken when rules changed: a proposal may have been approved. */
type EnactmentDispatcher = PollLoop;

const idleMs = 30_000;
const firstRetryMs = 2_000;
const longestRetryMs = 300_000;

interface Attempt {
  readonly count: number;
  readonly notBeforeMs: number;
}

/** Submits the enactment of one approved proposal; false when it must not be submitted again. */
async function enactOne(deps: EnactmentDeps, registerId: string, proposalId: string): Promise<boolean> {
  const register = await findRegister(deps.database.read, registerId);
  if (register === undefined || register.status !== 'Online') return true;
  const rules = await loadRules(deps, register);
  const proposal = rules.proposals.find((one) => one.proposalId === proposalId);
  const enactment = proposal && buildEnactment(proposal);
  if (enactment === undefined) return false;
  const draft = { ...enactment.draft, createdAt: enactment.createdAt };
  const { answer } = await submitControl(deps, register, draft, 'system');
  if (answer.status < 300) return true;
  deps.log.warn(
    { registerId, proposalId, code: refusedWith(answer) },
    'validators refused the enactment of an approved proposal',
  );
  return answer.status >= 500 || answer.status === 429;
}

/**
 * Submits the enactment of approved proposals. The transaction is derived from the proposal, so it does not matter
 * which replica submits it, or how often. What validators refuse needs a person.
 */
export function startEnactments(deps: EnactmentDeps): EnactmentDispatcher {
  const attempts = new Map<string, Attempt>();

  async function attempt(registerId: string, proposalId: string): Promise<void> {
    const { count, notBeforeMs } = attempts.get(proposalId) ?? { count: 0, notBeforeMs: 0 };
    const nowMs = deps.clock.nowMs();
    if (nowMs < notBeforeMs) return;
    const again = await enactOne(deps, registerId, proposalId).catch((error: unknown) => {
      deps.log.warn(
        { err: error, registerId, proposalId },
        'the enactment of a proposal could not be submitted; it is retried',
      );
      return true;
    });
    const delayMs = again ? Math.min(firstRetryMs * 2 ** count, longestRetryMs) : Number.POSITIVE_INFINITY;
    attempts.set(proposalId, { count: count + 1, notBeforeMs: nowMs + delayMs });
  }

  async function run(): Promise<void> {
    const approved = await listApproved(deps.database.read);
    const known = new Set(approved.map((one) => one.proposalId));
    for (const id of attempts.keys()) if (!known.has(id)) attempts.delete(id);
    for (const { registerId, proposalId } of approved) await attempt(registerId, proposalId);
  }

  function everyMs(): number {
    const isTrying = [...attempts.values()].some((one) => Number.isFinite(one.notBeforeMs));
    return isTrying ? firstRetryMs : idleMs;
  }

  return startJob({ name: 'enactments', firstMs: 0, everyMs, run }, deps);
}
