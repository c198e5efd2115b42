import { createHash, sign } from 'node:crypto';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { canonicalJson } from '../encoding/jcs.ts';
import { judgeRequestObject, type RequestExpectation } from './request-object.ts';
import { altNames, chain, chainTimeMs, dnsName, ecKey } from './testing/chains.ts';

const key = ecKey('P-256');
const { path } = chain('verifier', [key, ecKey('P-256'), ecKey('P-256')], {
  0: { extensions: [altNames(dnsName('verifier.example'), dnsName('other.example'))] },
});
const [leaf] = path;
if (leaf === undefined) throw new Error('the chain has no leaf');
const x5c = path.map(({ der }) => Buffer.from(der).toString('base64'));
const seconds = chainTimeMs / 1000;

const sound = {
  iss: 'x509_san_dns:verifier.example',
  aud: 'https://self-issued.me/v2',
  iat: seconds,
  exp: seconds + 300,
  response_type: 'vp_token',
  response_mode: 'direct_post',
  response_uri: 'https://verifier.example/answers/1',
  client_id: 'x509_san_dns:verifier.example',
  nonce: 'n-0S6_WzA2Mj',
  state: 's',
  dcql_query: { credentials: [] },
};

const encode = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url');

function object(change: object = {}, header: object = {}): string {
  const input = [
    { alg: 'ES256', typ: 'oauth-authz-req+jwt', x5c, ...header },
    { ...sound, ...change },
  ]
    .map(encode)
    .join('.');
  const signature = sign('sha256', Buffer.from(input), {
    key: key.privateKey,
    dsaEncoding: 'ieee-p1363',
  });
  return `${input}.${signature.toString('base64url')}`;
}

const unsigned = (change: object) =>
  `${encode({ alg: 'none', typ: 'oauth-authz-req+jwt' })}.${encode({ ...sound, ...change })}.`;

function judged(text: string, change: Partial<RequestExpectation> = {}) {
  const expected = {
    clientId: undefined,
    walletNonce: undefined,
    requestUri: undefined,
    allowsHttp: false,
    atMs: chainTimeMs,
  };
  return judgeRequestObject(text, { ...expected, ...change });
}

const refusalOf = (text: string, change: Partial<RequestExpectation> = {}) => {
  const [found] = judged(text, change).violations;
  return found === undefined ? 'accepted' : `${found.code} ${found.field ?? ''}`.trim();
};

it('reads a request whose certificate names the host', () => {
  const { result } = judged(object(), { clientId: sound.client_id });
  expect(result).toMatchObject({
    clientId: 'x509_san_dns:verifier.example',
    host: 'verifier.example',
    responseUri: sound.response_uri,
    responseMode: 'direct_post',
    nonce: sound.nonce,
    state: 's',
    dcqlQuery: { credentials: [] },
  });
  expect(result?.path?.[0]?.thumbprint).toBe(leaf.thumbprint);
});

it('reads a request whose client id is the hash of its certificate', () => {
  const hash = createHash('sha256').update(leaf.der).digest('base64url');
  expect(refusalOf(object({ client_id: `x509_hash:${hash}` }))).toBe('accepted');
  expect(refusalOf(object({ client_id: `x509_hash:${hash.slice(1)}A` }))).toBe(
    'REQUEST_OBJECT_INVALID client_id',
  );
  expect(refusalOf(object({ client_id: `x509_hash:${hash}`, response_uri: 'https://evil.example/' }))).toBe(
    'REQUEST_HOST_MISMATCH response_uri',
  );
});

