import type { Caller } from '#core/identity/claims.ts';
import type { ManualClock } from '#kit/clock/clock.ts';
import type { Database } from '#kit/db/db.ts';
import type { Logger } from '#kit/log/log.ts';
import { createPipeline, type PreparedStep } from '../actions/pipeline.ts';
import type { Ledger } from '../clients/ledger.ts';
import type { Wallets } from '../clients/wallets.ts';
import type { BlueprintDatabase } from '../database/schema.ts';
import { refusal } from '../errors.ts';
import type { Definitions } from '../instances/definitions.ts';
import { OperationRunner } from '../operations/runner.ts';
import { OperationSeal } from '../operations/sealing.ts';

interface Opening {
  readonly db: Database<BlueprintDatabase>;
  readonly clock: ManualClock;
  readonly log: Logger;
  readonly ledger: Ledger;
  readonly wallets: Wallets;
  readonly definitions: Definitions;
  readonly authenticate: (token: string) => Promise<Caller>;
  /** Folds what is sealed. */
  readonly foldAll: () => Promise<void>;
}

/** What carries out operations: steps are folded while a runner waits. */
export function openTestOperations(opening: Opening) {
  const { db, clock, log, ledger, wallets, definitions, authenticate, foldAll } = opening;
  const seal = new OperationSeal(Buffer.alloc(32, 7));
  /** How often followers of events were woken. */
  const wakes = { count: 0 };
  /** A replica's runner. */
  const startRunner = (replica: string) =>
    new OperationRunner<PreparedStep>({
      db,
      seal,
      clock,
      log,
      replica,
      pipeline: createPipeline({ db, clock, ledger, wallets, definitions }),
      nextStep: async (timeoutMs) => {
        clock.advance(timeoutMs);
        await foldAll();
      },
      notify: () => {
        wakes.count += 1;
      },
    });
  const delegations = {
    exchange: async (bearer: string) => {
      const { kind, subject } = await authenticate(bearer);
      if (kind !== 'user') throw refusal('DELEGATION_INVALID');
      return { token: `for:${subject}`, expiresAtMs: clock.nowMs() + 300_000 };
    },
  };
  return { seal, wakes, startRunner, runner: startRunner('one'), delegations };
}
