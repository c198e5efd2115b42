import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Api, createApi } from '../harness/api.ts';
import { checkEvidence, collectEvidence, type Evidence, flipOneByte } from '../harness/evidence.ts';
import { connectHub, type HubClient } from '../harness/hub.ts';
import {
  createRegister,
  createWallet,
  signIn,
  submitThroughRegister,
  type Wallet,
  waitConfirmed,
  waitCount,
  waitOnline,
} from '../harness/journey.ts';
import { createOutsideKey, signSubmission } from '../harness/outside.ts';
import { mintWithSvid, refusedWithWrongSvid } from '../harness/service-token.ts';
import { type LocalSystem, startSystem } from '../harness/system.ts';
import { verifyAccessToken } from '../harness/token.ts';
import { inParallel, until } from '../harness/wait.ts';
import { credentials } from './credentials.ts';
import { fourValidators } from './four-validators.ts';
import { createSteps, duration, explain, type Steps } from './steps.ts';
import { walletKeys } from './wallet-keys.ts';
import { waysIn } from './ways-in.ts';
import { workflow } from './workflow.ts';

/** Parts of the demonstration that run alone by name: `CHAPTERS=workflow`. */
const CHAPTERS = ['people', 'keys', 'credentials', 'ledger', 'workflow', 'validators'] as const;
type Chapter = (typeof CHAPTERS)[number];

const throughRegister = 200;
const signedOutside = 50;
const genesis = 1;

/** A client of a running system. */
interface Caller {
  readonly api: Api;
  readonly token: string;
}

interface Ledger {
  readonly registerId: string;
  readonly confirmedPerSecond: number;
}

async function signInAndVerify(steps: Steps, system: LocalSystem): Promise<Caller> {
  const api = createApi(system.state.gatewayUrl);
  const tokens = await steps.run('sign in as the seeded administrator', async () => {
    const got = await signIn(api, system.state);
    return [`access token for ${got.expires_in} s`, got];
  });
  await steps.run('verify the token against the published keys', async () => {
    const { algorithm, keyId, issuer } = await verifyAccessToken(
      api,
      tokens.access_token,
      system.state.installation,
    );
    return [`${algorithm} by key ${keyId.slice(0, 8)}…, issuer ${issuer}`, undefined];
  });
  return { api, token: tokens.access_token };
}

async function makeRegister(
  steps: Steps,
  { api, token }: Caller,
): Promise<{ registerId: string; owner: Wallet }> {
  const owner = await steps.run('create an ED25519 and a NISTP256 wallet', async () => {
    const ed = await createWallet(api, token, 'ED25519');
    const p256 = await createWallet(api, token, 'NISTP256');
    return [`${ed.walletAddress.slice(0, 14)}… and ${p256.walletAddress.slice(0, 14)}…`, ed];
  });
  const registerId = await steps.run('initiate a register, attest, finalize', async () => {
    const id = await createRegister(api, token, 'Demo register', owner);
    return [`register ${id}`, id];
  });
  await steps.run('watch docket 0 seal', async () => {
    await waitOnline(api, token, registerId);
    return ['sealed by its validator', undefined];
  });
  return { registerId, owner };
}

