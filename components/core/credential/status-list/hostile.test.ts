import { deflateSync } from 'node:zlib';
import fc from 'fast-check';
import { expect, it, vi } from 'vitest';
import { fuzzing, mutatedJson, mutatedText } from '../../encoding/testing/mutations.ts';
import { scene, signedJwt, testSeconds, testTimeMs } from '../sd-jwt/testing/issuer.ts';
import { STATUS_BITS } from './status-list.ts';
import { judgeStatusTokenForm, verifyStatusToken } from './token.ts';

vi.setConfig({ testTimeout: 1_200_000 });

const runs = fuzzing(process.env);

const { issuer } = scene();
const uri = 'https://issuer.example/lists/1';
const expected = { uri, issuerKey: issuer.key, algorithms: ['ES256'] as const, atMs: testTimeMs };
const lst = deflateSync(Uint8Array.of(0xb9, 0xa3)).toString('base64url');
const header = { alg: 'ES256', typ: 'statuslist+jwt' };
const payload = {
  sub: uri,
  iat: testSeconds - 10,
  exp: testSeconds + 10,
  ttl: 60,
  status_list: { bits: 1, lst, aggregation_uri: 'https://issuer.example/lists' },
};
const whole = signedJwt(header, payload, issuer.privateKey);

function resultOf(text: string) {
  const form = judgeStatusTokenForm(text);
  const judged = form.result === undefined ? form : verifyStatusToken(form.result, expected);
  if (judged.result === undefined)
    expect(['FORMAT', 'SIGNATURE', 'EXPIRED']).toContain(judged.violations[0].code);
  return judged.result;
}

it('a changed status list token is refused', () => {
  expect(resultOf(whole)?.bits).toBe(1);
  fc.assert(
    fc.property(mutatedText(whole), (text) => (resultOf(text) === undefined) === (text !== whole)),
    runs(1_500),
  );
});

it('whatever an issuer signs, nothing but a judgement comes of it', () => {
  let accepted = 0;
  const parts = fc.record(
    { header: mutatedJson(header), payload: mutatedJson(payload) },
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(parts, (change) => {
      const made = { header, payload, ...change };
      const result = resultOf(signedJwt(made.header as typeof header, made.payload, issuer.privateKey));
      if (result === undefined) return;
      accepted += 1;
      expect(STATUS_BITS).toContain(result.bits);
      expect(result.compressed.length).toBeGreaterThan(0);
      expect(result.ttlSeconds ?? 1).toBeGreaterThan(0);
      expect(result.expiresAt ?? testSeconds).toBeGreaterThan(testSeconds - 60);
    }),
    runs(1_500),
  );
  expect(accepted).toBeGreaterThan(10);
});
