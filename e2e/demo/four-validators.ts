import { type Api, createApi } from '../harness/api.ts';
import { checkEvidence, collectEvidence, fetchDockets } from '../harness/evidence.ts';
import { createRegister, createWallet, signIn, waitOnline } from '../harness/journey.ts';
import { createOutsideKey, signSubmission } from '../harness/outside.ts';
import { type LocalSystem, startSystem } from '../harness/system.ts';
import { inParallel, until } from '../harness/wait.ts';
import { duration, type Steps } from './steps.ts';

const sealedByFour = 40;
const sealedAfterwards = 40;
/** Number of accepted transactions after which one of four validators is killed. */
const killedAfter = 20;
/** The validator that the gateway calls. */
const victim = 'validator-0';
const patienceMs = 30_000;
const againMs = 5_000;

interface Set {
  readonly api: Api;
  readonly token: string;
  readonly registerId: string;
}

async function beginSet(system: LocalSystem): Promise<Set> {
  const api = createApi(system.state.gatewayUrl);
  const { access_token: token } = await signIn(api, system.state);
  const owner = await createWallet(api, token, 'ED25519');
  const registerId = await createRegister(api, token, 'Demo register of four validators', owner);
  await waitOnline(api, token, registerId);
  return { api, token, registerId };
}

async function sealedCount({ api, token, registerId }: Set): Promise<number> {
  const path = `/api/registers/${registerId}/transactions?pageSize=1`;
  const { body } = await api.expect(200, 'GET', path, { token });
  return (body as { totalCount: number }).totalCount;
}

/**
 * Has transactions signed by an outside key sealed. When a validator dies before it answers, or while only its log
 * holds a transaction, the same signed transactions are submitted again; a repetition has no effect.
 */
async function sealAll(set: Set, count: number, onTaken: (taken: number) => void): Promise<void> {
  const { api, token, registerId } = set;
  const key = createOutsideKey();
  const submissions = Array.from({ length: count }, (_, n) =>
    signSubmission(key, { registerId, payload: { n, kind: 'four' } }),
  );
  const goal = (await sealedCount(set)) + count;
  let submittedAt = Number.NEGATIVE_INFINITY;
  let taken = 0;
  await until(`${count} transactions sealed`, patienceMs, async () => {
    if (performance.now() - submittedAt > againMs) {
      await inParallel(submissions, 8, async (json) => {
        const { status } = await api.send('POST', '/api/v1/transactions/validate', { token, json });
        if (status === 200) onTaken(++taken);
      });
      submittedAt = performance.now();
    }
    return (await sealedCount(set)) >= goal ? true : undefined;
  });
}

/** The validators that signed the dockets of a register. */
async function signersOf({ api, token, registerId }: Set): Promise<{ dockets: number; fewest: number }> {
  const dockets = await fetchDockets(api, token, `/api/registers/${registerId}`);
  const counts = dockets.map(({ certificate }) => certificate.signatures.length);
  return { dockets: dockets.length, fewest: Math.min(...counts) };
}

/**
 * A second system with four validators, each a process of its own. They seal together. Then one of them is killed while
 * transactions arrive, and the others continue the chain, which verifies.
 */
export async function fourValidators(steps: Steps, dataDir: string): Promise<void> {
  let system: LocalSystem | undefined;
  try {
    const set = await steps.run('start four validators, and seal with them', async () => {
      system = await startSystem({ dataDir, args: ['--processes', '--validators', '4'] });
      const begun = await beginSet(system);
      await sealAll(begun, sealedByFour, () => undefined);
      const { dockets, fewest } = await signersOf(begun);
      if (fewest < 3) throw new Error(`a docket has ${fewest} signatures`);
      return [`${dockets} dockets, at least ${fewest} of 4 signed each`, begun];
    });
    await steps.run(`kill -9 ${victim} while transactions come in`, async () => {
      const { api, token, registerId } = set;
      let killedAt = 0;
      await sealAll(set, sealedAfterwards, (taken) => {
        if (taken !== killedAfter) return;
        system?.killOne(victim);
        killedAt = performance.now();
      });
      const tookMs = performance.now() - killedAt;
      const head = checkEvidence(await collectEvidence(api, token, registerId));
      return [
        `all ${sealedAfterwards} sealed within ${duration(tookMs)}, verified, head ${head.slice(0, 16)}…`,
        undefined,
      ];
    });
  } finally {
    await system?.stop();
  }
}
