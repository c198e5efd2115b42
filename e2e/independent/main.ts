import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { createApi } from '../harness/api.ts';
import { collectEvidence } from '../harness/evidence.ts';
import {
  createRegister,
  createWallet,
  signIn,
  submitThroughRegister,
  waitCount,
  waitOnline,
} from '../harness/journey.ts';
import { fetchSvid } from '../harness/service-token.ts';
import { type LocalState, startSystem } from '../harness/system.ts';
import { inParallel, until } from '../harness/wait.ts';
import { foreignCredentials } from './foreign-credentials.ts';
import { createGovernedRegister } from './governed-register.ts';
import { disclosures } from './groups.ts';
import { historiesText } from './histories.ts';
import { followThroughReplicas } from './hub-clients/reconnection.ts';
import { issuedCredentials } from './issued-credentials.ts';
import { logicAgreement } from './logic-agreement.ts';
import { judgeMultipaz } from './multipaz/judge.ts';
import { readDocument } from './openapi/document.ts';
import { fuzzInstallation } from './openapi/fuzz.ts';
import { readWithTypeScript } from './openapi/typescript-client.ts';
import {
  type Counts,
  closeSuite,
  countChecks,
  countsOf,
  execute,
  goFolder,
  hasGo,
  script,
} from './programs.ts';
import { proofsText } from './proofs.ts';
import { schemaSuite } from './schema-suite.ts';
import { judgeSignIn } from './sign-in.ts';
import { trustLists } from './trust-lists.ts';
import { joseExchange } from './unwrap.ts';

/** Runs programs that share no code with the product against a running installation, and counts their checks. */

const full = process.env['CHANCERY_TEST_LENGTH'] === 'full';
const stepsInHistory = 80;
const command = fileURLToPath(new URL('../../components/cli/main.ts', import.meta.url));

/** The export of a register, verified offline by two programs; a sample of its bytes is changed, too. */
async function exported(state: LocalState, token: string, registerId: string, dir: string): Promise<Counts> {
  const file = join(dir, `${registerId}.jsonl`);
  const path = `/api/registers/${registerId}/export`;
  writeFileSync(file, (await createApi(state.gatewayUrl).expect(200, 'GET', path, { token })).bytes);
  const ours = await execute(process.execPath, [command, 'verify', file]);
  process.stdout.write(`\nchancery verify\n${ours.output}`);
  const theirs = await script('export_verify.py', [file, '--flips', full ? '10000' : '200']);
  return ours.code === 0
    ? { ...theirs, passed: theirs.passed + 1 }
    : { ...theirs, failed: theirs.failed + 1 };
}

/** Checkpoints and proofs of a register, verified by Go's own libraries for transparency logs. */
async function goProofs(state: LocalState, registerId: string): Promise<Counts> {
  if (!hasGo()) {
    process.stdout.write('\ngo\nskipped: no Go\n');
    return { passed: 0, failed: 0 };
  }
  const api = createApi(state.gatewayUrl);
  const token = await administratorToken(state);
  const evidence = await collectEvidence(api, token, registerId);
  const input = await proofsText(api, token, evidence);
  return countsOf('go', await execute('go', ['run', '-C', goFolder, '.'], input));
}

/** openssl must accept the chain of an SVID and find its one URI name. */
async function certificates(state: LocalState, dir: string): Promise<Counts> {
  const { cert, ca } = await fetchSvid(state, 'service-register');
  const [leaf, authority] = [join(dir, 'svid.pem'), join(dir, 'ca.pem')];
  writeFileSync(leaf, cert);
  writeFileSync(authority, ca);
  const verified = await execute('openssl', ['verify', '-purpose', 'sslclient', '-CAfile', authority, leaf]);
  const names = await execute('openssl', [
    'x509',
    '-in',
    leaf,
    '-noout',
    '-ext',
    'subjectAltName,basicConstraints,keyUsage',
  ]);
  const expected = `URI:spiffe://${state.installation}/service/service-register`;
  const checks = {
    'openssl verifies the chain of an SVID': verified.code === 0,
    'openssl finds exactly the SPIFFE id':
      names.output.split('URI:').length === 2 && names.output.includes(expected),
    'openssl finds a leaf that may sign':
      /Digital Signature/.test(names.output) && !/CA:TRUE/.test(names.output),
  };
  return countChecks('openssl', checks);
}

async function administratorToken(state: LocalState): Promise<string> {
  return (await signIn(createApi(state.gatewayUrl), state)).access_token;
}

