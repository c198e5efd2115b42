import { expect } from 'vitest';
import { SteadyLoad } from '../fault/steady-load.ts';
import { type Api, createApi } from '../harness/api.ts';
import { checkEvidence, collectEvidence, fetchDockets } from '../harness/evidence.ts';
import { createPerson } from '../harness/governance.ts';
import { signIn } from '../harness/journey.ts';
import { readState } from '../harness/system.ts';
import { consensusMetrics, setStatus } from '../harness/validation.ts';
import { namespace, openGateway } from './installed.ts';
import { kubectl } from './kubectl.ts';
import { within } from './running-set.ts';

/** A register of the Tenant `acme`, reached through the Ingress. */
export interface Ledger {
  readonly api: Api;
  readonly registerId: string;
  /** Token of the system administrator. */
  readonly root: string;
  /** Token of a member of the tenant's organisation. */
  readonly token: string;
}

/** The ledger of a Register, by default in the shared installation. */
export async function openLedger(register: string, where = namespace): Promise<Ledger> {
  const statusOf = (what: string, path: string) =>
    kubectl('-n', where, 'get', what, '-o', `jsonpath={.status.${path}}`);
  const door = await openGateway(where);
  const api = createApi(door.url);
  const { access_token: root } = await signIn(api, readState(door.stateFile));
  const organization = { id: await statusOf('ten/acme', 'organizationId'), subdomain: 'acme' };
  const name = `clerk-${Date.now().toString(36)}`;
  const { token } = await createPerson(api, root, organization, { name, role: 'Administrator' });
  return { api, root, token, registerId: await statusOf(`reg/${register}`, 'registerId') };
}

const workers = 25;

/** Starts to send transactions at a rate per second. A 502, 503 or 504 leaves the fate of a transaction open. */
export function beginLoad({ api, token, registerId }: Ledger, perSecond: number): SteadyLoad {
  const pauseMs = (workers * 1_000) / perSecond;
  return new SteadyLoad({ api, token, registerId, workers, pauseMs, isPaced: true, open: [502, 503, 504] });
}

/** Result of a load. */
export interface SealedCounts {
  readonly dockets: number;
  readonly transactions: number;
}

/**
 * Waits until all accepted transactions are sealed. Then expects each exactly once, in a chain of dockets that every
 * member has.
 */
export async function expectNothingLost(
  ledger: Ledger,
  load: Pick<SteadyLoad, 'accepted' | 'unexpected'>,
): Promise<SealedCounts> {
  const { api, root, token, registerId } = ledger;
  expect(load.unexpected).toEqual([]);
  const dockets = () => fetchDockets(api, token, `/api/registers/${registerId}`);
  await within('everything to be sealed', 60_000, async () => {
    const sealed = new Set((await dockets()).flatMap(({ transactionIds }) => transactionIds));
    return [...load.accepted].every((txId) => sealed.has(txId));
  });
  const chain = await dockets();
  const ids = chain.flatMap(({ transactionIds }) => transactionIds);
  expect(new Set(ids).size).toBe(ids.length);
  for (const [number, docket] of chain.entries()) {
    const before = number === 0 ? docket.previousHash : chain[number - 1]?.hash;
    expect(docket).toMatchObject({ docketNumber: number, previousHash: before });
  }
  await within('every member to have all dockets', 30_000, async () => {
    const { members } = await setStatus(api, root, registerId);
    return members.every(({ lastDocketNumber }) => lastDocketNumber === chain.length - 1);
  });
  return { dockets: chain.length, transactions: ids.length };
}

/** Number of sealed dockets. */
export async function docketCount({ api, token, registerId }: Ledger): Promise<number> {
  return (await fetchDockets(api, token, `/api/registers/${registerId}`)).length;
}

/** Longest time between consecutive dockets from number `from` on, in milliseconds. */
export async function longestPauseMs({ api, token, registerId }: Ledger, from: number): Promise<number> {
  const dockets = await fetchDockets(api, token, `/api/registers/${registerId}`);
  const times = dockets.slice(from).map(({ timestamp }) => Date.parse(timestamp));
  return Math.max(0, ...times.slice(1).map((time, index) => time - (times[index] ?? time)));
}

/** Verifies every docket, record and proof offline. */
export async function verifyAll({ api, token, registerId }: Ledger): Promise<void> {
  expect(checkEvidence(await collectEvidence(api, token, registerId))).toMatch(/^[0-9a-f]{64}$/);
}

/** The proposer of the next docket of a register. */
export async function proposerOf({ api, token, registerId }: Ledger): Promise<string | undefined> {
  const { byRegister } = await consensusMetrics(api, token);
  return byRegister.find((each) => each.registerId === registerId)?.proposer;
}
