import { connect } from 'node:http2';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { signRaw } from '../sign-raw.ts';
import { bearerIn } from '../token.ts';
import { draftSdJwt, RawNonces, verifyProof } from './issue.ts';
import { verifyMdoc, verifySdJwt } from './present.ts';
import { drawPlace, RawStore } from './store.ts';

/**
 * The minimum of an issuer and a verifier of credentials: routes as the product has them over mutual TLS, the same
 * signatures and one commit each, the key at `digest.ts`. Settings: {key, cert, ca, databaseUrl, schema, issuer, x5c, signer}.
 * Messages are JSON: {offers, claims} answers codes, {requests} and {list} are stored.
 */
const { databaseUrl, schema, issuer, x5c, signer, ...identity } = JSON.parse(process.argv[2] ?? '{}');
const store = await RawStore.open(databaseUrl, schema);
const nonces = new RawNonces();
const keys = connect(signer, { ...identity, checkServerIdentity: () => undefined });
let list = Buffer.alloc(0);

interface Asked {
  readonly body: string;
  readonly authorization: string | undefined;
  readonly url: string;
}

async function credential({ body, authorization }: Asked): Promise<object> {
  const token = bearerIn(authorization) ?? '';
  const claims = await store.findClaims(token);
  const { proofs } = JSON.parse(body);
  const proven = proofs.jwt.map((one: string) => verifyProof(one, issuer)) as ReturnType<
    typeof verifyProof
  >[];
  const [{ nonce } = { nonce: '' }] = proven;
  nonces.assert(nonce);
  const made = await Promise.all(
    proven.map(async ({ jwk, holder }) => {
      const index = drawPlace();
      const { input, disclosures } = draftSdJwt({ claims, issuer, x5c, jwk, index });
      const signature = await signRaw(keys, Buffer.from(input));
      const compact = [`${input}.${signature.toString('base64url')}`, ...disclosures, ''].join('~');
      return { compact, holder, index };
    }),
  );
  await store.issue(token, nonce, made);
  return { credentials: made.map(({ compact }) => ({ credential: compact })) };
}

async function present({ url, body }: Asked): Promise<object> {
  const request = await store.getRequest(url.split('/').at(-2) ?? '');
  const form = new URLSearchParams(body);
  if (form.get('state') !== request.state) throw new Error('the state is of another request');
  const [presentation] = Object.values(JSON.parse(form.get('vp_token') ?? '{}'))
    .flat()
    .map(String);
  const isSdJwt = presentation?.includes('~') === true;
  const claims = (isSdJwt ? verifySdJwt : verifyMdoc)(presentation ?? '', request);
  await store.answer(request.id, { isValid: true, claims });
  return {};
}

async function answer(asked: Asked): Promise<object> {
  if (asked.url === '/nonce') return { c_nonce: nonces.create() };
  if (asked.url === '/credential') return credential(asked);
  if (asked.url !== '/token') return present(asked);
  const code = new URLSearchParams(asked.body).get('pre-authorized_code') ?? '';
  return { access_token: await store.exchange(code), token_type: 'Bearer', expires_in: 300 };
}

async function prepare(message: string): Promise<string> {
  const { offers, claims, requests, list: text } = JSON.parse(message);
  if (text !== undefined) list = Buffer.from(text);
  if (requests !== undefined) await store.addRequests(requests);
  return JSON.stringify(offers === undefined ? [] : await store.offer(offers, JSON.stringify(claims)));
}

process.on('message', (message) => {
  void prepare(String(message)).then((text) => process.send?.(text));
});

const server = createServer(
  { ...identity, requestCert: true, rejectUnauthorized: true, minVersion: 'TLSv1.3' },
  (request, response) => {
    const { url = '', headers, method } = request;
    if (method === 'GET') {
      response.writeHead(200, { 'content-type': 'application/statuslist+jwt' }).end(list);
      return;
    }
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const asked = { url, body: Buffer.concat(chunks).toString(), authorization: headers.authorization };
      answer(asked).then(
        (body) => response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body)),
        (error: unknown) => response.writeHead(500).end(String(error)),
      );
    });
  },
);
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () => {
  process.send?.(`https://127.0.0.1:${(server.address() as AddressInfo).port}`);
});
