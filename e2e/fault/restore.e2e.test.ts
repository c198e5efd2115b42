import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
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
import { consensusMetrics, setStatus } from '../harness/validation.ts';
import { inParallel, until } from '../harness/wait.ts';

const recoveryMs = 60_000;

describe('copies that are older than the chain', () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'chancery-restore-'));
  const database = join(dataDir, 'state', 'postgres');
  const backup = join(dataDir, 'backup');
  const third = 'validator-2';
  const volume = join(dataDir, 'state', 'validators', third);
  const olderVolume = join(dataDir, 'older-volume');
  let system: LocalSystem | undefined;
  let registerId = '';
  let owner: Wallet;

  afterAll(async () => {
    await system?.stop();
    rmSync(dataDir, { recursive: true, force: true });
  });

  async function start() {
    const place = { dataDir: join(dataDir, 'state'), args: ['--validators', '4'] };
    system = await startSystem({ ...place, deadlineMs: 90_000 });
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

  test('of PostgreSQL: the lost dockets are read from the validators, and the same chain continues', async () => {
    const first = await start();
    owner = await createWallet(first.api, first.token, 'ED25519');
    registerId = await createRegister(first.api, first.token, 'Restored register', owner);
    await waitOnline(first.api, first.token, registerId);
    const kept = await seal(first, 'kept', 8);
    await system?.stop();
    expect(existsSync(database)).toBe(true);
    cpSync(database, backup, { recursive: true, verbatimSymlinks: true });
    cpSync(volume, olderVolume, { recursive: true });

    const second = await start();
    const lost = await seal(second, 'lost', 12);
    const heads = await headsOf(second);
    await system?.stop();
    rmSync(database, { recursive: true });
    cpSync(backup, database, { recursive: true, verbatimSymlinks: true });

    const restored = await start();
    await until('all dockets are back', recoveryMs, async () =>
      (await headsOf(restored)).length >= heads.length ? true : undefined,
    );
    expect((await headsOf(restored)).slice(0, heads.length)).toEqual(heads);
    for (const txId of [...kept, ...lost])
      await waitConfirmed(restored.api, restored.token, registerId, txId);
    await seal(restored, 'after', 3);
    checkEvidence(await collectEvidence(restored.api, restored.token, registerId));
    await system?.stop();
  });

  test('of the volume of one validator: it says what it lacks, catches up, votes again, and contradicts nothing', async () => {
    rmSync(volume, { recursive: true });
    cpSync(olderVolume, volume, { recursive: true });
    const running = await start();
    const { api, token } = running;
    const chain = (await headsOf(running)).length;
    const gapOf = async (id: string) => {
      const { members } = await setStatus(api, token, registerId);
      return members.find(({ validatorId }) => validatorId === id)?.volumeBehind;
    };
    const gap = await until('it says that it is behind', recoveryMs, () => gapOf(third));
    expect(gap).toMatchObject({ chain });
    expect(gap.held).toBeGreaterThan(0);
    expect(gap.held).toBeLessThan(chain);
    expect(await gapOf('validator-0')).toBeUndefined();
    const logs = join(dataDir, 'state', 'logs');
    const said = readdirSync(logs).some((name) =>
      readFileSync(join(logs, name), 'utf8').includes(`it lacks dockets ${gap.held} to ${chain - 1}`),
    );
    expect(said).toBe(true);
    const votesOf = async () =>
      (await fetchDockets(api, token, `/api/registers/${registerId}`))
        .slice(chain)
        .filter(({ certificate }) => certificate.signatures.some(({ validatorId }) => validatorId === third));
    let round = 0;
    await until('it votes again', recoveryMs, async () => {
      round += 1;
      await seal(running, `volume ${round}`, 2);
      return (await votesOf()).length > 0 ? true : undefined;
    });
    await until('all four stand at the same docket', recoveryMs, async () => {
      const now = await setStatus(api, token, registerId);
      return now.members.every((each) => each.lastDocketNumber === now.lastDocketNumber) ? true : undefined;
    });
    expect((await consensusMetrics(api, token)).evidenceCount).toBe(0);
    checkEvidence(await collectEvidence(api, token, registerId));
  });
});
