import { type ChildProcess, spawn } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freePorts } from '../../components/standalone/state/ports.ts';
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
import { type LocalSystem, startSystem } from '../harness/system.ts';
import { setStatus } from '../harness/validation.ts';
import { inParallel, until } from '../harness/wait.ts';

const victim = 'validator-2';

describe.runIf(process.platform === 'linux')('A20: one validator identity started twice', () => {
  let dataDir = '';
  let system: LocalSystem;
  let api: Api;
  let token = '';
  let owner: Wallet;
  let registerId = '';
  let twin: ChildProcess | undefined;
  let said = '';

  const submit = (payload: unknown) =>
    submitThroughRegister(api, token, { registerId, sender: owner.walletAddress, payload });
  const sealAll = async (ids: readonly string[]) => {
    await inParallel(ids, 4, (txId) => waitConfirmed(api, token, registerId, txId));
  };

  /** Command line and environment of a running process. */
  function startOf(name: string): { readonly command: string[]; readonly env: Record<string, string> } {
    const pid = system.current().processes.find((each) => each.name === name)?.pid;
    const read = (file: string) => readFileSync(`/proc/${pid}/${file}`, 'utf8').split('\0').filter(Boolean);
    const env = Object.fromEntries(
      read('environ').map((each) => [each.slice(0, each.indexOf('=')), each.slice(each.indexOf('=') + 1)]),
    );
    return { command: read('cmdline'), env };
  }

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
    twin?.kill('SIGKILL');
    await system.stop();
    rmSync(dataDir, { recursive: true, force: true });
  });

  test('the newer one signs, the older one is fenced and says so, and nothing conflicting is signed', async () => {
    await sealAll(await inParallel([1, 2, 3], 3, (n) => submit({ before: n })));
    const { command, env: own } = startOf(victim);
    const [program = '', ...words] = command;
    const copy = join(dataDir, 'copied-volume');
    cpSync(own['CHANCERY_DATA_DIR'] ?? '', copy, { recursive: true });
    const [ops = 0, https = 0, grpc = 0] = await freePorts(3);
    twin = spawn(program, words, {
      env: {
        ...own,
        CHANCERY_DATA_DIR: copy,
        CHANCERY_OPS_PORT: String(ops),
        CHANCERY_HTTPS_PORT: String(https),
        CHANCERY_GRPC_PORT: String(grpc),
        CHANCERY_VALIDATOR_ENDPOINT: `127.0.0.1:${grpc}`,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    for (const stream of [twin.stdout, twin.stderr]) {
      stream?.on('data', (bytes: Buffer) => {
        said += bytes.toString();
      });
    }
    await until('the twin is ready', 60_000, async () => {
      const answer = await fetch(`http://127.0.0.1:${ops}/ready`).catch(() => undefined);
      return answer?.status === 200 ? true : undefined;
    });
    const older = `http://127.0.0.1:${own['CHANCERY_OPS_PORT']}/health`;
    await sealAll(await inParallel([4, 5, 6, 7], 4, (n) => submit({ twice: n })));
    await until('the older one is fenced', 30_000, async () => {
      const answer = await fetch(older).catch(() => undefined);
      if (answer?.status !== 503) return undefined;
      return (await answer.text()).includes('newer') ? true : undefined;
    });
    const { operational } = await setStatus(api, token, registerId);
    expect(operational).toBeGreaterThanOrEqual(3);
    checkEvidence(await collectEvidence(api, token, registerId));
    const metrics = await (await fetch(`http://127.0.0.1:${ops}/metrics`)).text();
    expect(metrics).toMatch(/chancery_validator_consensus_equivocations_total 0\b/);
  });

  test('with the copy gone the first one starts again, signs again, and the chain goes on', async () => {
    twin?.kill('SIGKILL');
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
    expect(said).not.toContain('internal');
  });
});
