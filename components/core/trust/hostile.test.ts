import { sign } from 'node:crypto';
import fc from 'fast-check';
import { expect, it, vi } from 'vitest';
import { derBytes, derSequence, readDer } from '../encoding/der.ts';
import { fuzzing, mutatedBytes, mutatedJson, mutatedText } from '../encoding/testing/mutations.ts';
import { isAppError } from '../errors/errors.ts';
import { parseCertificate } from './certificate.ts';
import { validatePath } from './path.ts';
import { judgeRequestObject } from './request-object.ts';
import {
  ALGORITHM,
  altNames,
  basicConstraints,
  chain,
  chainTimeMs,
  dnsName,
  ecKey,
  keyUsage,
  nameConstraints,
  purposes,
} from './testing/chains.ts';
import { bits, sequence } from './testing/der-writer.ts';
import { judgeX5c } from './x5c.ts';

vi.setConfig({ testTimeout: 1_200_000 });

const runs = fuzzing(process.env);

const keys = [ecKey('P-256'), ecKey('P-256'), ecKey('P-256')] as const;
const [leafKey, caKey] = keys;
const { ders, path, anchor } = chain('hostile', keys, {
  0: {
    extensions: [
      basicConstraints(false),
      keyUsage(0),
      purposes('1.3.6.1.5.5.7.3.1'),
      altNames(dnsName('verifier.example')),
    ],
  },
  1: {
    extensions: [
      basicConstraints(true, 1),
      keyUsage(5, 6),
      nameConstraints({ permitted: [dnsName('example')], excluded: [dnsName('evil.example')] }),
    ],
  },
});
const [leafDer, caDer] = ders;
if (leafDer === undefined || caDer === undefined) throw new Error('no chain');
const x5c = path.map(({ der }) => Buffer.from(der).toString('base64'));
const thumbprints = path.map(({ thumbprint }) => thumbprint);

/** The path of a header; undefined when it is refused, with one code of the table. */
function pathOf(header: unknown) {
  const read = judgeX5c(header);
  const judged =
    read.result === undefined
      ? read
      : validatePath({ path: read.result, anchors: [anchor], atMs: chainTimeMs });
  if (judged.result !== undefined) return read.result;
  const codes = ['TRUST_CHAIN_INVALID', 'TRUST_CERT_EXPIRED', 'TRUST_ISSUER_NOT_LISTED'];
  expect(codes).toContain(judged.violations[0].code);
  return undefined;
}

it('a changed certificate is refused', () => {
  expect(pathOf(x5c)).toHaveLength(2);
  for (const [at, der] of [leafDer, caDer].entries()) {
    fc.assert(
      fc.property(mutatedBytes(der), (bytes) => {
        const isSame = Buffer.compare(bytes, der) === 0;
        return (pathOf(x5c.with(at, bytes.toString('base64'))) !== undefined) === isSame;
      }),
      runs(1_000),
    );
  }
});

it('a changed header x5c is refused, or has the same certificates', () => {
  const headers = fc.oneof(
    mutatedJson(x5c),
    mutatedText(x5c[0] ?? '').map((text) => [text, ...x5c.slice(1)]),
  );
  fc.assert(
    fc.property(headers, (header) => {
      const found = pathOf(header)?.map(({ thumbprint }) => thumbprint);
      // A leaf may come without its issuers only when the anchor issued it, which it did not; an issuer may be the leaf.
      return found === undefined || thumbprints.join().endsWith(found.join());
    }),
    runs(700),
  );
});

it('whatever an authority signs, nothing but a judgement comes of it', () => {
  const [body] = derSequence(readDer(leafDer));
  if (body === undefined) throw new Error('no certificate');
  let accepted = 0;
  fc.assert(
    fc.property(mutatedBytes(derBytes(body)), (changed) => {
      const signature = sign('sha256', changed, caKey.privateKey);
      const der = sequence(changed, ALGORITHM.ecdsaSha256.identifier, bits(signature));
      const [found] = pathOf([der.toString('base64'), ...x5c.slice(1)]) ?? [];
      if (found === undefined) return;
      accepted += 1;
      expect(found.notBeforeMs).toBeLessThanOrEqual(chainTimeMs);
      expect(found.notAfterMs).toBeGreaterThanOrEqual(chainTimeMs);
      expect(found.issuer).toEqual(path[1]?.subject);
    }),
    runs(1_500),
  );
  expect(accepted).toBeGreaterThan(10);
});

it('a certificate is read as the bytes that it was, or refused', () => {
  fc.assert(
    fc.property(mutatedBytes(caDer), (bytes) => {
      try {
        return Buffer.compare(parseCertificate(bytes).der, bytes) === 0;
      } catch (error) {
        return isAppError(error, 'invalid') && error.code === 'CERT_MALFORMED';
      }
    }),
    runs(1_500),
  );
});

const seconds = chainTimeMs / 1000;
const header = { alg: 'ES256', typ: 'oauth-authz-req+jwt', x5c };
const payload = {
  iss: 'x509_san_dns:verifier.example',
  aud: ['https://self-issued.me/v2'],
  iat: seconds,
  nbf: seconds,
  exp: seconds + 300,
  response_type: 'vp_token',
  response_mode: 'direct_post',
  response_uri: 'https://verifier.example/answers/1',
  client_id: 'x509_san_dns:verifier.example',
  nonce: 'n-0S6_WzA2Mj',
  wallet_nonce: 'w',
  state: 's',
  dcql_query: { credentials: [] },
};

function signed(parts: { readonly header: unknown; readonly payload: unknown }): string {
  const input = [parts.header, parts.payload]
    .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .join('.');
  const options = { key: leafKey.privateKey, dsaEncoding: 'ieee-p1363' } as const;
  return `${input}.${sign('sha256', Buffer.from(input), options).toString('base64url')}`;
}

/** The request; undefined when it is refused, with one code of the table. */
function requestOf(text: string) {
  const judged = judgeRequestObject(text, {
    clientId: undefined,
    walletNonce: 'w',
    requestUri: undefined,
    allowsHttp: false,
    atMs: chainTimeMs,
  });
  if (judged.result === undefined)
    expect(['REQUEST_OBJECT_INVALID', 'REQUEST_HOST_MISMATCH']).toContain(judged.violations[0].code);
  return judged.result;
}

const isCertified = (clientId: string) => /^x509_(?:san_dns|hash):/.test(clientId);

it('a changed request object is refused, or is no request of its certificate', () => {
  const whole = signed({ header, payload });
  expect(requestOf(whole)?.path).toHaveLength(2);
  const isSound = (text: string) => {
    const found = requestOf(text);
    if (text === whole) return found !== undefined;
    // A client id of another kind may come without any signature, and then without a path.
    return found === undefined || (found.path === undefined && !isCertified(found.clientId));
  };
  fc.assert(fc.property(mutatedText(whole), isSound), runs(1_500));
});

it('whatever a verifier signs, answers go to the host of its certificate', () => {
  const parts = fc.record(
    { header: mutatedJson(header), payload: mutatedJson(payload) },
    { requiredKeys: [] },
  );
  let accepted = 0;
  fc.assert(
    fc.property(parts, (change) => {
      const found = requestOf(signed({ header, payload, ...change }));
      if (found === undefined) return;
      accepted += 1;
      expect(found.responseUri).toMatch(/^https:/);
      expect(found.nonce).not.toBe('');
      if (found.path !== undefined) expect(found.host).toBe('verifier.example');
      if (isCertified(found.clientId)) expect(found.path).toBeDefined();
    }),
    runs(1_500),
  );
  expect(accepted).toBeGreaterThan(10);
});
