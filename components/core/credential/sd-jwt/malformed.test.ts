import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../encoding/json.ts';
import { disclosed, encoded, type Presentation, scene } from './testing/issuer.ts';
import { judgeSdJwtForm, verifySdJwtVc } from './verify.ts';

const { expectation, present, header, payload } = scene();

/** The code of the first violation, and its field. */
function verdict(text: string): string {
  const form = judgeSdJwtForm(text);
  const { violations } = form.result === undefined ? form : verifySdJwtVc(form.result, expectation);
  const [first] = violations;
  return first === undefined ? 'ok' : [first.code, first.field].filter(Boolean).join(' ');
}

const changed = (change: Partial<Presentation>) => verdict(present(change));

const absent = undefined;
const noText = [null, true, 0, -1, 1.5, [], ['x'], {}, { x: 1 }];
const noNumber = [null, true, '', '1748779200', [], [1_748_779_200], {}];
const noObject = [null, true, 0, '', 'x', [], [{}]];
const noList = [null, true, 0, '', 'x', {}, { 0: 'x' }];
const noDate = [...noNumber, -1, 1e300];

/** A member, values that are none of it, and the verdict. */
type Case = readonly [member: string, values: readonly unknown[], verdict: string];

const table = (cases: readonly Case[]) =>
  cases.flatMap(([member, values, expected]) =>
    values.map((value): [string, string, unknown, string] => [
      `${member}: ${JSON.stringify(value) ?? 'absent'}`,
      member,
      value,
      expected,
    ]),
  );

describe("the header of the issuer's JWT is refused", () => {
  it.each(
    table([
      ['typ', [absent, '', 'JWT', 'kb+jwt', 'DC+SD-JWT', 'application/dc+sd-jwt', ...noText], 'FORMAT typ'],
      ['alg', [absent, '', 'none', 'HS256', 'ES384', 'es256', 'EdDSA', ...noText], 'SIGNATURE alg'],
      ['crit', [[], ['exp'], null], 'FORMAT'],
      ['b64', [false, true], 'FORMAT'],
      ['zip', ['DEF'], 'FORMAT'],
      ['enc', ['A256GCM'], 'FORMAT'],
    ]),
  )('%s', (_, member, value, expected) => {
    expect(changed({ header: { ...header, [member]: value } })).toBe(expected);
  });
});

describe("the payload of the issuer's JWT is refused", () => {
  it.each(
    table([
      ['vct', [absent, '', ...noText], 'FORMAT vct'],
      ['vct', ['x', ' ', `${String(payload['vct'])}/`], 'VCT_MISMATCH vct'],
      ['iss', ['', ...noText], 'FORMAT iss'],
      ['exp', noDate, 'FORMAT exp'],
      ['exp', [0, 1, Number(payload['exp']) - 1060], 'EXPIRED exp'],
      ['nbf', noDate, 'FORMAT nbf'],
      ['nbf', [Number(payload['iat']) + 1061], 'EXPIRED nbf'],
      ['iat', noDate, 'FORMAT iat'],
      ['status', noObject, 'FORMAT status'],
      ['status', noObject.map((list) => ({ status_list: list })), 'FORMAT status'],
      [
        'status',
        noNumber.map((idx) => ({ status_list: { idx, uri: 'https://a.example' } })),
        'FORMAT status',
      ],
      ['status', noText.map((uri) => ({ status_list: { idx: 0, uri } })), 'FORMAT status'],
      ['cnf', [absent, ...noObject], 'KB_SIGNATURE cnf'],
      ['cnf', [{}, ...noObject.map((jwk) => ({ jwk }))], 'KB_SIGNATURE cnf'],
      ['cnf', [{ jwk: {} }, { jwk: { kty: 'EC', crv: 'P-256', x: 'AA', y: 'AA' } }], 'KB_SIGNATURE'],
      ['_sd_alg', ['', 'md5', 'SHA-256', ...noText], 'DIGEST'],
      ['_sd', [absent, ...noList, [1], [null], [{}]], 'DIGEST'],
      ['nationalities', [[{ '...': 1 }], [{ '...': 'x', y: 1 }]], 'DIGEST'],
      ['other', [{ '...': 'x' }, { _sd: 'x' }, { _sd: payload['_sd'] }], 'DIGEST'],
    ]),
  )('%s', (_, member, value, expected) => {
    expect(changed({ payload: { ...payload, [member]: value } })).toBe(expected);
  });
});

describe('the key binding is refused', () => {
  it.each(
    table([
      ['typ', [absent, '', 'JWT', 'KB+JWT', ...noText], 'KB_SIGNATURE typ'],
      ['alg', [absent, '', 'none', 'HS256', 'ES384', ...noText], 'KB_SIGNATURE alg'],
      ['crit', [[], ['exp']], 'FORMAT'],
    ]),
  )('with the header %s', (_, member, value, expected) => {
    const bindingHeader: JsonObject = { alg: 'ES256', typ: 'kb+jwt', [member]: value };
    expect(changed({ bindingHeader })).toBe(expected);
  });

  it.each(
    table([
      ['nonce', [absent, '', 'n-012345678', 'n-01234567890', ...noText], 'KB_NONCE nonce'],
      ['aud', [absent, '', 'verifier.example', ['x509_san_dns:verifier.example'], ...noText], 'KB_AUD aud'],
      ['sd_hash', [absent, '', 'x', ...noText], 'KB_SD_HASH sd_hash'],
      ['iat', [absent, ...noDate], 'FORMAT iat'],
      ['iat', [0, 1_748_779_200 - 301, 1_748_779_200 + 61], 'EXPIRED iat'],
      ['exp', noDate, 'FORMAT exp'],
      ['exp', [0, 1_748_779_200 - 60], 'EXPIRED exp'],
      ['nbf', [1_748_779_200 + 61], 'EXPIRED nbf'],
    ]),
  )('with %s', (_, member, value, expected) => {
    expect(changed({ binding: { [member]: value } })).toBe(expected);
  });
});

describe('a disclosure is refused', () => {
  const items: readonly unknown[] = [
    ...noList,
    [],
    ['s'],
    ['s', 'a', 1, 2],
    [1, 'a', 2],
    [null, 'a', 2],
    ['s', 1, 2],
    ['s', null, 2],
    ['s', '_sd', 2],
    ['s', '...', 2],
    ['s', '_sd_alg', 2],
    ['s', 'vct', 'x'],
    ['s', 'exp', 1],
    // an element of an array in the place of a claim
    ['s', 2],
  ];
  it.each(items.map((item) => [JSON.stringify(item), item]))('%s', (_, item) => {
    const { text, digest } = Array.isArray(item)
      ? disclosed(...item)
      : { text: encoded(item), digest: disclosed().digest };
    const { _sd, nationalities, ...others } = payload;
    expect(changed({ payload: { ...others, _sd: [digest] }, disclosures: [text] })).toMatch(/^DIGEST/);
  });
});
