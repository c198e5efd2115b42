import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { type Api, createApi } from '../../harness/api.ts';
import { visitProvider } from '../../harness/provider-visit.ts';
import { type LocalSystem, startSystem } from '../../harness/system.ts';
import { cpuSeconds } from '../process-cpu.ts';
import { startRaw } from '../raw/child.ts';
import type { Row } from '../report.ts';
import type { Lengths } from '../workflows/lengths.ts';

const rawRedirect = 'http://127.0.0.1:9/callback';
const begun = z.object({ authorizationUrl: z.string() });
const ended = z.object({ outcome: z.literal('Authenticated') });
const client = z.object({ clientId: z.string(), clientSecret: z.string() });
type Client = z.output<typeof client>;

/** CPU of the tenant process for a sign-in by the identity provider of an organisation, against openid-client alone. */
export async function signingInElsewhere(lengths: Lengths): Promise<readonly Row[]> {
  const dir = mkdtempSync(join(tmpdir(), 'chancery-bench-provider-'));
  const provider = await startRaw(new URL('../raw/provider.ts', import.meta.url), {});
  const issuer = provider.said;
  const env = { CHANCERY_OUTBOUND_ALLOWED: issuer };
  const system = await startSystem({ dataDir: dir, args: ['--processes'], env, deadlineMs: 120_000 });
  try {
    const base = system.state.gatewayUrl.replace('127.0.0.1', 'localhost');
    const redirects = [`${base}/api/auth/callback/corp`, rawRedirect];
    const credentials = client.parse(JSON.parse(await provider.tell(JSON.stringify(redirects))));
    const api = createApi(base);
    await enable(api, system, issuer, credentials);
    const settings = { ...credentials, issuer, redirectUri: rawRedirect };
    const raw = await startRaw(new URL('../raw/relying-party.ts', import.meta.url), settings);
    const tenant = system.current().processes.find(({ name }) => name === 'tenant')?.pid ?? 0;
    const ours = () => signIn(api, base, issuer);
    const bare = async () => {
      await raw.tell(await visitProvider(await raw.tell(''), issuer));
    };
    const figures = { ours: [] as number[], raw: [] as number[] };
    for (let n = 0; n < lengths.warmUp + lengths.rounds; n++) {
      const [here, there] = [
        await millis(tenant, lengths.people, ours),
        await millis(raw.pid, lengths.people, bare),
      ];
      if (n < lengths.warmUp) continue;
      figures.ours.push(here);
      figures.raw.push(there);
    }
    await raw.stop();
    const measure = 'CPU of the tenant process for a sign-in by a provider';
    return [{ measure, ...figures, unit: 'ms', bound: { kind: 'multiple', atMost: 1.5 } }];
  } finally {
    await system.stop();
    await provider.stop();
    rmSync(dir, { recursive: true, force: true });
  }
}

/** Milliseconds of a process's CPU for one of so many acts, one after the other. */
async function millis(pid: number, count: number, act: () => Promise<void>): Promise<number> {
  const before = cpuSeconds(pid);
  for (let n = 0; n < count; n++) await act();
  return ((cpuSeconds(pid) - before) / count) * 1000;
}

async function signIn(api: Api, base: string, issuer: string): Promise<void> {
  const { body, headers } = await api.expect(200, 'POST', '/api/auth/oidc/initiate', {
    json: { orgSubdomain: 'corp' },
  });
  const [cookie = ''] = (headers.get('set-cookie') ?? '').split(';');
  const back = await visitProvider(begun.parse(body).authorizationUrl, issuer);
  const answer = await api.expect(200, 'GET', back.slice(base.length), { headers: { cookie } });
  ended.parse(answer.body);
}

async function enable(
  api: Api,
  { state }: LocalSystem,
  issuerUrl: string,
  credentials: Client,
): Promise<void> {
  const json = { email: state.adminEmail, password: readFileSync(state.adminPasswordFile, 'utf8').trim() };
  const signedIn = await api.expect(200, 'POST', '/api/auth/login', { json });
  const { access_token: token } = z.object({ access_token: z.string() }).parse(signedIn.body);
  const corp = { name: 'Corp', subdomain: 'corp' };
  const made = await api.expect(201, 'POST', '/api/organizations', { token, json: corp });
  const idp = `/api/organizations/${z.object({ id: z.string() }).parse(made.body).id}/idp`;
  const settings = { providerPreset: 'GenericOidc', issuerUrl, ...credentials };
  await api.expect(200, 'PUT', idp, { token, json: settings });
  await api.expect(200, 'POST', `${idp}/toggle`, { token, json: { enabled: true } });
}
