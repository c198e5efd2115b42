import { expect } from 'vitest';
import { z } from 'zod';
import { waitFor } from '#kit/testing/wait.ts';
import { SteadyLoad } from '../../fault/steady-load.ts';
import { checkEvidence, collectEvidence, fetchDockets } from '../../harness/evidence.ts';
import { waitConfirmed } from '../../harness/journey.ts';
import { inParallel } from '../../harness/wait.ts';
import { openApiServer } from '../kubectl.ts';
import { type Ledger, longestPauseMs, openLedger } from '../ledger-under-load.ts';
import { type RunningSet, runningSet } from '../running-set.ts';

const count = z.object({ totalCount: z.number() });
const latest = z.object({
  docketNumber: z.number(),
  certificate: z.object({ signatures: z.array(z.object({ validatorId: z.string() })) }),
});

/** leaderTimeoutMs of the default policy, two seconds for the next docket, and a margin for a busy machine. */
export const pauseBoundMs = 3_000 + 2_000 + 5_000;

/** The register of the samples under load from outside the cluster, and its set. */
export interface Stage {
  readonly set: RunningSet;
  readonly ledger: Ledger;
  /** Starts to submit transactions; the load ends with the stage at the latest. */
  load(): SteadyLoad;
  /** Waits for `by` more sealed transactions. */
  sealsMore(by: number, deadlineMs?: number): Promise<void>;
  /** Number of sealed dockets. */
  height(): Promise<number>;
  /** Waits until a docket from `from` on has the signature of a validator. */
  isSignedBy(validatorId: string, from: number): Promise<void>;
  /** Longest time between consecutive dockets from number `from` on, in milliseconds. */
  longestPause(from: number): Promise<number>;
  /**
   * Ends the load and checks: every accepted transaction is sealed exactly once, all members have the same height, no member
   * equivocated, and the whole register verifies offline.
   */
  judge(): Promise<void>;
  close(): Promise<void>;
}

/** Opens the gateway as a member of the tenant's organisation. */
export async function openStage(): Promise<Stage> {
  const ledger = await openLedger('invoices');
  const server = await openApiServer();
  const set = runningSet(server, 'main');
  const loads: SteadyLoad[] = [];
  const stopLoads = () => Promise.all(loads.map((each) => each.stop()));
  return {
    set,
    ledger,
    load: () => {
      const begun = new SteadyLoad({ ...ledger, workers: 2, pauseMs: 250 });
      loads.push(begun);
      return begun;
    },
    sealsMore: async (by, deadlineMs = 30_000) => {
      const goal = (await sealedCount(ledger)) + by;
      const isThere = async () => (await sealedCount(ledger)) >= goal;
      await waitFor(isThere, { what: `${by} more sealed`, deadlineMs, everyMs: 100 });
    },
    height: async () => (await latestOf(ledger)).docketNumber + 1,
    isSignedBy: (validatorId, from) => isSignedBy(ledger, validatorId, from),
    longestPause: (from) => longestPauseMs(ledger, from),
    judge: async () => {
      await stopLoads();
      await judge(ledger, set, loads);
    },
    close: async () => {
      await stopLoads();
      await server.stop();
    },
  };
}

type Register = Pick<Ledger, 'api' | 'token' | 'registerId'>;

async function sealedCount({ api, token, registerId }: Register): Promise<number> {
  const path = `/api/registers/${registerId}/transactions?pageSize=1`;
  return count.parse((await api.expect(200, 'GET', path, { token })).body).totalCount;
}

async function latestOf({ api, token, registerId }: Register) {
  const answer = await api.expect(200, 'GET', `/api/registers/${registerId}/dockets/latest`, { token });
  return latest.parse(answer.body);
}

async function isSignedBy(register: Register, validatorId: string, from: number): Promise<void> {
  const hasSigned = async () => {
    const { docketNumber, certificate } = await latestOf(register);
    const signers = certificate.signatures.map((each) => each.validatorId);
    return docketNumber >= from && signers.includes(validatorId);
  };
  await waitFor(hasSigned, { what: `a signature of ${validatorId}`, deadlineMs: 60_000, everyMs: 100 });
}

async function judge(register: Register, set: RunningSet, loads: readonly SteadyLoad[]): Promise<void> {
  const { api, token, registerId } = register;
  const accepted = loads.flatMap((each) => [...each.accepted]);
  // a response that was lost with its node leaves the fate of the transaction open
  const unexpected = loads.flatMap((each) => each.unexpected);
  expect(unexpected.filter((each) => each.status !== 502 && each.status !== 504)).toEqual([]);
  await inParallel(accepted, 8, (txId) => waitConfirmed(api, token, registerId, txId));
  // what was submitted without an answer may be sealed later than what was accepted
  const standTogether = async () => {
    const height = (await latestOf(register)).docketNumber + 1;
    const { members = [] } = (await set.read()).status;
    const places = members.map(({ registers = [] }) =>
      registers.find((each) => each.registerId === registerId),
    );
    return places.length === 4 && places.every((each) => each?.height === height && each.behind === 0);
  };
  await waitFor(standTogether, {
    what: 'every member to stand at the latest docket',
    deadlineMs: 60_000,
    everyMs: 300,
  });
  const dockets = await fetchDockets(api, token, `/api/registers/${registerId}`);
  const sealed = dockets.flatMap((docket) => docket.transactionIds);
  const sealedIds = new Set(sealed);
  expect(sealedIds.size).toBe(sealed.length);
  expect(accepted.filter((txId) => !sealedIds.has(txId))).toEqual([]);
  expect(await set.condition('EquivocationDetected')).toBeUndefined();
  checkEvidence(await collectEvidence(api, token, registerId));
  process.stdout.write(`${accepted.length} accepted, ${sealed.length} sealed in ${dockets.length} dockets\n`);
}
