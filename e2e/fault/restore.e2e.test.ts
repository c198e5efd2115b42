import { cpSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { createApi } from '../harness/api.ts';
import { checkEvidence, collectEvidence, fetchDockets } from '../harness/evidence.ts';
import {
  createRegister,
  createWallet,
  signIn,
  submitThroughRegister,
  type Wallet,
  waitConfirmed,
  waitOnline,
} from '../harness/journey.ts';
import { type LocalSystem, startSystem } from '../harness/system.ts';
import { inParallel, until } from '../harness/wait.ts';

const recoveryMs = 60_000;

describe('PostgreSQL restored from a copy that is older than the validators', () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'chancery-restore-'));
  const database = join(dataDir, 'state', 'postgres');
  const backup = join(dataDir, 'backup');
  let system: LocalSystem | undefined;
  let registerId = '';
  let owner: Wallet;

  afterAll(async () => {
    await system?.stop();
    rmSync(dataDir, { recursive: true, force: true });
  });

  async function start() {
    system = await startSystem({ dataDir: join(dataDir, 'state'), args: ['--validators', '4'] });
    const api = createApi(system.state.gatewayUrl);
    const { access_token: token } = await signIn(api, system.state);
    return { api, token };
  }
  type Running = Awaited<ReturnType<typeof start>>;

  const seal = async ({ api, token }: Running, name: string, count: number): Promise<string[]> => {
    const ids = await inParallel(
      Array.from({ length: count }, (_, n) => n),
      4,
      (n) =>
        submitThroughRegister(api, token, {
          registerId,
          sender: owner.walletAddress,
          payload: { [name]: n },
        }),
    );
    await inParallel(ids, 4, (txId) => waitConfirmed(api, token, registerId, txId));
    return ids;
  };
  const headsOf = async ({ api, token }: Running) =>
    (await fetchDockets(api, token, `/api/registers/${registerId}`)).map(({ hash }) => hash);

  test('the validators give it back what it lost, and the chain is the same and goes on', async () => {
    const first = await start();
    owner = await createWallet(first.api, first.token, 'ED25519');
    registerId = await createRegister(first.api, first.token, 'Restored register', owner);
    await waitOnline(first.api, first.token, registerId);
    const kept = await seal(first, 'kept', 8);
    await system?.stop();
    expect(existsSync(database)).toBe(true);
    cpSync(database, backup, { recursive: true, verbatimSymlinks: true });

    const second = await start();
    const lost = await seal(second, 'lost', 12);
    const heads = await headsOf(second);
    await system?.stop();
    rmSync(database, { recursive: true });
    cpSync(backup, database, { recursive: true, verbatimSymlinks: true });

    const third = await start();
    await until('all dockets are back', recoveryMs, async () =>
      (await headsOf(third)).length >= heads.length ? true : undefined,
    );
    expect((await headsOf(third)).slice(0, heads.length)).toEqual(heads);
    for (const txId of [...kept, ...lost]) await waitConfirmed(third.api, third.token, registerId, txId);
    await seal(third, 'after', 3);
    checkEvidence(await collectEvidence(third.api, third.token, registerId));
  });
});