async function fillRegister(
  steps: Steps,
  caller: Caller,
  made: { registerId: string; owner: Wallet },
): Promise<Ledger> {
  const { api, token } = caller;
  const { registerId, owner } = made;
  const follower = await followRegister(steps, caller, registerId);
  const startedAt = performance.now();
  await steps.run(`submit ${throughRegister} transactions through the register service`, async () => {
    const numbers = Array.from({ length: throughRegister }, (_, n) => n);
    await inParallel(numbers, 16, (n) =>
      submitThroughRegister(api, token, {
        registerId,
        sender: owner.walletAddress,
        payload: { n, kind: 'demo' },
      }),
    );
    return ['signed by the wallet service as the caller', undefined];
  });
  const ids = await steps.run(`submit ${signedOutside} transactions signed by a key of our own`, async () => {
    const key = createOutsideKey();
    const submissions = Array.from({ length: signedOutside }, (_, n) =>
      signSubmission(key, { registerId, payload: { n, kind: 'outside' } }),
    );
    await inParallel(submissions, 16, (json) =>
      api.expect(200, 'POST', '/api/v1/transactions/validate', { token, json }),
    );
    return [`sender ${key.address.slice(0, 14)}…`, submissions.map((submission) => submission.TransactionId)];
  });
  const confirmedPerSecond = await steps.run('see them confirmed', async () => {
    await waitCount(api, token, registerId, genesis + throughRegister + signedOutside);
    await inParallel(ids, 8, (txId) => waitConfirmed(api, token, registerId, txId));
    const seconds = (performance.now() - startedAt) / 1000;
    return [`${throughRegister + signedOutside} confirmed`, (throughRegister + signedOutside) / seconds];
  });
  await steps.run('compare with what the hub has told', async () => {
    const count = (target: string) => follower.signals.filter((one) => one.target === target).length;
    const all = throughRegister + signedOutside;
    await until('the signals of the hub', 5_000, async () =>
      count('TransactionConfirmed') >= all ? true : undefined,
    );
    await follower.stop();
    return [`${count('TransactionConfirmed')} transactions in ${count('DocketSealed')} dockets`, undefined];
  });
  return { registerId, confirmedPerSecond };
}

/** A client of the hub of registers, from now on. */
async function followRegister(steps: Steps, { api, token }: Caller, registerId: string): Promise<HubClient> {
  return steps.run('follow the register over the hub', async () => {
    const targets = ['DocketSealed', 'TransactionConfirmed'];
    const hub = new URL('/hubs/register', api.baseUrl);
    const client = await connectHub(hub, { token, transport: 'WebSockets', targets });
    await client.invoke('SubscribeToRegister', registerId);
    return ['a WebSocket through the gateway', client];
  });
}

async function verifyOffline(steps: Steps, { api, token }: Caller, registerId: string): Promise<Evidence> {
  const evidence = await steps.run(
    'fetch dockets, records, inclusion proofs and the checkpoint',
    async () => {
      const got = await collectEvidence(api, token, registerId);
      return [`${got.dockets.length} dockets, ${got.records.size} records, ${got.proofs.size} proofs`, got];
    },
  );
  await steps.run('verify everything offline', async () => {
    const head = checkEvidence(evidence);
    return [`head ${head.slice(0, 16)}…`, undefined];
  });
  await steps.run('flip one byte of each kind of evidence', async () => {
    const refusals = flipOneByte(evidence);
    return [`${refusals.length} of ${refusals.length} refused`, undefined];
  });
  return evidence;
}

async function serviceTokens(steps: Steps, system: LocalSystem): Promise<void> {
  await steps.run('mint a service token over mTLS with a SPIFFE certificate', async () => {
    const { clientId, expiresInSeconds } = await mintWithSvid(system.state, 'service-register');
    return [`${clientId} for ${expiresInSeconds} s`, undefined];
  });
  await steps.run('request a token with the wrong certificate', async () => {
    const refusal = await refusedWithWrongSvid(system.state, 'service-wallet', 'service-register');
    return [`refused: ${refusal}`, undefined];
  });
}

async function killAndCompare(
  steps: Steps,
  system: LocalSystem,
  before: Evidence,
  dataDir: string,
): Promise<LocalSystem> {
  await steps.run('kill -9 the whole system', async () => {
    await system.kill();
    return [`${system.state.processes.length} processes gone`, undefined];
  });
  const again = await steps.run('start it again', async () => {
    const restarted = await startSystem({ dataDir });
    return [`ready after ${duration(restarted.startedInMs)}`, restarted];
  });
  await steps.run('find every confirmed transaction and the same head', async () => {
    const api = createApi(again.state.gatewayUrl);
    const { access_token: token } = await signIn(api, again.state);
    const after = await collectEvidence(api, token, before.registerId);
    const missing = [...before.records.keys()].filter((txId) => !after.records.has(txId));
    const heads = [checkEvidence(before), checkEvidence(after)];
    if (missing.length > 0 || heads[0] !== heads[1]) {
      throw new Error(
        `${missing.length} transactions are missing; head before ${heads[0]}, after ${heads[1]}`,
      );
    }
    return [`${after.records.size} transactions, head ${heads[1]?.slice(0, 16)}…`, undefined];
  });
  return again;
}

