import 'reflect-metadata';
import { execFileSync } from 'node:child_process';
import { webcrypto } from 'node:crypto';
import {
  type JsonGeneralNames,
  Pkcs10CertificateRequestGenerator,
  SubjectAlternativeNameExtension,
} from '@peculiar/x509';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { verifyCsr } from './csr.ts';

const id = 'spiffe://acme.local/service/service-wallet';
const p256 = { name: 'ECDSA', namedCurve: 'P-256' };
const p384 = { name: 'ECDSA', namedCurve: 'P-384' };
const rsa = {
  name: 'RSASSA-PKCS1-v1_5',
  modulusLength: 2048,
  publicExponent: new Uint8Array([1, 0, 1]),
  hash: 'SHA-256',
};
type KeyAlgorithm = typeof p256 | typeof rsa;

async function request(names: JsonGeneralNames = [], algorithm: KeyAlgorithm = p256): Promise<string> {
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  if (!('privateKey' in keys)) throw new Error('no key pair');
  const csr = await Pkcs10CertificateRequestGenerator.create({
    name: 'CN=anything',
    keys,
    signingAlgorithm: { ...algorithm, hash: 'SHA-256' },
    extensions: names.length === 0 ? [] : [new SubjectAlternativeNameExtension(names)],
  });
  return csr.toString('pem');
}

/** Flips one bit of the last byte, which belongs to the signature. */
function withBadSignature(pem: string): string {
  const body = pem.replaceAll(/-----[^-]+-----|\s/g, '');
  const bytes = Buffer.from(body, 'base64');
  bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1;
  return wrap(bytes);
}

function wrap(bytes: Uint8Array): string {
  const body = Buffer.from(bytes).toString('base64');
  return `-----BEGIN CERTIFICATE REQUEST-----\n${body}\n-----END CERTIFICATE REQUEST-----\n`;
}

function refused(reason: string) {
  return { kind: 'invalid', code: 'CSR_REFUSED', details: { reason } };
}

describe('a certificate request', () => {
  it('gives its key, whatever its subject', async () => {
    const key = await verifyCsr(await request(), id);
    expect(key.algorithm).toMatchObject(p256);
  });

  it('may name the identity that its sender gets', async () => {
    await verifyCsr(await request([{ type: 'url', value: id }]), id);
  });

  it('may be made by openssl', async () => {
    const args = [
      'req',
      '-new',
      '-newkey',
      'ec',
      '-pkeyopt',
      'ec_paramgen_curve:P-256',
      '-nodes',
      '-subj',
      '/CN=x',
    ];
    const pem = execFileSync('openssl', [...args, '-keyout', '/dev/null'], {
      encoding: 'utf8',
      stdio: 'pipe',
    });
    await verifyCsr(pem, id);
  });

  it.each<[string, JsonGeneralNames]>([
    ['another identity', [{ type: 'url', value: 'spiffe://acme.local/service/service-tenant' }]],
    [
      'one more identity',
      [
        { type: 'url', value: id },
        { type: 'url', value: 'spiffe://acme.local/service/a' },
      ],
    ],
    [
      'a host',
      [
        { type: 'url', value: id },
        { type: 'dns', value: 'service-tenant' },
      ],
    ],
    ['an address', [{ type: 'ip', value: '10.0.0.1' }]],
  ])('is refused when it requests %s', async (_what, names) => {
    await expect(verifyCsr(await request(names), id)).rejects.toMatchObject(refused('csr_name'));
  });

  it('is refused when its sender does not hold the key', async () => {
    await expect(verifyCsr(withBadSignature(await request()), id)).rejects.toMatchObject(
      refused('csr_signature'),
    );
  });

  it('is refused with another kind of key', async () => {
    await expect(verifyCsr(await request([], p384), id)).rejects.toMatchObject(refused('csr_key'));
    await expect(verifyCsr(await request([], rsa), id)).rejects.toMatchObject(refused('csr_key'));
  });

  it('is refused when it cannot be parsed, whatever it is', async () => {
    const whole = await request();
    const body = Buffer.from(whole.replaceAll(/-----[^-]+-----|\s/g, ''), 'base64');
    const texts = fc.oneof(
      fc.string(),
      fc.uint8Array({ minLength: 1, maxLength: 300 }).map(wrap),
      fc.nat(body.length - 2).map((length) => wrap(body.subarray(0, length + 1))),
    );
    await fc.assert(
      fc.asyncProperty(texts, async (text) => {
        await expect(verifyCsr(text, id)).rejects.toMatchObject({ code: 'CSR_REFUSED' });
      }),
      { numRuns: 300 },
    );
    await expect(verifyCsr(whole + whole, id)).rejects.toMatchObject(refused('csr_unreadable'));
  });

  it.each([3, 17, 223])('is refused when it names no curve (%i)', async (bits) => {
    const body = Buffer.from((await request()).replaceAll(/-----[^-]+-----|\s/g, ''), 'base64');
    const curve = body.indexOf(Buffer.from('06082a8648ce3d030107', 'hex'));
    body[curve] = (body[curve] ?? 0) ^ bits;
    await expect(verifyCsr(wrap(body), id)).rejects.toMatchObject(refused('csr_unreadable'));
  });

  it('gives no other key than its own, whichever byte is changed', async () => {
    const whole = await request();
    const body = Buffer.from(whole.replaceAll(/-----[^-]+-----|\s/g, ''), 'base64');
    const own = Buffer.from((await verifyCsr(whole, id)).rawData);
    const change = fc.tuple(fc.nat(body.length - 1), fc.integer({ min: 1, max: 255 }));
    await fc.assert(
      fc.asyncProperty(change, async ([at, bits]) => {
        const changed = Buffer.from(body);
        changed[at] = (changed[at] ?? 0) ^ bits;
        const key = await verifyCsr(wrap(changed), id).catch((error: unknown) => {
          expect(error).toMatchObject({ code: 'CSR_REFUSED' });
        });
        // The bytes around the signed part may have more than one spelling.
        if (key !== undefined) expect(Buffer.from(key.rawData).equals(own)).toBe(true);
      }),
      { numRuns: 300 },
    );
  });
});
