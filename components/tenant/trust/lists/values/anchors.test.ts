import { expect, it } from 'vitest';
import { chainDers, ecKey } from '#core/trust/testing/chains.ts';
import { sequence } from '#core/trust/testing/der-writer.ts';
import { makeCertificate } from '../lists.fixture.ts';
import { selectAnchors } from './anchors.ts';

const nowMs = Date.UTC(2026, 5, 1);
const granted = { type: 'urn:type', status: 'urn:granted', issues: true, isGranted: true };

it('takes an authority without attributes in its name', () => {
  const key = ecKey('P-256');
  const name = sequence();
  const changes = { 1: { subject: name, issuer: name, notAfterMs: nowMs } };
  const [, der = Buffer.of()] = chainDers('none', [key, key], changes);
  const { anchors } = selectAnchors([{ ...granted, certificates: [der.toString('base64')] }], nowMs);
  expect(anchors).toMatchObject([{ subjectDn: '' }]);
});

it('takes certificates of authorities of granted services, and counts what it skips', async () => {
  const [one, two, expired, leaf] = await Promise.all([
    makeCertificate({ name: 'One' }),
    makeCertificate({ name: 'Two' }),
    makeCertificate({ notAfter: '2026-05-31T23:59:59Z' }),
    makeCertificate({ ca: false }),
  ]);
  const pem = Buffer.from(`-----BEGIN CERTIFICATE-----\n${one.base64}\n-----END CERTIFICATE-----`).toString(
    'base64',
  );
  const { anchors, extracted, skipped } = selectAnchors(
    [
      { ...granted, certificates: [one.base64, expired.base64, leaf.base64, 'AAAA', '!', pem] },
      {
        ...granted,
        type: 'urn:later',
        certificates: [` ${one.base64.replace(/(.{64})/g, '$1\n')}`, two.base64],
      },
      { ...granted, issues: false, certificates: [two.base64] },
      { ...granted, isGranted: false, certificates: [two.base64] },
      { ...granted, issues: false, isGranted: false, certificates: [] },
    ],
    nowMs,
  );
  expect(skipped).toEqual({ type: 2, status: 1, expired: 1, notCa: 1, unparsable: 3 });
  expect(extracted).toBe(3);
  expect(anchors).toEqual([
    {
      der: new Uint8Array(one.der),
      thumbprint: one.sha256,
      subjectDn: 'C=DE, O=Operator, CN=One',
      serviceType: 'urn:type',
      serviceStatus: 'urn:granted',
      notBeforeMs: Date.UTC(2020, 0, 1),
      notAfterMs: Date.UTC(2060, 0, 1),
    },
    expect.objectContaining({ thumbprint: two.sha256, serviceType: 'urn:later' }),
  ]);
});
