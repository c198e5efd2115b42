import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bearer, grant, startTestTenant, type TestTenant } from '../tenant.fixture.ts';
import { type FakeKeys, fakeKeys } from './keys/keys.fixture.ts';

const password = 'copper violin under snow';
export const publicHost = 'id.example.org';

/** A tenant with two organisations, each with a wallet and an administrator. */
export interface TrustTenant {
  readonly tenant: TestTenant;
  readonly keys: FakeKeys;
  readonly acme: Party;
  readonly other: Party;
  /** Token of a system administrator. */
  readonly system: string;
  call(method: 'GET' | 'POST' | 'DELETE', url: string, options?: CallOptions): Promise<Called>;
  /** Makes an organisation with an administrator, and a wallet. */
  makeParty(name: string, subdomain: string): Promise<Party>;
}

export interface Party {
  readonly id: string;
  readonly wallet: ReturnType<FakeKeys['makeWallet']>;
  /** Token of an administrator. */
  readonly token: string;
  /** Token of a member without a role. */
  readonly member: string;
  /** `/api/v1/trust/tenants/{id}`. */
  readonly tenantPath: string;
  /** Below it `/orgs/{address}`. */
  readonly path: string;
}

interface CallOptions {
  readonly token?: string;
  readonly body?: object;
}

interface Called {
  readonly status: number;
  readonly body: ReturnType<typeof JSON.parse>;
  readonly bytes: Buffer;
  readonly type: string;
}

export async function startTrustTenant(name: string): Promise<TrustTenant> {
  const keys = fakeKeys();
  const tenant = await startTestTenant(name, { CHANCERY_BASE_URL: `https://${publicHost}/` }, keys);
  const system = (await grant(tenant)).access_token;
  const call: TrustTenant['call'] = async (method, url, { token, body } = {}) => {
    const answer = await tenant.app.inject({
      method,
      url,
      ...(token !== undefined && { headers: bearer(token) }),
      ...(body !== undefined && { payload: body }),
    });
    const type = String(answer.headers['content-type'] ?? '');
    const isJson = type.includes('json');
    return {
      status: answer.statusCode,
      body: isJson ? answer.json() : undefined,
      bytes: answer.rawPayload,
      type,
    };
  };
  const makeParty = async (title: string, subdomain: string): Promise<Party> => {
    const made = await call('POST', '/api/organizations', {
      token: system,
      body: { name: title, subdomain, branding: {} },
    });
    const id = made.body.id;
    const signIn = async (part: string, roles: readonly string[]) => {
      const email = `${part}@${subdomain}.example`;
      const user = { email, roles, displayName: 'A User', password };
      await call('POST', `/api/organizations/${id}/users`, { token: system, body: user });
      const body = { email, password, organizationSubdomain: subdomain };
      return (await call('POST', '/api/auth/login', { body })).body.access_token;
    };
    const wallet = keys.makeWallet(id);
    const tenantPath = `/api/v1/trust/tenants/${id}`;
    return {
      id,
      wallet,
      token: await signIn('boss', ['administrator']),
      member: await signIn('member', ['user']),
      tenantPath,
      path: `${tenantPath}/orgs/${wallet.address}`,
    };
  };
  const [acme, other] = [await makeParty('Acme, "Works"', 'acme'), await makeParty('Other', 'other')];
  return { tenant, keys, acme, other, system, call, makeParty };
}

/** OpenSSL in a folder of its own, which judges what this service makes. */
export function openSsl() {
  const folder = mkdtempSync(join(tmpdir(), 'chy-ssl-'));
  const at = (file: string) => join(folder, file);
  return {
    at,
    write: (file: string, content: string | Buffer) => writeFileSync(at(file), content),
    read: (file: string) => readFileSync(at(file), 'utf8'),
    /** Runs `openssl` there; its output, and that of a failure. */
    run: (...args: readonly string[]): string => {
      try {
        return execFileSync('openssl', args, {
          cwd: folder,
          encoding: 'utf8',
          stdio: ['ignore', 'pipe', 'pipe'],
        });
      } catch (error) {
        const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string };
        return `failed: ${stdout}${stderr}`;
      }
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** Whether the machine has OpenSSL; tests that need it are skipped without it. */
export function hasOpenSsl(): boolean {
  try {
    execFileSync('openssl', ['version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
