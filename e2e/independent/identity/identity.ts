import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createAccounts } from '../../harness/account.ts';
import { createApi } from '../../harness/api.ts';
import type { LocalState } from '../../harness/system.ts';
import { type Counts, countsOf, execute, hasGo, script } from '../programs.ts';

const password = 'marble orchard seldom rains';

/** How people and services sign in, judged by other implementations of the protocols. */
export async function judgeIdentity(state: LocalState, dataDir: string): Promise<Counts[]> {
  const { gatewayUrl, adminEmail, adminPasswordFile, installation } = state;
  // Passkeys want a domain, and an address is none.
  const domainUrl = gatewayUrl.replace('127.0.0.1', 'localhost');
  const accounts = createAccounts(createApi(gatewayUrl), dataDir);
  const passwordFile = join(dataDir, 'person-password');
  writeFileSync(passwordFile, password, { mode: 0o600 });
  const personOf = async (name: string) => {
    const email = `${name}@judges.example`;
    await accounts.create(email, password);
    return ['--email', email, '--password-file', passwordFile];
  };
  return [
    await script('identity/totp.py', [gatewayUrl, ...(await personOf('totp'))]),
    await script('identity/passkeys.py', [domainUrl, ...(await personOf('passkeys'))]),
    await goPasskeys(domainUrl, await personOf('virtual')),
    await script('identity/oauth_client.py', [
      gatewayUrl,
      ...['--email', adminEmail, '--password-file', adminPasswordFile],
      ...['--installation', installation, '--internal-token-url', state.internalTokenUrl],
      ...['--secrets-dir', state.serviceSecretsDir],
    ]),
  ];
}

async function goPasskeys(baseUrl: string, person: readonly string[]): Promise<Counts> {
  if (!hasGo()) {
    process.stdout.write('\nidentity/go\nskipped: no Go\n');
    return { passed: 0, failed: 0 };
  }
  const [, email = '', , passwordFile = ''] = person;
  const folder = fileURLToPath(new URL('go', import.meta.url));
  return countsOf(
    'identity/go',
    await execute('go', ['run', '-C', folder, '.', baseUrl, email, passwordFile]),
  );
}
