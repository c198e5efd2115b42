import { generateKeyPairSync } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { isAppError } from '#core/errors/errors.ts';
import { organizationKeyOf } from './connect-trust.ts';

describe('the key of an organisation', () => {
  const spki = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({
    format: 'der',
    type: 'spki',
  });

  it('is in the answer, or there is none', () => {
    const body = { publicKeySpki: spki.toString('base64') };
    expect(organizationKeyOf({ status: 200, body })?.kind).toBe('P-256');
    for (const [status, code] of [
      [404, 'WALLET_NOT_FOUND'],
      [410, 'WALLET_DELETED'],
      [423, 'WALLET_LOCKED'],
      [422, 'CERT_KEY_NOT_ELIGIBLE'],
    ] as const)
      expect(organizationKeyOf({ status, body: { code } })).toBeUndefined();
  });

  it.each([
    [401, { code: 'UNAUTHORIZED' }],
    [403, { code: 'FORBIDDEN' }],
    [404, { code: 'NOT_FOUND' }],
    [429, undefined],
    [503, { code: 'SERVICE_UNAVAILABLE' }],
    [200, { publicKey: 'of another version' }],
  ])('cannot be had with status %d and the body %j, which decides nothing', (status, body) => {
    try {
      organizationKeyOf({ status, body });
    } catch (error) {
      expect(isAppError(error, 'unavailable')).toBe(true);
      return;
    }
    throw new Error('an answer was taken');
  });
});