interface Told {
  readonly evidence: Evidence;
  readonly confirmedPerSecond: number;
}

interface Stage {
  readonly steps: Steps;
  readonly dataDir: string;
  /** The running system; a chapter that restarts it leaves another one. */
  system: LocalSystem | undefined;
}

/** Transactions, their proofs, service tokens, and what a kill of the whole system leaves. */
async function ledgerChapter(stage: Stage, system: LocalSystem, caller: Caller): Promise<Told> {
  const { steps, dataDir } = stage;
  const made = await makeRegister(steps, caller);
  const ledger = await fillRegister(steps, caller, made);
  const evidence = await verifyOffline(steps, caller, ledger.registerId);
  await serviceTokens(steps, system);
  stage.system = await killAndCompare(steps, system, evidence, dataDir);
  return { evidence, confirmedPerSecond: ledger.confirmedPerSecond };
}

async function perform(stage: Stage, chapters: ReadonlySet<Chapter>): Promise<Told | undefined> {
  const { steps, dataDir } = stage;
  let told: Told | undefined;
  if (
    (['people', 'keys', 'credentials', 'ledger', 'workflow'] as const).some((chapter) =>
      chapters.has(chapter),
    )
  ) {
    const system = await steps.run('start local mode on an empty directory', async () => {
      const started = await startSystem({ dataDir });
      return [`gateway ${started.state.gatewayUrl}`, started];
    });
    stage.system = system;
    const caller = await signInAndVerify(steps, system);
    if (chapters.has('people')) await waysIn(steps, caller.api, dataDir);
    if (chapters.has('keys')) await walletKeys(steps, caller);
    if (chapters.has('credentials')) await credentials(steps, { ...caller, system, dataDir });
    if (chapters.has('ledger')) told = await ledgerChapter(stage, system, caller);
    if (chapters.has('workflow')) {
      const running = stage.system;
      stage.system = await workflow(steps, running, { token: caller.token, dataDir });
    }
    await stage.system.stop();
    stage.system = undefined;
  }
  if (chapters.has('validators')) await fourValidators(steps, join(dataDir, 'four'));
  return told;
}

function summary(told: Told | undefined, startedAt: number): string {
  const lines = [
    ...(told === undefined
      ? []
      : [
          `transactions  ${told.evidence.records.size} sealed in ${told.evidence.dockets.length} dockets`,
          `rate          ${told.confirmedPerSecond.toFixed(0)} confirmed per second through the gateway`,
          `head          ${checkEvidence(told.evidence)}`,
        ]),
    `time          ${((performance.now() - startedAt) / 1000).toFixed(1)} s`,
    'verified',
  ];
  return `\nSummary\n${lines.map((line) => `  ${line}\n`).join('')}`;
}

/** The chapters of the variable CHAPTERS, separated by commas; all when it is empty. */
function chosenChapters(): ReadonlySet<Chapter> {
  const names = (process.env['CHAPTERS'] ?? '').split(',').filter((name) => name !== '');
  const chosen = CHAPTERS.filter((chapter) => names.includes(chapter));
  const unknown = names.filter((name) => !CHAPTERS.some((chapter) => chapter === name));
  if (unknown.length > 0) throw new Error(`no chapter ${unknown.join()}; there are ${CHAPTERS.join(', ')}`);
  return new Set(names.length === 0 ? CHAPTERS : chosen);
}

async function main(): Promise<void> {
  const write = (text: string): void => {
    process.stdout.write(text);
  };
  const dataDir = mkdtempSync(join(tmpdir(), 'chancery-demo-'));
  const stage: Stage = { steps: createSteps(write), dataDir, system: undefined };
  write('Chancery: one signed transaction to a sealed docket, and back as a proof anyone can check.\n\n');
  try {
    write(summary(await perform(stage, chosenChapters()), stage.steps.startedAt));
  } catch (error) {
    write(`\n${explain(error)}\n`);
    process.exitCode = 1;
  } finally {
    await stage.system?.stop();
    if (process.exitCode === 1) {
      write(`\nState and logs are kept in ${dataDir}\n`);
    } else {
      rmSync(dataDir, { recursive: true, force: true });
    }
  }
}

await main();
