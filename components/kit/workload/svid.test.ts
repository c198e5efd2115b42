import 'reflect-metadata';
import { X509Certificate } from 'node:crypto';
import {
  type JsonName,
  KeyUsageFlags,
  KeyUsagesExtension,
  SubjectAlternativeNameExtension,
  X509CertificateGenerator,
} from '@peculiar/x509';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { systemClock } from '#kit/clock/clock.ts';
import type { LeafRequest } from '../../svid-issuer/authority/authority.ts';
import { createAuthority } from '../../svid-issuer/authority/testing/create-authority.ts';
import { splitCertificates } from './pem.ts';
import { clientIdOfName, parseSpiffeId, readSvid } from './svid.ts';
import { serviceSpiffeId, spiffeIdOf } from './workload.ts';

const id = 'spiffe://test.local/service/service-wallet';

async function leafOf(request: Partial<LeafRequest>) {
  const authority = await createAuthority('test.local', systemClock());
  return await authority.issue({
    uris: [id],
    commonName: 'x',
    notBeforeMs: Date.now(),
    notAfterMs: Date.now() + 60_000,
    ...request,
  });
}

describe('SPIFFE ids', () => {
  it('are parsed', () => {
    expect(parseSpiffeId(id)).toEqual({ id, trustDomain: 'test.local', path: '/service/service-wallet' });
    expect(clientIdOfName(parseSpiffeId(id))).toBe('service-wallet');
    expect(serviceSpiffeId('test.local', 'validator-0')).toBe('spiffe://test.local/service/validator-0');
    expect(serviceSpiffeId('acme', 'validator-0')).toBe('spiffe://acme/service/validator-0');
  });
  for (const text of [
    '',
    'spiffe://test.local',
    'spiffe://test.local/',
    'spiffe://Test.local/a',
    'spiffe://test.local/a/',
    'spiffe://test.local/a//b',
    'spiffe://test.local/a/../b',
    'spiffe://test.local/.',
    'spiffe://test.local/a%20b',
    'spiffe://test.local/a?b',
    'spiffe://test.local/a#b',
    'spiffe://user@test.local/a',
    'spiffe://test.local:80/a',
    'SPIFFE://test.local/a',
    'https://test.local/a',
    `spiffe://test.local/${'a'.repeat(2048)}`,
    'spiffe://test.local/a\n',
  ]) {
    it(`refuse ${JSON.stringify(text.slice(0, 40))}`, () => {
      expect(() => parseSpiffeId(text)).toThrow(expect.objectContaining({ code: 'SVID_REFUSED' }));
    });
  }
  it('a client id cannot smuggle path segments', () => {
    expect(() => serviceSpiffeId('test.local', '../x')).toThrow();
    expect(clientIdOfName(parseSpiffeId('spiffe://test.local/service/a/b'))).toBeUndefined();
  });
});

describe('X.509-SVIDs', () => {
  it('are parsed from their ASN.1', async () => {
    const leaf = await leafOf({});
    expect(readSvid(leaf.certificateDer)).toMatchObject({ id, trustDomain: 'test.local' });
    expect(spiffeIdOf(new X509Certificate(leaf.certificatePem))).toBe(id);
  });
  const cases: Record<string, Partial<LeafRequest>> = {
    'two URI names': { uris: [id, 'spiffe://test.local/service/service-tenant'] },
    'the same URI name twice': { uris: [id, id] },
    'no URI name': { uris: [] },
    'a comma in its URI': { uris: [`${id},URI:spiffe://test.local/service/service-tenant`] },
    'a CA certificate': { certificateAuthority: true },
    'no digitalSignature': { usages: KeyUsageFlags.keyEncipherment },
    cRLSign: { usages: KeyUsageFlags.digitalSignature | KeyUsageFlags.cRLSign },
    keyCertSign: { usages: KeyUsageFlags.digitalSignature | KeyUsageFlags.keyCertSign },
  };
  for (const [name, request] of Object.entries(cases)) {
    it(`with ${name} are refused`, async () => {
      const leaf = await leafOf(request);
      expect(() => readSvid(leaf.certificateDer)).toThrow(expect.objectContaining({ code: 'SVID_REFUSED' }));
    });
  }
  it('may carry DNS names beside the one URI', async () => {
    const keys = await crypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, true, [
      'sign',
      'verify',
    ]);
    const subject: JsonName = [{ CN: ['x'] }];
    const certificate = await X509CertificateGenerator.createSelfSigned({
      name: subject,
      keys,
      signingAlgorithm: { name: 'ECDSA', hash: 'SHA-256' },
      extensions: [
        new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
        new SubjectAlternativeNameExtension([
          { type: 'dns', value: 'wallet.local' },
          { type: 'url', value: id },
        ]),
      ],
    });
    expect(readSvid(new Uint8Array(certificate.rawData)).id).toBe(id);
  });
  it('garbage is refused, whatever it is', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        expect(() => readSvid(bytes)).toThrow(expect.objectContaining({ code: 'SVID_REFUSED' }));
      }),
      { numRuns: 200 },
    );
  });
});

describe('concatenated certificates', () => {
  it('are split', async () => {
    const one = (await leafOf({})).certificateDer;
    const two = (await leafOf({})).certificateDer;
    const parts = splitCertificates(Buffer.concat([one, two]));
    expect(parts.map((part) => Buffer.from(part).equals(one) || Buffer.from(part).equals(two))).toEqual([
      true,
      true,
    ]);
    expect(splitCertificates(new Uint8Array())).toEqual([]);
  });
  it('that are damaged are refused', async () => {
    const one = (await leafOf({})).certificateDer;
    for (const bytes of [
      one.slice(0, -1),
      Buffer.concat([one, Buffer.from([0])]),
      Buffer.from([0x30, 0x80, 0, 0]),
    ]) {
      expect(() => splitCertificates(bytes)).toThrow(expect.objectContaining({ kind: 'unavailable' }));
    }
  });
});
