import { z } from 'zod';
import { SoftwarePasskey } from '../../harness/software-passkey.ts';
import { startRaw } from '../raw/child.ts';
import type { Row } from '../report.ts';
import type { Stage } from '../stage.ts';
import type { Lengths } from '../workflows/lengths.ts';
import { openTenant, password, perCpuSecond, type Tenant } from './tenant.ts';

const email = 'passkey@bench.example';
const inFlight = 4;
const begun = z.object({ transaction_id: z.string(), options: z.looseObject({ challenge: z.string() }) });
const creation = z.object({
  transaction_id: z.string(),
  options: z.object({
    challenge: z.string(),
    rp: z.object({ id: z.string() }),
    user: z.object({ id: z.string() }),
  }),
});
const bare = z.looseObject({ challenge: z.string() });

/** Sign-ins by a synchronised passkey, both requests, per CPU second of the tenant process. */
export async function signingInByPasskey(stage: Stage, lengths: Lengths): Promise<Row> {
  const tenant = openTenant(stage);
  // Passkeys want a domain, and an address is none.
  const [rpID, origin] = ['localhost', stage.system.state.gatewayUrl.replace('127.0.0.1', 'localhost')];
  const device = new SoftwarePasskey(origin);
  await register(tenant, device);
  const signIn = async () => {
    const { transaction_id, options } = begun.parse(
      await tenant.post('/api/auth/passkey/assertion/options', {}),
    );
    const assertion_response = device.get(options.challenge, rpID);
    await tenant.post('/api/auth/passkey/assertion/verify', { transaction_id, assertion_response });
  };
  const raw = await startRaw(new URL('../raw/proofs.ts', import.meta.url), {
    ...stage.svid,
    databaseUrl: stage.rawDatabaseUrl,
    schema: 'passkeys',
    passkeyCommits: await tenant.commitsOf(10, signIn),
    rpID,
    origin,
    publicKey: device.publicKey.toString('base64url'),
  });
  const pool = stage.pool(raw.said, inFlight);
  const ask = async (method: 'GET' | 'POST', body?: string) => {
    const answer = await pool.request({ path: '/', method, ...(body !== undefined && { body }) });
    const text = await answer.body.text();
    if (answer.statusCode !== 200) throw new Error(`the raw program answered ${text}`);
    return JSON.parse(text);
  };
  const signInRaw = async () => {
    const options = bare.parse(await ask('GET'));
    const response = device.get(options.challenge, rpID);
    await ask('POST', JSON.stringify({ response, challenge: options.challenge }));
  };
  const figures = { ours: [] as number[], raw: [] as number[] };
  const all = Array.from({ length: lengths.signIns });
  for (let n = 0; n < lengths.warmUp + lengths.rounds; n++) {
    const ours = await perCpuSecond(tenant.pid, all, inFlight, signIn);
    const theirs = await perCpuSecond(raw.pid, all, inFlight, signInRaw);
    if (n < lengths.warmUp) continue;
    figures.ours.push(ours);
    figures.raw.push(theirs);
  }
  await pool.close();
  await raw.stop();
  await tenant.close();
  return {
    measure: 'sign-ins by passkey, both requests, per CPU second',
    ...figures,
    unit: '/s',
    bound: { kind: 'share', atLeast: 0.55 },
  };
}

async function register({ accounts }: Tenant, device: SoftwarePasskey): Promise<void> {
  await accounts.create(email, password);
  const { access_token: token } = await accounts.signIn(email, password);
  const path = '/api/passkey/register';
  const { transaction_id, options } = creation.parse(
    await accounts.post(`${path}/options`, { display_name: 'Bench' }, token),
  );
  const attestation_response = device.create(options);
  await accounts.post(`${path}/verify`, { transaction_id, attestation_response }, token, 201);
}
