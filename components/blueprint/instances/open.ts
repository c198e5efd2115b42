import { SUBJECTS } from '#core/events/subjects.ts';
import type { TenantSession } from '#kit/auth/auth.ts';
import { backgroundTimers, sleep } from '#kit/clock/timing.ts';
import type { Database } from '#kit/db/db.ts';
import { followLog } from '#kit/events/follow.ts';
import { type Hub, openHub } from '#kit/hub/hub.ts';
import type { ServiceBase } from '#kit/service/service.ts';
import { connectInboxes } from '../clients/inboxes.ts';
import type { Ledger } from '../clients/ledger.ts';
import { connectWalletOwners } from '../clients/wallet-owners.ts';
import type { BlueprintConfig } from '../config.ts';
import type { BlueprintDatabase } from '../database/schema.ts';
import type { PublicationIndex } from '../definitions/publications/follow.ts';
import { findDefinition } from '../definitions/publications/store.ts';
import { Definitions } from './definitions.ts';
import { blueprintHub } from './hub/hub.ts';
import { notifyPage } from './inbox/notify.ts';
import { Projector } from './projection/projector.ts';
import { findInstance } from './store.ts';

/** A wake signal ends each pause; this is for lost ones. */
const pollMs = 5_000;
/** Reading takes a fifth of the time at most, however often registers wake it. */
const restFactor = 4;
const longestRestMs = 500;
const longestRetryMs = 10_000;

interface Opening {
  readonly db: Database<BlueprintDatabase>;
  readonly ledger: Ledger;
  readonly index: Pick<PublicationIndex, 'read'>;
  readonly authenticator: TenantSession['authenticator'];
  readonly token: () => Promise<string>;
}

interface OpenInstances {
  readonly definitions: Definitions;
  readonly projector: Projector;
  readonly hub: Hub;
}

/** Opens the projection of instances, which follows every register, and the hub that tells of it. */
export async function openInstances(
  { config, runtime, workload, bus, cleanup }: ServiceBase<BlueprintConfig>,
  { db, ledger, index, authenticator, token }: Opening,
): Promise<OpenInstances> {
  const { log, telemetry } = runtime;
  const definitions = new Definitions(async (registerId, pin) => {
    const known = await findDefinition(db.read, registerId, pin);
    if (known !== undefined) return known;
    await index.read(registerId);
    return findDefinition(db.read, registerId, pin);
  });
  const ignored = telemetry.counter('sealed_steps_ignored_total', 'Sealed steps that continue no instance.', [
    'reason',
  ]);
  const projector = new Projector({
    db,
    source: ledger,
    workflows: definitions,
    log,
    clock: runtime.clock,
    notify: () => bus.publish(SUBJECTS.blueprintEvents),
    countIgnored: (reason) => ignored.inc({ reason }),
  });
  const follower = followLog({
    readPage: async (signal) => {
      const startedAt = performance.now();
      await projector.catchUp(signal);
      const restMs = Math.min(restFactor * (performance.now() - startedAt), longestRestMs);
      await sleep(backgroundTimers(), restMs, signal);
      return true;
    },
    bus,
    subject: SUBJECTS.registerEvents,
    pollMs,
    longestRetryMs,
    log,
    report: (error) => ({ level: 'warn', fields: { err: error }, message: 'sealed steps cannot be read' }),
    recovered: 'sealed steps are read again',
  });
  cleanup.add('projection', () => follower.stop());
  const owners = connectWalletOwners(config.CHANCERY_WALLET_GRPC, { runtime, workload, token });
  cleanup.add('wallet owners', () => owners.close());
  const findBlueprint = async (registerId: string, instanceId: string) => {
    const instance = await findInstance(db.read, registerId, instanceId, new Date(runtime.clock.nowMs()));
    const pinned = instance && (await definitions.find(registerId, instance.pin));
    return pinned?.blueprint;
  };
  const inboxes = connectInboxes(config.CHANCERY_TENANT_HTTPS, { runtime, workload, token });
  cleanup.add('inboxes', () => inboxes.close());
  const notices = followLog({
    readPage: () => notifyPage({ db, findBlueprint, owners, inboxes }),
    bus,
    subject: SUBJECTS.blueprintEvents,
    pollMs,
    longestRetryMs,
    log,
    report: (error) => ({
      level: 'warn',
      fields: { err: error },
      message: 'inbox entries cannot be written',
    }),
    recovered: 'inbox entries are written again',
  });
  cleanup.add('notices', () => notices.stop());
  const hub = await openHub(blueprintHub(db.read, owners), { runtime, bus, authenticator, workload });
  cleanup.add('hub', () => hub.stop());
  return { definitions, projector, hub };
}