it.each([
  [
    'answers to another host',
    { response_uri: 'https://evil.example/' },
    'REQUEST_HOST_MISMATCH response_uri',
  ],
  [
    'answers to another of its hosts than it asks in the name of',
    { response_uri: 'https://other.example/' },
    'REQUEST_HOST_MISMATCH response_uri',
  ],
  [
    'a host that the certificate does not name',
    { client_id: 'x509_san_dns:evil.example', response_uri: 'https://evil.example/' },
    'REQUEST_HOST_MISMATCH client_id',
  ],
  [
    'a host that contains the name',
    { response_uri: 'https://verifier.example.evil.example/' },
    'REQUEST_HOST_MISMATCH response_uri',
  ],
  [
    'a name before an @',
    { response_uri: 'https://verifier.example@evil.example/' },
    'REQUEST_OBJECT_INVALID response_uri',
  ],
  ['answers in plain', { response_uri: 'http://verifier.example/' }, 'REQUEST_OBJECT_INVALID response_uri'],
  ['no address', { response_uri: 'verifier.example' }, 'REQUEST_OBJECT_INVALID response_uri'],
  ['no nonce', { nonce: '' }, 'REQUEST_OBJECT_INVALID nonce'],
  ['another audience', { aud: 'https://wallet.example' }, 'REQUEST_OBJECT_INVALID aud'],
  ['the end of its time', { exp: seconds - 60 }, 'REQUEST_OBJECT_INVALID exp'],
  ['a time to come', { iat: seconds + 61 }, 'REQUEST_OBJECT_INVALID iat'],
  ['a text as time', { exp: '9999999999' }, 'REQUEST_OBJECT_INVALID exp'],
  ['another response type', { response_type: 'code' }, 'REQUEST_OBJECT_INVALID response_type'],
  ['another response mode', { response_mode: 'fragment' }, 'REQUEST_OBJECT_INVALID response_mode'],
  ['no query', { dcql_query: undefined }, 'REQUEST_OBJECT_INVALID dcql_query'],
  [
    'a query of an earlier draft',
    { presentation_definition: {} },
    'REQUEST_OBJECT_INVALID presentation_definition',
  ],
  ['transactions to approve', { transaction_data: ['e30'] }, 'REQUEST_OBJECT_INVALID transaction_data'],
])('refuses a request with %s', (_what, change, expected) => {
  expect(refusalOf(object(change))).toBe(expected);
});

it.each([
  ['another type', { typ: 'JWT' }, 'REQUEST_OBJECT_INVALID typ'],
  ['another algorithm', { alg: 'ES384' }, 'REQUEST_OBJECT_INVALID alg'],
  ['no certificate', { x5c: undefined }, 'REQUEST_OBJECT_INVALID x5c'],
  ['a certificate of another key', { x5c: x5c.toReversed() }, 'REQUEST_OBJECT_INVALID'],
  ['members that change what is signed', { crit: ['exp'] }, 'REQUEST_OBJECT_INVALID'],
])('refuses a header with %s', (_what, header, expected) => {
  expect(refusalOf(object({}, header))).toBe(expected);
});

it('refuses a changed request, a certified name without a signature, and another client id than was offered', () => {
  const [header, , signature] = object().split('.');
  const changed = encode({ ...sound, nonce: 'another' });
  expect(refusalOf(`${header}.${changed}.${signature}`)).toBe('REQUEST_OBJECT_INVALID');
  expect(refusalOf(unsigned({}))).toBe('REQUEST_OBJECT_INVALID');
  expect(refusalOf(object(), { clientId: 'x509_san_dns:other.example' })).toBe(
    'REQUEST_OBJECT_INVALID client_id',
  );
  for (const text of ['', '..', 'a.b.c', `${header}..`, 'e30.e30.', `${object()}.`]) {
    expect(refusalOf(text), text).toMatch(/^REQUEST_OBJECT_INVALID/);
  }
});

it('is for wallets, or names the address that it is served at', () => {
  const requestUri = 'https://verifier.example/requests/1';
  expect(refusalOf(object({ aud: undefined }))).toBe('accepted');
  expect(refusalOf(object({ aud: ['https://self-issued.me/v2', 'x'] }))).toBe('accepted');
  expect(refusalOf(object({ aud: requestUri }), { requestUri })).toBe('accepted');
  for (const aud of [requestUri, [], null, 7])
    expect(refusalOf(object({ aud }))).toBe('REQUEST_OBJECT_INVALID aud');
});

