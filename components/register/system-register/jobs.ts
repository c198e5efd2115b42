import { type PollLoop, startPollLoop } from '#kit/clock/poll-loop.ts';
import type { Database } from '#kit/db/db.ts';
import type { Logger } from '#kit/log/log.ts';
import { type PublishDeps, publishDefinition } from '../blueprints/publish.ts';
import { refusedWith } from '../control/answer.ts';
import type { RegisterSchema } from '../database/schema.ts';
import { announcedSince } from '../directory/store.ts';
import type { SeenRegister } from '../registers/store.ts';
import { type BeginSystemDeps, beginSystemRegister, installationDid } from './begin.ts';
import { SEEDS } from './seeds.ts';
import { loadSystemRegister, missingSeeds } from './state.ts';
import { tryAlone } from './store.ts';

export interface BootstrapDeps extends BeginSystemDeps, PublishDeps {
  readonly wallets: PublishDeps['wallets'];
  readonly database: Database<RegisterSchema>;
  readonly clock: PublishDeps['clock'];
  readonly log: Logger;
  /** Announced validators it takes to make the register here; 0: it is made by somebody else. */
  readonly membersNeeded: number;
  readonly freshMs: number;
  /** Told whether the system register is as it should be. */
  readonly onState: (isReady: boolean) => void;
}

/** Woken when something happened that it may wait for: a validator announced itself, a docket was stored. */
export type Bootstrap = PollLoop;

type Target = Pick<SeenRegister, 'registerNo' | 'registerId'>;

const firstRetryMs = 2_000;
const longestRetryMs = 60_000;

/** `waiting`: nothing to be done here until somebody rings; the look in between is for what other replicas did. */
type Step = 'waiting' | 'again';

/** The validators to begin with; undefined while they are too few, or somebody else makes the register. */
async function findMembersToBe(deps: BootstrapDeps): Promise<string[] | undefined> {
  const { membersNeeded, freshMs, clock } = deps;
  if (membersNeeded === 0) return undefined;
  const announced = await announcedSince(deps.database.read, new Date(clock.nowMs() - freshMs));
  return announced.length < membersNeeded ? undefined : announced.map(({ validatorId }) => validatorId);
}

async function make(deps: BootstrapDeps): Promise<Step> {
  const members = await findMembersToBe(deps);
  if (members === undefined) return 'waiting';
  await tryAlone(deps.database, () => beginSystemRegister(deps, members));
  return 'again';
}

async function seed(deps: BootstrapDeps, register: Target): Promise<Step> {
  await tryAlone(deps.database, () => publishMissing(deps, register));
  return 'again';
}

async function publishMissing(deps: BootstrapDeps, register: Target): Promise<void> {
  const missing = await missingSeeds(deps.database.read, register.registerNo);
  const publisher = await installationDid(deps.wallets);
  for (const definition of SEEDS.filter(({ id }) => missing.includes(id))) {
    const answer = await publishDefinition(deps, register, definition, publisher);
    if (answer.status < 300) continue;
    const code = refusedWith(answer);
    deps.log.warn({ blueprintId: definition.id, code }, 'blueprint of the system register not taken yet');
  }
}

/** One look at the register and the next thing to be done about it. */
async function step(deps: BootstrapDeps): Promise<Step> {
  const { register, reason } = await loadSystemRegister(deps.database.read, deps.registerId);
  deps.onState(reason === undefined);
  if (register === undefined) return make(deps);
  return reason === 'SeedsPending' ? seed(deps, register) : 'waiting';
}

/**
 * Brings the system register about and publishes what it begins with (notes/ledger.md L-119, decision D27): idempotent,
 * by whichever replica holds the advisory lock, again and again until it is there; then it is watched. Nothing waits for it.
 */
export function startBootstrap(deps: BootstrapDeps): Bootstrap {
  let retryMs = firstRetryMs;

  async function tried(): Promise<Step> {
    try {
      return await step(deps);
    } catch (error) {
      deps.log.warn({ err: error }, 'system register not there yet');
      return 'again';
    }
  }

  return startPollLoop(async () => {
    const result = await tried();
    const restMs = result === 'waiting' ? longestRetryMs : retryMs;
    retryMs = result === 'waiting' ? firstRetryMs : Math.min(retryMs * 2, longestRetryMs);
    return restMs;
  });
}
