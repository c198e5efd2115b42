import { createHash } from 'node:crypto';
import { z } from 'zod';
import { partsOf, presentParts } from '#core/credential/mdoc/testing/documents.ts';
import { inParallel } from '../../harness/wait.ts';
import type { Row } from '../report.ts';
import type { Stage } from '../stage.ts';
import { perCpuSecond } from '../ways-in/tenant.ts';
import type { Lengths } from '../workflows/lengths.ts';
import { shownClaims, tenClaims } from './claims.ts';
import {
  bySides,
  type Exchange,
  type ExchangeSide,
  type HolderKey,
  holderKey,
  nowSeconds,
  openExchange,
  signJws,
} from './exchange.ts';

const inFlight = 8;
const docType = 'org.example.permit';
const nameSpace = 'org.example.permit.1';
const createdSchema = z.object({ requestId: z.string(), nonce: z.string(), clientId: z.string() });
const objectSchema = z.object({ state: z.string(), response_uri: z.string() });
const resultSchema = z.object({ state: z.string() });

interface Request {
  readonly id: string;
  readonly nonce: string;
  readonly state: string;
  readonly audience: string;
  readonly responseUri: string;
}

/** A credential in a format, and how its holder presents it. */
interface Format {
  /** What is asked for. */
  readonly ask: object;
  present(request: Request): string;
}

/** Answers of wallets to requests, two signatures and two claims each, per CPU second of the credential process. */
export async function presenting(stage: Stage, lengths: Lengths): Promise<readonly Row[]> {
  const exchange = await openExchange(stage, 'presenting');
  const bound = { kind: 'share', atLeast: 0.6 } as const;
  try {
    const sdJwt = await holdSdJwt(exchange);
    const mdoc = await holdMdoc(exchange);
    return [
      {
        measure: 'presented SD-JWT VCs per CPU second',
        ...(await bySides(lengths, () => answers(exchange, sdJwt, lengths.credentials))),
        unit: '/s',
        bound,
      },
      {
        measure: 'presented mdocs per CPU second',
        ...(await bySides(lengths, () => answers(exchange, mdoc, lengths.credentials))),
        unit: '/s',
        bound,
      },
    ];
  } finally {
    await exchange.close();
  }
}

async function take({ ours, offerOne }: Exchange, key: HolderKey, change: object = {}): Promise<string> {
  const { preAuthorizedCode, credentialOffer } = await offerOne(change);
  const id = credentialOffer.credential_configuration_ids[0] ?? '';
  const body = ours.body(id, [key], await ours.nonce());
  const [credential = ''] = await ours.credentials(await ours.token(preAuthorizedCode), body);
  return credential;
}

async function holdSdJwt(exchange: Exchange): Promise<Format> {
  const key = holderKey();
  const [jws = '', ...rest] = (await take(exchange, key)).split('~');
  const chosen = rest.slice(0, -1).filter((one) => {
    const [, name] = JSON.parse(Buffer.from(one, 'base64url').toString());
    return shownClaims.includes(name);
  });
  const shown = [jws, ...chosen, ''].join('~');
  const sd_hash = createHash('sha256').update(shown).digest('base64url');
  return {
    ask: { credentialType: 'urn:platform:credential:site-permit', requiredClaims: shownClaims },
    present: ({ audience: aud, nonce }) =>
      `${shown}${signJws(key.privateKey, { alg: 'ES256', typ: 'kb+jwt' }, { iat: nowSeconds(), aud, nonce, sd_hash })}`,
  };
}

async function holdMdoc(exchange: Exchange): Promise<Format> {
  const key = holderKey();
  const claims = { [nameSpace]: tenClaims };
  const offer = { format: 'mso_mdoc', doctype: docType, credentialType: 'Permit document', claims };
  const { items, ...parts } = partsOf(await take(exchange, key, offer));
  const named = (item: Uint8Array) => shownClaims.some((name) => Buffer.from(item).includes(name));
  const shown = new Map([...items].map(([space, all]) => [space, all.filter(named)] as const));
  const device = { ...key, privateJwk: {} };
  return {
    ask: {
      credentialType: docType,
      format: 'mso_mdoc',
      requiredClaims: shownClaims.map((name) => `${nameSpace}/${name}`),
    },
    present: ({ audience: clientId, nonce, responseUri }) => {
      const session = { clientId, nonce, responseUri, encryptionKeyThumbprint: undefined };
      return presentParts({ ...parts, items: shown }, device, { docType, session });
    },
  };
}

const pathOf = (id: string, part: string) => `/api/v1/verifier/requests/${id}/${part}`;

/** New requests, which the raw program has too. */
async function ask({ ours, organization, program }: Exchange, format: Format, count: number) {
  const requests = await inParallel(Array.from({ length: count }), inFlight, async (): Promise<Request> => {
    const made = await ours.json('/api/v1/verifier/requests', format.ask, organization.service);
    const { requestId: id, nonce, clientId: audience } = createdSchema.parse(made);
    const [, payload = ''] = (await ours.send('GET', pathOf(id, 'request-object'))).split('.');
    const { state, response_uri: responseUri } = objectSchema.parse(
      JSON.parse(Buffer.from(payload, 'base64url').toString()),
    );
    return { id, nonce, state, audience, responseUri };
  });
  await program.tell(JSON.stringify({ requests }));
  return requests;
}

async function answers(exchange: Exchange, format: Format, count: number) {
  const requests = await ask(exchange, format, count);
  const forms = requests.map((request) => ({
    id: request.id,
    vp_token: JSON.stringify({ credential: [format.present(request)] }),
    state: request.state,
  }));
  const rate = (side: ExchangeSide) =>
    perCpuSecond(side.pid, forms, inFlight, ({ id, ...form }) => side.form(pathOf(id, 'direct-post'), form));
  const rates = [await rate(exchange.ours), await rate(exchange.raw)] as const;
  for (const { id } of requests) await assertVerified(exchange, id);
  return rates;
}

async function assertVerified({ ours, organization }: Exchange, id: string): Promise<void> {
  const authorization = `Bearer ${organization.service}`;
  const text = await ours.send('GET', pathOf(id, 'result'), { authorization });
  if (resultSchema.parse(JSON.parse(text)).state !== 'Verified') throw new Error(text);
}