it('repeats the nonce of the wallet', () => {
  expect(refusalOf(object({ wallet_nonce: 'w' }), { walletNonce: 'w' })).toBe('accepted');
  expect(refusalOf(object(), { walletNonce: 'w' })).toBe('REQUEST_OBJECT_INVALID wallet_nonce');
});

it('takes answers over plain HTTP on this machine in development alone', () => {
  const local = unsigned({ client_id: 'someone', response_uri: 'http://localhost:8080/answers' });
  expect(refusalOf(local, { allowsHttp: true })).toBe('accepted');
  expect(refusalOf(local)).toBe('REQUEST_OBJECT_INVALID response_uri');
});

it.each([
  'https://verifier.example\\@evil.example/',
  'https:\\\\verifier.example/answers',
  'https:verifier.example/answers',
  'https://verifier.exam\tple/answers',
  'https://verifier%2eexample/answers',
  'https://verifier。example/answers',
  ' https://verifier.example/answers',
  'https://verifier.example/\u202e',
])('takes no address whose host another reader may find elsewhere: %j', (response_uri) => {
  expect(refusalOf(object({ response_uri }))).toBe('REQUEST_OBJECT_INVALID response_uri');
});

it.each([
  'https://Verifier.Example/a?b=%2F',
  'https://verifier.example:443',
  'https://verifier.example:8443/a',
])('takes an address of the host in other words: %s', (response_uri) => {
  expect(refusalOf(object({ response_uri }))).toBe('accepted');
});

it.each(['client_id', 'nonce', 'state'])('shows no %s that changes how the text around it reads', (name) => {
  for (const value of ['bank\u202eelpmaxe', 'a\nb', 'b\u0430nk'])
    expect(refusalOf(unsigned({ client_id: 'someone', [name]: value }))).toBe(
      `REQUEST_OBJECT_INVALID ${name}`,
    );
});

it('reads requests of which nothing can be verified, without a path', () => {
  const uri = sound.response_uri;
  for (const text of [
    unsigned({ client_id: `redirect_uri:${uri}` }),
    unsigned({ client_id: 'someone' }),
    object({ client_id: 'verifier_attestation:someone' }),
  ]) {
    const { result } = judged(text);
    expect(result?.host).toBe('verifier.example');
    expect(result).toHaveProperty('path', undefined);
  }
  expect(refusalOf(unsigned({ client_id: 'redirect_uri:https://other.example/' }))).toBe(
    'REQUEST_OBJECT_INVALID response_uri',
  );
});

it('nothing but a judgement comes of any text, and no changed request is accepted', () => {
  const whole = object();
  const { result: original } = judged(whole);
  const place = fc.nat(whole.length);
  const part = fc.oneof(
    fc.string({ maxLength: 20 }),
    fc.json().map((text) => Buffer.from(text).toString('base64url')),
  );
  fc.assert(
    fc.property(place, place, part, (from, to, inserted) => {
      const [start, end] = from < to ? [from, to] : [to, from];
      const { violations, result } = judged(`${whole.slice(0, start)}${inserted}${whole.slice(end)}`);
      if (result === undefined) return /^REQUEST_/.test(violations[0].code);
      return canonicalJson({ ...result, path: null }) === canonicalJson({ ...original, path: null });
    }),
    { numRuns: 2_000 },
  );
  fc.assert(
    fc.property(fc.array(part, { maxLength: 4 }), (parts) => judged(parts.join('.')).result === undefined),
  );
});

it('nothing but a judgement comes of any signed members', () => {
  const odd = fc.oneof(
    fc.json().map((text) => JSON.parse(text)),
    fc.constantFrom('', 'x509_hash:', 'x509_san_dns:', ':', 'https://', 'http://localhost', -1, 1e308, [[]], {
      a: {},
    }),
  );
  fc.assert(
    fc.property(fc.dictionary(fc.constantFrom(...Object.keys(sound)), odd), (change) => {
      const { violations, result } = judged(object(change));
      return result !== undefined || /^REQUEST_/.test(violations[0].code);
    }),
    { numRuns: 500 },
  );
});
