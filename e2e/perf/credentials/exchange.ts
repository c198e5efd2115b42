import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import type { Pool } from 'undici';
import { z } from 'zod';
import { createIssuingOrganization, type IssuingOrganization } from '../../harness/issuing-organization.ts';
import { inParallel } from '../../harness/wait.ts';
import { type RawProgram, startRaw } from '../raw/child.ts';
import type { Stage } from '../stage.ts';
import { tenClaims } from './claims.ts';

const inFlight = 8;
const grantType = 'urn:ietf:params:oauth:grant-type:pre-authorized_code';
const tokenSchema = z.object({ access_token: z.string() });
const nonceSchema = z.object({ c_nonce: z.string() });
const issuedSchema = z.object({ credentials: z.array(z.object({ credential: z.string() })) });
const offerSchema = z.object({
  preAuthorizedCode: z.string(),
  offerId: z.string(),
  credentialOffer: z.object({
    credential_issuer: z.string(),
    credential_configuration_ids: z.array(z.string()),
  }),
});
const codesSchema = z.array(z.string());

/** The key of a holder on P-256. */
export interface HolderKey {
  readonly privateKey: KeyObject;
  readonly jwk: Readonly<Record<string, unknown>>;
}

export function holderKey(): HolderKey {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return { privateKey, jwk: { ...publicKey.export({ format: 'jwk' }) } };
}

/** A compact JWS by ES256. */
export function signJws(key: KeyObject, header: object, payload: object): string {
  const input = [header, payload]
    .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .join('.');
  const signature = sign('sha256', Buffer.from(input), { key, dsaEncoding: 'ieee-p1363' });
  return `${input}.${signature.toString('base64url')}`;
}

export const nowSeconds = (): number => Math.floor(Date.now() / 1000);

/** What wallets ask of one side: the credential service, or the raw program, which has the same routes. */
export class ExchangeSide {
  readonly pid: number;
  readonly #pool: Pool;
  readonly #issuer: string;

  constructor(pid: number, pool: Pool, issuer: string) {
    this.pid = pid;
    this.#pool = pool;
    this.#issuer = issuer;
  }

  /** Throws unless the status is 200 or 201. */
  async send(
    method: 'GET' | 'POST',
    path: string,
    { body, ...headers }: Readonly<Record<string, string>> & { readonly body?: string } = {},
  ): Promise<string> {
    const answer = await this.#pool.request({ path, method, headers, ...(body !== undefined && { body }) });
    const text = await answer.body.text();
    if (answer.statusCode > 201) throw new Error(`${path} answered ${answer.statusCode}: ${text}`);
    return text;
  }

  async json(path: string, payload: object, token: string): Promise<unknown> {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    return JSON.parse(await this.send('POST', path, { ...headers, body: JSON.stringify(payload) }));
  }

  form(path: string, fields: Readonly<Record<string, string>>): Promise<string> {
    const body = new URLSearchParams(fields).toString();
    return this.send('POST', path, { 'content-type': 'application/x-www-form-urlencoded', body });
  }

  async token(code: string): Promise<string> {
    const text = await this.form('/token', { grant_type: grantType, 'pre-authorized_code': code });
    return tokenSchema.parse(JSON.parse(text)).access_token;
  }

  async nonce(): Promise<string> {
    return nonceSchema.parse(JSON.parse(await this.send('POST', '/nonce'))).c_nonce;
  }

