import { join } from 'node:path';
import { z } from 'zod';
import { createApi } from '../harness/api.ts';
import { createOrganization, createPerson } from '../harness/governance.ts';
import { signIn } from '../harness/journey.ts';
import type { LocalState } from '../harness/system.ts';
import { type Counts, countsOf, execute, goFolder, hasGo, script } from './programs.ts';

const metadata = z.object({ token_endpoint: z.string() });

/**
 * Second factors, passkeys and OAuth, judged by programs that play the app, the authenticator, the browser and the client.
 *
 * @param dataDir the folder of the local mode, which has its `local.json`.
 */
export async function judgeSignIn(state: LocalState, dataDir: string, isFull: boolean): Promise<Counts[]> {
  const { gatewayUrl, adminEmail, adminPasswordFile, installation } = state;
  const account = ['--email', adminEmail, '--password-file', adminPasswordFile];
  const oldCodes = isFull ? ['--old-codes'] : [];
  return [
    await script('totp_agreement.py', [gatewayUrl, ...account, '--installation', installation, ...oldCodes]),
    await script('passkeys.py', [gatewayUrl, ...account]),
    await goPasskeys(state),
    await script('oauth_client.py', [join(dataDir, 'local.json')]),
  ];
}

/** Passkeys of `descope/virtualwebauthn`, for a person of their own. */
async function goPasskeys(state: LocalState): Promise<Counts> {
  if (!hasGo()) {
    process.stdout.write('\ngo/passkeys\nskipped: no Go\n');
    return { passed: 0, failed: 0 };
  }
  const api = createApi(state.gatewayUrl);
  const { access_token: root } = await signIn(api, state);
  const organization = await createOrganization(api, root, 'virtual');
  const { email, password } = await createPerson(api, root, organization, { name: 'virtual', role: 'User' });
  const { body } = await api.expect(200, 'GET', '/.well-known/oauth-authorization-server/api/service-auth');
  const { origin } = new URL(metadata.parse(body).token_endpoint);
  const input = JSON.stringify({ gatewayUrl: state.gatewayUrl, origin, email, password });
  return countsOf('go/passkeys', await execute('go', ['run', '-C', goFolder, './passkeys'], input));
}
