import { expect } from 'vitest';
import { z } from 'zod';
import { waitFor } from '#kit/testing/wait.ts';
import { SteadyLoad } from '../../fault/steady-load.ts';
import { type Api, createApi } from '../../harness/api.ts';
import { checkEvidence, collectEvidence, fetchDockets } from '../../harness/evidence.ts';
import { createPerson } from '../../harness/governance.ts';
import { signIn, waitConfirmed } from '../../harness/journey.ts';
import { readState } from '../../harness/system.ts';
import { inParallel } from '../../harness/wait.ts';
import { namespace, openDoor } from '../installed.ts';
import { kubectl } from '../kubectl.ts';
import { openSetView, type SetView } from './set-view.ts';

type Docket = Awaited<ReturnType<typeof fetchDockets>>[number];

const count = z.object({ totalCount: z.number() });
const latest = z.object({
  docketNumber: z.number(),
  certificate: z.object({ signatures: z.array(z.object({ validatorId: z.string() })) }),
});

/** leaderTimeoutMs of the default policy, the two seconds that a pause may take beside it, and what a busy machine adds. */
export const pauseBoundMs = 3_000 + 2_000 + 5_000;

/** The register of the samples under load from outside the cluster, and the set that seals it. */
export interface Stage {
  readonly set: SetView;
  /** Begins to submit; ended with the stage at the latest. */
  load(): SteadyLoad;
  /** Waits for `by` more sealed transactions. */
  sealsMore(by: number, deadlineMs?: number): Promise<void>;
  /** Number of sealed dockets. */
  height(): Promise<number>;
  /** Waits until a docket from `from` on carries the signature of a validator. */
  isSignedBy(validatorId: string, from: number): Promise<void>;
  /** Longest time between two neighbouring dockets from number `from` on, milliseconds. */
  longestPause(from: number): Promise<number>;
  /**
   * Ends the load and judges: everything accepted is sealed exactly once, every member stands at the same docket, nobody signed
   * two things, and the whole register verifies offline.
   */
  judge(): Promise<void>;
  close(): Promise<void>;
}

/** Opens the gateway as somebody of the tenant's organisation. */
export async function openStage(): Promise<Stage> {
  const door = await openDoor();
  const api = createApi(door.url);
  const registerId = await status('reg/invoices', 'registerId');
  const token = await tokenOfTenant(api, door.stateFile);
  const set = await openSetView();
  const register: Register = { api, token, registerId };
  const loads: SteadyLoad[] = [];
  const stopLoads = () => Promise.all(loads.map((each) => each.stop()));
  return {
    set,
    load: () => {
      const begun = new SteadyLoad({ api, token, registerId, workers: 2, pauseMs: 250 });
      loads.push(begun);
      return begun;
    },
    sealsMore: async (by, deadlineMs = 30_000) => {
      const goal = (await sealedCount(register)) + by;
      const isThere = async () => (await sealedCount(register)) >= goal;
      await waitFor(isThere, { what: `${by} more sealed`, deadlineMs, everyMs: 100 });
    },
    height: async () => (await latestOf(register)).docketNumber + 1,
    isSignedBy: (validatorId, from) => isSignedBy(register, validatorId, from),
    longestPause: async (from) => longestPause((await docketsOf(register)).slice(from)),
    judge: async () => {
      await stopLoads();
      await judge(register, set, loads);
    },
    close: async () => {
      await stopLoads();
      await set.close();
    },
  };
}

interface Register {
  readonly api: Api;
  readonly token: string;
  readonly registerId: string;
}

function status(of: string, path: string): Promise<string> {
  return kubectl('-n', namespace, 'get', of, '-o', `jsonpath={.status.${path}}`);
}

/** Registers of a tenant are nobody else's business. */
async function tokenOfTenant(api: Api, stateFile: string): Promise<string> {
  const { access_token: root } = await signIn(api, readState(stateFile));
  const organization = { id: await status('ten/acme', 'organizationId'), subdomain: 'acme' };
  const name = `loader-${Date.now().toString(36)}`;
  return (await createPerson(api, root, organization, { name, role: 'Administrator' })).token;
}

async function sealedCount({ api, token, registerId }: Register): Promise<number> {
  const path = `/api/registers/${registerId}/transactions?pageSize=1`;
  return count.parse((await api.expect(200, 'GET', path, { token })).body).totalCount;
}

async function latestOf({ api, token, registerId }: Register) {
  const answer = await api.expect(200, 'GET', `/api/registers/${registerId}/dockets/latest`, { token });
  return latest.parse(answer.body);
}

function docketsOf({ api, token, registerId }: Register): Promise<Docket[]> {
  return fetchDockets(api, token, `/api/registers/${registerId}`);
}

async function isSignedBy(register: Register, validatorId: string, from: number): Promise<void> {
  const hasSigned = async () => {
    const { docketNumber, certificate } = await latestOf(register);
    const signers = certificate.signatures.map((each) => each.validatorId);
    return docketNumber >= from && signers.includes(validatorId);
  };
  await waitFor(hasSigned, { what: `a signature of ${validatorId}`, deadlineMs: 60_000, everyMs: 100 });
}

function longestPause(dockets: readonly Docket[]): number {
  const times = dockets.map(({ timestamp }) => Date.parse(timestamp));
  return Math.max(0, ...times.slice(1).map((time, index) => time - (times[index] ?? time)));
}

async function judge(register: Register, set: SetView, loads: readonly SteadyLoad[]): Promise<void> {
  const { api, token, registerId } = register;
  const accepted = loads.flatMap((each) => [...each.accepted]);
  // an answer that never came, because its node was gone, leaves open what became of the transaction
  const unexpected = loads.flatMap((each) => each.unexpected);
  expect(unexpected.filter((each) => each.status !== 502 && each.status !== 504)).toEqual([]);
  await inParallel(accepted, 8, (txId) => waitConfirmed(api, token, registerId, txId));
  const dockets = await docketsOf(register);
  const sealed = dockets.flatMap((docket) => docket.transactionIds);
  const there = new Set(sealed);
  expect(there.size).toBe(sealed.length);
  expect(accepted.filter((txId) => !there.has(txId))).toEqual([]);
  const standTogether = async () => {
    const { members } = (await set.read()).status;
    const places = members.map(({ registers = [] }) =>
      registers.find((each) => each.registerId === registerId),
    );
    return places.every((each) => each?.height === dockets.length && each.behind === 0);
  };
  await waitFor(standTogether, {
    what: 'every member to stand at the same docket',
    deadlineMs: 60_000,
    everyMs: 300,
  });
  const { conditions } = (await set.read()).status;
  expect(conditions.filter(({ type }) => type === 'EquivocationDetected')).toEqual([]);
  checkEvidence(await collectEvidence(api, token, registerId));
  process.stdout.write(`${accepted.length} accepted, ${sealed.length} sealed in ${dockets.length} dockets\n`);
}
