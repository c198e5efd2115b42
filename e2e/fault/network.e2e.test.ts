import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Api, createApi } from '../harness/api.ts';
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
import { type FaultyNetwork, openFaultyNetwork } from '../harness/network.ts';
import { createOutsideKey, signSubmission } from '../harness/outside.ts';
import { type LocalSystem, startSystem } from '../harness/system.ts';
import { setStatus } from '../harness/validation.ts';
import { inParallel, until } from '../harness/wait.ts';

const full = process.env['CHANCERY_TEST_LENGTH'] === 'full';
const four = ['validator-0', 'validator-1', 'validator-2', 'validator-3'] as const;
const [one, two, three, other] = four;
const recoveryMs = 60_000;

describe.runIf(process.platform === 'linux')('four validators on a network that fails', () => {
  const outside = createOutsideKey();
  let dataDir = '';
  let network: FaultyNetwork;
  let system: LocalSystem | undefined;
  let api: Api;
  let token = '';
  let owner: Wallet;
  let registerId = '';

  const processOf = (name: string) => system?.current().processes.find((each) => each.name === name)?.pid;
  /** Where a validator really listens, from its environment; the system may not have told of its process yet. */
  const portOf = (name: string): number | undefined => {
    const pid = processOf(name);
    if (pid === undefined) return undefined;
    const variables = readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0');
    return Number(variables.find((each) => each.startsWith('CHANCERY_GRPC_PORT='))?.split('=')[1]);
  };

  beforeAll(async () => {
    dataDir = mkdtempSync(join(tmpdir(), 'chancery-network-'));
    // the proxies must listen before the validators announce them
    const ports = new Map<string, number>();
    network = await openFaultyNetwork(
      four.map((id) => ({
        id,
        pid: () => processOf(id),
        port: () => {
          const port = ports.get(id) ?? portOf(id);
          if (port !== undefined) ports.set(id, port);
          return port;
        },
      })),
    );
    system = await startSystem({
      dataDir,
      args: ['--processes', '--validators', '4'],
      env: { CHANCERY_VALIDATOR_ENDPOINTS: four.map((id) => network.endpoints[id]).join(',') },
      deadlineMs: 90_000,
    });
    api = createApi(system.state.gatewayUrl);
    token = (await signIn(api, system.state)).access_token;
    owner = await createWallet(api, token, 'ED25519');
    registerId = await createRegister(api, token, 'Faulty network', owner);
    await waitOnline(api, token, registerId);
  });
  afterAll(async () => {
    await system?.stop();
    await network.close();
    rmSync(dataDir, { recursive: true, force: true });
  });

  const submit = (payload: unknown) =>
    submitThroughRegister(api, token, { registerId, sender: owner.walletAddress, payload });
  /** At the first validator, which the gateway asks: the register service may ask any. */
  async function submitAtFirst(payload: unknown): Promise<string> {
    const submission = signSubmission(outside, { registerId, payload });
    await api.expect(200, 'POST', '/api/v1/transactions/validate', { token, json: submission });
    return submission.TransactionId;
  }
  const dockets = () => fetchDockets(api, token, `/api/registers/${registerId}`);
  const status = () => setStatus(api, token, registerId);

  /** Both members of the side that is asked have said what they can, and no docket came of it. */
  async function nothingIsSealed(): Promise<void> {
    const before = (await dockets()).length;
    await until('both of this side have voted', recoveryMs, async () => {
      const { members } = await status();
      const voted = members.filter(({ step }) => step === 'prevote' || step === 'precommit');
      return voted.length === 2 ? true : undefined;
    });
    expect((await dockets()).length).toBe(before);
  }

  /** Everything accepted is sealed once, all four stand at one head, and the chain verifies offline. */
  async function allAgree(accepted: readonly string[]): Promise<void> {
    await inParallel(accepted, 8, (txId) => waitConfirmed(api, token, registerId, txId));
    await until('all four stand at the same docket', recoveryMs, async () => {
      const { members, lastDocketNumber } = await status();
      return members.every((each) => each.lastDocketNumber === lastDocketNumber) ? true : undefined;
    });
    const sealed = (await dockets()).flatMap((docket) => docket.transactionIds);
    expect(new Set(sealed).size).toBe(sealed.length);
    expect(accepted.filter((txId) => !sealed.includes(txId))).toEqual([]);
    checkEvidence(await collectEvidence(api, token, registerId));
  }

  test('seals while everything arrives', async () => {
    await allAgree(await inParallel([1, 2, 3], 3, (n) => submit({ calm: n })));
  });

  test('two against two, neither side seals; three against one, the three do; healed, all stand at one head', async () => {
    network.partition([one, two], [three, other]);
    const split = await inParallel([1, 2, 3, 4], 4, (n) => submitAtFirst({ split: n }));
    await nothingIsSealed();
    network.partition([one, two, three], [other]);
    await inParallel(split, 4, (txId) => waitConfirmed(api, token, registerId, txId));
    // the one that is cut off would take them too, and could give them to nobody
    const alone = await inParallel([5, 6], 2, (n) => submitAtFirst({ majority: n }));
    await inParallel(alone, 2, (txId) => waitConfirmed(api, token, registerId, txId));
    for (const { certificate } of (await dockets()).slice(-1)) {
      expect(certificate.signatures.map(({ validatorId }) => validatorId)).not.toContain(other);
    }
    network.heal();
    await allAgree([...split, ...alone, await submit({ healed: true })]);
  });

  test('200 ms and more on every hop, with losses: slow, and nothing is lost', async () => {
    network.rule('*', '*', { delayMs: 200, jitterMs: 100, loss: 0.05 });
    const count = full ? 500 : 30;
    const accepted: string[] = [];
    const latenciesMs: number[] = [];
    await inParallel(
      Array.from({ length: count }, (_, n) => n),
      10,
      async (n) => {
        const txId = await submit({ slow: n });
        accepted.push(txId);
        const startedAt = performance.now();
        await waitConfirmed(api, token, registerId, txId);
        latenciesMs.push(performance.now() - startedAt);
      },
    );
    network.heal();
    await allAgree(accepted);
    const sorted = latenciesMs.toSorted((a, b) => a - b);
    process.stdout.write(
      `slow network: ${count} transactions, confirmed p50 ${Math.round(sorted[Math.floor(count / 2)] ?? 0)} ms, ` +
        `p99 ${Math.round(sorted[Math.floor(count * 0.99)] ?? 0)} ms\n`,
    );
  });

  test('one direction only: a member that hears and is not heard does not stop the others', async () => {
    network.rule(three, '*', { cut: true });
    // what only the unheard one has taken would wait for the others to hear it
    const accepted = await inParallel([1, 2, 3], 3, (n) => submitAtFirst({ unheard: n }));
    await inParallel(accepted, 3, (txId) => waitConfirmed(api, token, registerId, txId));
    network.heal();
    await allAgree(accepted);
  });
});
