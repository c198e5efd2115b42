import type { Database } from '#kit/db/db.ts';
import { openHub } from '#kit/hub/hub.ts';
import type { Runtime } from '#kit/lifecycle/lifecycle.ts';
import type { Ledger } from '../clients/ledger.ts';
import type { BlueprintDatabase } from '../database/schema.ts';
import type { PublicationIndex } from '../definitions/publications/follow.ts';
import { findDefinition } from '../definitions/publications/store.ts';
import { Definitions } from '../instances/definitions.ts';
import { blueprintHub } from '../instances/hub/hub.ts';
import { Projector } from '../instances/projection/projector.ts';

interface Opening {
  readonly db: Database<BlueprintDatabase>;
  readonly index: Pick<PublicationIndex, 'read'>;
  readonly ledger: Ledger;
  readonly runtime: Runtime;
}

/** The projection, which a test runs itself, and the hub. */
export async function openTestInstances({ db, index, ledger, runtime }: Opening) {
  const definitions = new Definitions(async (registerId, pin) => {
    await index.read(registerId);
    return findDefinition(db.read, registerId, pin);
  });
  /** Reasons for which sealed steps were ignored. */
  const ignored: string[] = [];
  const projector = new Projector({
    db,
    source: ledger,
    workflows: definitions,
    log: runtime.log,
    clock: runtime.clock,
    notify: () => undefined,
    countIgnored: (reason) => void ignored.push(reason),
  });
  const hub = await openHub(blueprintHub(db.read, { listPersonWallets: async () => [] }), {
    runtime,
    bus: { subscribe: () => async () => undefined },
    authenticator: { assertCurrent: () => undefined },
  });
  return { definitions, projector, ignored, hub };
}