async function makeRegister(state: LocalState): Promise<string> {
  const api = createApi(state.gatewayUrl);
  const { access_token: token } = await signIn(api, state);
  const owner = await createWallet(api, token, 'ED25519');
  const p256 = await createWallet(api, token, 'NISTP256');
  const registerId = await createRegister(api, token, 'Independently verified', owner);
  await waitOnline(api, token, registerId);
  const senders = Array.from({ length: 30 }, (_, n) => (n % 3 === 0 ? p256 : owner));
  await inParallel(senders, 4, (sender, n) =>
    submitThroughRegister(api, token, {
      registerId,
      sender: sender.walletAddress,
      payload: { n, text: 'zwölf €' },
    }),
  );
  await waitCount(api, token, registerId, 31);
  return registerId;
}

/** Random histories of governance, judged by the product and by a program that shares no code with it. */
async function histories(dir: string): Promise<Counts> {
  const seeds = Array.from({ length: full ? 1_000 : 50 }, (_, index) => index + 1);
  const file = join(dir, 'histories.jsonl');
  writeFileSync(file, historiesText(seeds, stepsInHistory));
  return script('rules_replay.py', [file]);
}

/** A register whose roster, validators and policies changed, read by its owner. */
async function governedRegister(state: LocalState, dir: string): Promise<Counts[]> {
  const api = createApi(state.gatewayUrl);
  const { access_token: root } = await signIn(api, state);
  const { registerId, owner } = await createGovernedRegister(api, root);
  const passwordFile = join(dir, 'owner-password');
  writeFileSync(passwordFile, owner.password, { mode: 0o600 });
  const account = ['--email', owner.email, '--password-file', passwordFile];
  return [
    await script('chancery_verify.py', [state.gatewayUrl, registerId, ...account, '--submit']),
    await exported(state, owner.token, registerId, dir),
  ];
}

/** The system register, with its first publications. */
async function systemRegister(state: LocalState, account: readonly string[], dir: string): Promise<Counts[]> {
  const api = createApi(state.gatewayUrl);
  const token = await administratorToken(state);
  const registerId = await until('the system register', 30_000, async () => {
    const { body } = await api.expect(200, 'GET', '/api/system-register', { token });
    const { registerId: id, status } = z.object({ registerId: z.string(), status: z.string() }).parse(body);
    return status === 'ready' ? id : undefined;
  });
  return [
    await script('chancery_verify.py', [state.gatewayUrl, registerId, ...account]),
    await exported(state, token, registerId, dir),
  ];
}

async function main(): Promise<void> {
  const dataDir = mkdtempSync(join(tmpdir(), 'chancery-independent-'));
  const system = await startSystem({ dataDir, args: ['--validators', '4'] });
  try {
    const { gatewayUrl, adminEmail, adminPasswordFile, installation } = system.state;
    const registerId = await makeRegister(system.state);
    const account = ['--email', adminEmail, '--password-file', adminPasswordFile];
    const all = [
      await histories(dataDir),
      await script('governance_vectors.py', ['--check']),
      await script('blueprint_vectors.py', ['--check']),
      ...(await schemaSuite(dataDir)),
      await logicAgreement(dataDir, full ? 50_000 : 2_000),
      await script('workflow_vectors.py', []),
      await script('attestation_cases.py', []),
      ...(await disclosures(dataDir, full ? 10_000 : 200)),
      await issuedCredentials(dataDir, full ? 1_000 : 40),
      ...(await foreignCredentials(dataDir)),
      ...(await trustLists(dataDir, full)),
      await script('chancery_verify.py', [gatewayUrl, registerId, ...account, '--submit']),
      await goProofs(system.state, registerId),
      await exported(system.state, await administratorToken(system.state), registerId, dataDir),
      ...(await governedRegister(system.state, dataDir)),
      ...(await systemRegister(system.state, account, dataDir)),
      await script('odata_client.py', [gatewayUrl, registerId, ...account]),
      await script('hub_client.py', [gatewayUrl, registerId, ...account]),
      await script('tokens_verify.py', [gatewayUrl, ...account, '--installation', installation]),
      ...(await judgeSignIn(system.state, dataDir, full)),
      await script('spiffe_client.py', [
        system.state.spiffeSockets['service-register'] ?? '',
        `spiffe://${installation}/service/service-register`,
      ]),
      await certificates(system.state, dataDir),
      ...(await readDocument(gatewayUrl, account)),
      ...(await readWithTypeScript(gatewayUrl, [adminEmail, adminPasswordFile])),
      ...(await joseExchange()),
      ...(await followThroughReplicas()),
      ...(await judgeMultipaz()),
      ...(await fuzzInstallation()),
    ];
    closeSuite('independent', all);
  } finally {
    await system.stop();
    rmSync(dataDir, { recursive: true, force: true });
  }
}

await main();
