import { describe, expect, test } from 'vitest';
import { parsePemCertificates, splitPem } from './pem.ts';

const [first, second] = [Buffer.alloc(100, 1), Buffer.from('a second one')];
const pemOf = (der: Buffer, label = 'CERTIFICATE') =>
  `-----BEGIN ${label}-----\n${der.toString('base64').replaceAll(/.{64}/g, '$&\n')}\n-----END ${label}-----\n`;

describe('certificates in PEM', () => {
  test('have text around blocks, and blocks of certificates alone', () => {
    expect(parsePemCertificates(`Certificate:\n  Data\n${pemOf(first)}\n${pemOf(second)}`)).toEqual([
      first,
      second,
    ]);
    expect(parsePemCertificates(pemOf(first).replaceAll('\n', '\r\n'))).toEqual([first]);
    for (const text of [
      '',
      'text',
      pemOf(first, 'PRIVATE KEY'),
      `${pemOf(first)}-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----`,
      '-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----',
      '-----BEGIN CERTIFICATE-----\nA=A=\n-----END CERTIFICATE-----',
      pemOf(first).replace('-----END', '----END'),
    ]) {
      expect(parsePemCertificates(text), text.slice(0, 40)).toBeUndefined();
    }
  });

  test('are taken out of a bundle with a key', () => {
    const key = pemOf(second, 'PRIVATE KEY');
    expect(splitPem(`${pemOf(first)}${key}${pemOf(second)}`)).toEqual({
      certificates: [first, second],
      rest: `\n${key}\n`,
    });
    expect(splitPem(key)).toEqual({ certificates: [], rest: key });
    expect(splitPem(`${key}${pemOf(first).replace('AQ', 'A!')}`)?.certificates).toEqual([]);
    expect(splitPem(`${key}${pemOf(first).replace('AQ', 'A=')}`)).toBeUndefined();
  });

  test('that are long and hostile cost little', () => {
    expect(parsePemCertificates('-----BEGIN CERTIFICATE-----'.repeat(100_000))).toBeUndefined();
    expect(parsePemCertificates(`-----BEGIN CERTIFICATE-----${' '.repeat(4_000_000)}`)).toBeUndefined();
  });
});
