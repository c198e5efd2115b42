import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { type Api, createApi } from '../../harness/api.ts';
import { createOrganization, createPerson } from '../../harness/governance.ts';
import {
  createRegister,
  createWallet,
  signIn,
  submitThroughRegister,
  waitConfirmed,
  waitOnline,
} from '../../harness/journey.ts';
import { type LocalSystem, startSystem } from '../../harness/system.ts';
import { type Counts, script } from '../programs.ts';

const full = process.env['CHANCERY_TEST_LENGTH'] === 'full';

/**
 * Fuzzes every operation of an installation of its own, which is deleted afterwards: as its administrator, and in the
 * full length also as a person without a role and without a token. Afterwards it must still seal transactions.
 */
export async function fuzzInstallation(): Promise<Counts[]> {
  const dataDir = mkdtempSync(join(tmpdir(), 'chancery-fuzz-'));
  const system = await startSystem({ dataDir, args: ['--validators', '2'] });
  try {
    const { gatewayUrl, adminEmail, adminPasswordFile } = system.state;
    const api = createApi(gatewayUrl);
    const { access_token: token } = await signIn(api, system.state);
    await sealInNewRegister(api, token);
    // both before the calls, which change limits and settings, and end the sessions of the account that they are made with
    const user = await accountOfUser(api, token, dataDir);
    const witness = await secondAdministrator(api, token);
    const common = [gatewayUrl, '--log', join(dataDir, 'logs', 'chancery.log')];
    const account = ['--email', adminEmail, '--password-file', adminPasswordFile];
    const counts = [
      await script('openapi/fuzz_self_check.py', []),
      await script('openapi/fuzz.py', [...common, ...account, '--seconds', full ? '300' : '60']),
    ];
    if (full) {
      counts.push(await script('openapi/fuzz.py', [...common, ...user, '--seconds', '120']));
      counts.push(await script('openapi/fuzz.py', [...common, '--seconds', '60']));
    }
    return [...counts, await afterwards(system, api, witness)];
  } finally {
    await system.stop();
    rmSync(dataDir, { recursive: true, force: true });
  }
}

/** The account of a person with the role User in an organisation of its own. */
async function accountOfUser(api: Api, root: string, dir: string): Promise<string[]> {
  const organization = await createOrganization(api, root, 'fuzzed');
  const { email, password } = await createPerson(api, root, organization, { name: 'user', role: 'User' });
  const passwordFile = join(dir, 'user-password');
  writeFileSync(passwordFile, password, { mode: 0o600 });
  return ['--email', email, '--password-file', passwordFile];
}

/** Token of another system administrator. */
async function secondAdministrator(api: Api, root: string): Promise<string> {
  const me = await api.expect(200, 'GET', '/api/auth/me', { token: root });
  const { organizationId: id } = z.object({ organizationId: z.string() }).parse(me.body);
  const found = await api.expect(200, 'GET', `/api/organizations/${id}`, { token: root });
  const { subdomain } = z.object({ subdomain: z.string() }).parse(found.body);
  const { token } = await createPerson(
    api,
    root,
    { id, subdomain },
    { name: 'witness', role: 'SystemAdmin' },
  );
  return token;
}

async function sealInNewRegister(api: Api, token: string): Promise<void> {
  const owner = await createWallet(api, token, 'ED25519');
  const registerId = await createRegister(api, token, 'Before and after', owner);
  await waitOnline(api, token, registerId);
  const submission = { registerId, sender: owner.walletAddress, payload: { n: 1 } };
  await waitConfirmed(api, token, registerId, await submitThroughRegister(api, token, submission));
}

/** Judges that the calls broke nothing: every process runs, and a new register seals a transaction. */
async function afterwards(system: LocalSystem, api: Api, token: string): Promise<Counts> {
  process.stdout.write('\nafter the calls\n');
  const names = (list: readonly { name: string }[]) =>
    list
      .map(({ name }) => name)
      .toSorted()
      .join(', ');
  const before = names(system.state.processes);
  const now = names(system.current().processes);
  const health = await api.send('GET', '/api/health');
  const seals = await sealInNewRegister(api, token).then(
    () => '',
    (error: unknown) => String(error),
  );
  const checks = [
    { what: `every process runs: ${now}`, holds: before === now },
    { what: `the gateway calls the services healthy (${health.status})`, holds: health.status === 200 },
    { what: `a new register seals a transaction ${seals}`, holds: seals === '' },
  ];
  for (const { what, holds } of checks) process.stdout.write(`${holds ? 'ok ' : 'NOT'} ${what}\n`);
  const passed = checks.filter(({ holds }) => holds).length;
  return { passed, failed: checks.length - passed };
}
