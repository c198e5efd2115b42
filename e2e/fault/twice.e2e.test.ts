import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Api, createApi } from '../harness/api.ts';
import { checkEvidence, collectEvidence } from '../harness/evidence.ts';
import {
  createRegister,
  createWallet,
  signIn,
  submitThroughRegister,
  type Wallet,
  waitConfirmed,
  waitOnline,
} from '../harness/journey.ts';
import { type OwnProcess, SERVICE_PORTS, startOf, startOnFreePorts } from '../harness/running-process.ts';
import { type LocalSystem, startSystem } from '../harness/system.ts';
import { setStatus } from '../harness/validation.ts';
import { inParallel, until } from '../harness/wait.ts';

const victim = 'validator-2';

describe.runIf(process.platform === 'linux')('one validator identity started twice', () => {
  let dataDir = '';
  let system: LocalSystem;
  let api: Api;
  let token = '';
  let owner: Wallet;
  let registerId = '';
  let twin: OwnProcess | undefined;

  const submit = (payload: unknown) =>
    submitThroughRegister(api, token, { registerId, sender: owner.walletAddress, payload });
  const sealAll = async (ids: readonly string[]) => {
    await inParallel(ids, 4, (txId) => waitConfirmed(api, token, registerId, txId));
  };

  beforeAll(async () => {
    dataDir = mkdtempSync(join(tmpdir(), 'chancery-twice-'));
    system = await startSystem({ dataDir, args: ['--processes', '--validators', '4'], deadlineMs: 90_000 });
    api = createApi(system.state.gatewayUrl);
    token = (await signIn(api, system.state)).access_token;
    owner = await createWallet(api, token, 'ED25519');
    registerId = await createRegister(api, token, 'One identity', owner);
    await waitOnline(api, token, registerId);
  });
  afterAll(async () => {
    await twin?.kill();
    await system.stop();
    rmSync(dataDir, { recursive: true, force: true });
  });

  test('the newer one signs, the older one is fenced and says so, and nothing conflicting is signed', async () => {
    await sealAll(await inParallel([1, 2, 3], 3, (n) => submit({ before: n })));
    const start = startOf(system.current().processes.find(({ name }) => name === victim)?.pid);
    const own = start.env;
    const copy = join(dataDir, 'copied-volume');
    cpSync(own['CHANCERY_DATA_DIR'] ?? '', copy, { recursive: true });
    const placed = await startOnFreePorts(start, SERVICE_PORTS, (ports) => ({
      CHANCERY_DATA_DIR: copy,
      CHANCERY_VALIDATOR_ENDPOINT: `127.0.0.1:${ports['CHANCERY_GRPC_PORT']}`,
    }));
    twin = placed;
    const ops = placed.ports['CHANCERY_OPS_PORT'];
    const older = `http://127.0.0.1:${own['CHANCERY_OPS_PORT']}`;
    const isAlive = async (url: string) => (await fetch(`${url}/alive`)).status === 200;
    expect(await isAlive(older)).toBe(true);
    await sealAll(await inParallel([4, 5, 6, 7], 4, (n) => submit({ twice: n })));
    await until('the older one is fenced', 30_000, async () => {
      const answer = await fetch(`${older}/health`).catch(() => undefined);
      if (answer?.status !== 503) return undefined;
      return (await answer.text()).includes('newer') ? true : undefined;
    });
    // what a kubelet asks before it starts a container again
    expect([await isAlive(older), await isAlive(`http://127.0.0.1:${ops}`)]).toEqual([false, true]);
    const { operational } = await setStatus(api, token, registerId);
    expect(operational).toBeGreaterThanOrEqual(3);
    checkEvidence(await collectEvidence(api, token, registerId));
    const metrics = await (await fetch(`http://127.0.0.1:${ops}/metrics`)).text();
    expect(metrics).toMatch(/chancery_validator_consensus_equivocations_total\{kind="duplicate-vote"\} 0\b/);
    expect(metrics).toMatch(/chancery_validator_evidence_held 0\b/);
  });

  test('after the copy has stopped, the first validator restarts, signs, and the chain continues', async () => {
    await twin?.kill();
    system.killOne(victim);
    await until('it has ended', 20_000, async () =>
      system.current().processes.some(({ name }) => name === victim) ? undefined : true,
    );
    await system.again(victim);
    await until('it signs again', 60_000, async () => {
      await sealAll([await submit({ again: Date.now() })]);
      const latest = await api.expect(200, 'GET', `/api/registers/${registerId}/dockets/latest`, { token });
      const { certificate } = latest.body as { certificate: { signatures: { validatorId: string }[] } };
      return certificate.signatures.some(({ validatorId }) => validatorId === victim) ? true : undefined;
    });
    checkEvidence(await collectEvidence(api, token, registerId));
    expect(twin?.output()).not.toContain('internal');
  });
});