  /** The body of a request for a credential of each key. */
  body(configurationId: string, keys: readonly HolderKey[], nonce: string): object {
    const jwt = keys.map(({ privateKey, jwk }) =>
      signJws(
        privateKey,
        { alg: 'ES256', typ: 'openid4vci-proof+jwt', jwk },
        { aud: this.#issuer, iat: nowSeconds(), nonce },
      ),
    );
    return { credential_configuration_id: configurationId, proofs: { jwt } };
  }

  async credentials(token: string, body: object): Promise<readonly string[]> {
    const issued = issuedSchema.parse(await this.json('/credential', body, token));
    return issued.credentials.map(({ credential }) => credential);
  }
}

/** An issuing organisation of the stage, and the raw program beside it. */
export interface Exchange {
  readonly organization: IssuingOrganization;
  readonly issuer: string;
  readonly configurationId: string;
  readonly ours: ExchangeSide;
  readonly raw: ExchangeSide;
  readonly program: RawProgram;
  /** Codes of new offers, here and there. */
  offer(count: number): Promise<readonly [ours: readonly string[], raw: readonly string[]]>;
  /** One offer with its id; members replace those of a permit of ten claims. */
  offerOne(change?: object): Promise<z.output<typeof offerSchema>>;
  close(): Promise<void>;
}

/** @param name of the organisation, and of the schema of the raw program */
export async function openExchange(stage: Stage, name: string): Promise<Exchange> {
  const token = await stage.freshToken();
  const { state } = stage.system;
  const organization = await createIssuingOrganization({ api: stage.api, token: () => token, state });
  const pool = stage.pool(stage.addressOf('credential', 'HTTPS'), inFlight);
  const base = new ExchangeSide(stage.pidOf('credential'), pool, '');
  const offerOne = async (change: object = {}) => {
    const { walletAddress: issuerWalletAddress, organizationId: tenantId, service } = organization;
    const offer = { issuerWalletAddress, tenantId, credentialType: 'Site permit', claims: tenClaims };
    return offerSchema.parse(await base.json('/api/v1/offers', { ...offer, ...change }, service));
  };
  const first = await offerOne();
  const { credential_issuer: issuer, credential_configuration_ids: ids } = first.credentialOffer;
  const configurationId = ids[0] ?? '';
  const ours = new ExchangeSide(base.pid, pool, issuer);
  const body = ours.body(configurationId, [holderKey()], await ours.nonce());
  const [sample = ''] = await ours.credentials(await ours.token(first.preAuthorizedCode), body);
  const { x5c } = JSON.parse(Buffer.from(sample.split('.')[0] ?? '', 'base64url').toString());
  const raw = await startRawSide(stage, { schema: `bench_${name}`, issuer, x5c });
  const offer = async (count: number) => {
    const made = await inParallel(Array.from({ length: count }), inFlight, () => offerOne());
    const codes = await raw.program.tell(JSON.stringify({ offers: count, claims: tenClaims }));
    return [
      made.map(({ preAuthorizedCode }) => preAuthorizedCode),
      codesSchema.parse(JSON.parse(codes)),
    ] as const;
  };
  return {
    organization,
    issuer,
    configurationId,
    ours,
    raw: raw.side,
    program: raw.program,
    offer,
    offerOne,
    close: async () => {
      await pool.close();
      await raw.close();
    },
  };
}

/** The raw program, and the program that has its key. */
async function startRawSide(
  stage: Stage,
  { schema, issuer, x5c }: { readonly schema: string; readonly issuer: string; readonly x5c: unknown },
) {
  const pem = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
  const signingKey = pem.export({ type: 'pkcs8', format: 'pem' });
  const signer = await startRaw(new URL('../raw/digest.ts', import.meta.url), {
    ...stage.svid,
    signingKey,
    hash: 'sha256',
  });
  const program = await startRaw(new URL('../raw/credentials/service.ts', import.meta.url), {
    ...stage.svid,
    databaseUrl: stage.rawDatabaseUrl,
    schema,
    issuer,
    x5c,
    signer: signer.said,
  });
  const pool = stage.pool(program.said, inFlight);
  const close = async () => {
    await pool.close();
    await program.stop();
    await signer.stop();
  };
  return { program, side: new ExchangeSide(program.pid, pool, issuer), close };
}

/** Acts of both sides by turns; the first rounds are not counted. */
export async function bySides(
  { rounds, warmUp }: { readonly rounds: number; readonly warmUp: number },
  measure: () => Promise<readonly [ours: number, raw: number]>,
): Promise<{ readonly ours: readonly number[]; readonly raw: readonly number[] }> {
  const ours: number[] = [];
  const raw: number[] = [];
  for (let round = -warmUp; round < rounds; round += 1) {
    const [here, there] = await measure();
    if (round < 0) continue;
    ours.push(here);
    raw.push(there);
  }
  return { ours, raw };
}
