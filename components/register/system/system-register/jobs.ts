import { type PollLoop, startPollLoop } from '#kit/clock/poll-loop.ts';
import type { Database } from '#kit/db/db.ts';
import { ForwardedRefusal } from '#kit/http/http.ts';
import type { Logger } from '#kit/log/log.ts';
import { type PublishDeps, publishDefinition } from '../../blueprints/publishing/publish.ts';
import type { RegisterSchema } from '../../database/schema.ts';
import { announcedSince } from '../../registers/directory/store.ts';
import type { SeenRegister } from '../../registers/state/store.ts';
import { type BeginSystemDeps, beginSystemRegister, installationDid } from './begin.ts';
import { seedDefinitions } from './seeds.ts';
import { loadSystemRegister, missingSeeds } from './state.ts';
import { tryAlone } from './store.ts';

interface BootstrapDeps extends BeginSystemDeps, PublishDeps {
  readonly wallets: PublishDeps['wallets'];
  readonly database: Database<RegisterSchema>;
  readonly clock: PublishDeps['clock'];
  readonly log: Logger;
  /** Announced validators required before the register is created here; 0: it is created by a Register resource. */
  readonly membersNeeded: number;
  readonly freshMs: number;
  /** Called with whether the system register is ready. */
  readonly onState: (isReady: boolean) => void;
}

/** Woken when a precondition may have changed: a validator announced itself, a docket was stored. */
export type Bootstrap = PollLoop;

type Target = Pick<SeenRegister, 'registerNo' | 'registerId'>;

const firstRetryMs = 2_000;
const longestRetryMs = 60_000;

/** `waiting`: nothing to do until the next wake signal; the poll in between notices actions of other replicas. */
type Step = 'waiting' | 'again';

/** The validators of the new register; undefined while they are too few, or when it is created elsewhere. */
async function findInitialMembers(deps: BootstrapDeps): Promise<string[] | undefined> {
  const { membersNeeded, freshMs, clock } = deps;
  if (membersNeeded === 0) return undefined;
  const announced = await announcedSince(deps.database.read, new Date(clock.nowMs() - freshMs));
  return announced.length < membersNeeded ? undefined : announced.map(({ validatorId }) => validatorId);
}

async function make(deps: BootstrapDeps): Promise<Step> {
  const members = await findInitialMembers(deps);
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
  for (const definition of seedDefinitions.filter(({ id }) => missing.includes(id))) {
    try {
      await publishDefinition(deps, register, definition, publisher);
    } catch (error) {
      if (!(error instanceof ForwardedRefusal)) throw error;
      const { code } = error.refusal;
      deps.log.warn(
        { blueprintId: definition.id, code },
        'an initial blueprint of the system register was not accepted; it is submitted again',
      );
    }
  }
}

/** Checks the register once and takes the next step. */
async function step(deps: BootstrapDeps): Promise<Step> {
  const { register, reason } = await loadSystemRegister(deps.database.read, deps.registerId);
  deps.onState(reason === undefined);
  if (register === undefined) return make(deps);
  return reason === 'SeedsPending' ? seed(deps, register) : 'waiting';
}

/**
 * Creates the system register and publishes its initial blueprints. Idempotent; run by the replica that holds the
 * advisory lock, repeated until everything exists, and then monitored. Nothing waits for it.
 */
export function startBootstrap(deps: BootstrapDeps): Bootstrap {
  let retryMs = firstRetryMs;

  async function stepWithRetry(): Promise<Step> {
    try {
      return await step(deps);
    } catch (error) {
      deps.log.warn({ err: error }, 'the system register is not ready yet; its creation is retried');
      return 'again';
    }
  }

  return startPollLoop(async () => {
    const result = await stepWithRetry();
    const restMs = result === 'waiting' ? longestRetryMs : retryMs;
    retryMs = result === 'waiting' ? firstRetryMs : Math.min(retryMs * 2, longestRetryMs);
    return restMs;
  });
}
