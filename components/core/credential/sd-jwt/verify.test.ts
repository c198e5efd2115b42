import { generateKeyPairSync } from 'node:crypto';
import { expect, it } from 'vitest';
import type { JsonObject } from '../../encoding/json.ts';
import { MAX_DISCLOSURES } from './parse.ts';
import {
  digestOf,
  disclosed,
  encoded,
  keyPair,
  scene,
  signedJwt,
  testTimeMs,
  testVct,
} from './testing/issuer.ts';
import { judgeSdJwtForm, type SdJwtVcExpectation, verifySdJwtVc } from './verify.ts';

const { issuer, holder, expectation, present } = scene();
const seconds = testTimeMs / 1000;

/** Code and field of the violation; nothing when the presentation verifies. */
function verdict(text: string, change: Partial<SdJwtVcExpectation> = {}): string | undefined {
  const form = judgeSdJwtForm(text);
  const { violations } =
    form.result === undefined ? form : verifySdJwtVc(form.result, { ...expectation, ...change });
  const [first] = violations;
  return first === undefined ? undefined : [first.code, first.field].filter(Boolean).join(' ');
}

const name = disclosed('salt-a', 'given_name', 'Ada');
const payload = (change: JsonObject = {}, without: readonly string[] = []): JsonObject => {
  const whole: JsonObject = {
    iss: 'https://issuer.example',
    vct: testVct,
    exp: seconds + 1000,
    cnf: { jwk: holder.jwk },
    _sd: [name.digest],
    ...change,
  };
  return Object.fromEntries(Object.entries(whole).filter(([member]) => !without.includes(member)));
};
const presented = (change: JsonObject, disclosures: readonly string[] = [name.text]): string =>
  present({ payload: payload(change), disclosures });

it('a presentation verifies', () => {
  const form = judgeSdJwtForm(present());
  if (form.result === undefined) throw new Error('not parsed');
  const { violations, result } = verifySdJwtVc(form.result, expectation);
  expect(violations).toEqual([]);
  expect(result).toEqual({
    vct: testVct,
    issuer: 'https://issuer.example',
    claims: {
      iss: 'https://issuer.example',
      vct: testVct,
      iat: seconds - 1000,
      exp: seconds + 1000,
      cnf: { jwk: holder.jwk },
      status: { status_list: { idx: 7, uri: 'https://issuer.example/lists/1' } },
      nationalities: ['DE', 'FR'],
      given_name: 'Ada',
    },
    holderKey: holder.jwk,
    status: { index: 7, uri: 'https://issuer.example/lists/1' },
    expiresAt: seconds + 1000,
  });
  expect(verdict(present({ header: { alg: 'ES256', typ: 'vc+sd-jwt' } }))).toBeUndefined();
  expect(verdict(present({ disclosures: [] }))).toBeUndefined();
});

it('the form is judged before any key', () => {
  const whole = present();
  const jwt = whole.slice(0, whole.indexOf('~'));
  const [header = '', body = '', signature = ''] = jwt.split('.');
  const malformed = {
    empty: '',
    tildes: '~~',
    'no tilde': jwt,
    'two parts': `${header}.${body}~`,
    'four parts': `${jwt}.${signature}~`,
    'no signature': `${header}.${body}.~`,
    padding: `${header}.${body}.${signature}=~`,
    'standard alphabet': `${header}.${body}.${'+'.repeat(86)}~`,
    'empty disclosure': `${jwt}~~${name.text}~`,
    'no tilde behind a disclosure': `${jwt}~${name.text}`,
    'white space': ` ${whole}`,
    'payload is an array': `${header}.${encoded([])}.${signature}~`,
    'duplicate header': `${Buffer.from('{"alg":"ES256","alg":"ES256","typ":"dc+sd-jwt"}').toString('base64url')}.${body}.${signature}~`,
    'duplicate claim': `${header}.${Buffer.from('{"vct":"a","vct":"b"}').toString('base64url')}.${signature}~`,
    'not UTF-8': `${header}.${Buffer.from([0x7b, 0xff, 0x7d]).toString('base64url')}.${signature}~`,
    'too many disclosures': `${jwt}~${`${name.text}~`.repeat(MAX_DISCLOSURES + 1)}`,
    'too long': `${jwt}~${'A'.repeat(1024 * 1024)}~`,
    crit: present({ header: { alg: 'ES256', typ: 'dc+sd-jwt', crit: ['exp'] } }),
    b64: present({ header: { alg: 'ES256', typ: 'dc+sd-jwt', b64: false } }),
    'crit in the key binding': present({ bindingHeader: { alg: 'ES256', typ: 'kb+jwt', crit: [] } }),
  };
  for (const [what, text] of Object.entries(malformed))
    expect([what, verdict(text)]).toEqual([what, 'FORMAT']);
});

it('type, algorithm and signature of the issuer', () => {
  const other = keyPair();
  const long = keyPair('P-384');
  for (const typ of ['jwt', 'JWT', 'kb+jwt', 'DC+SD-JWT', 'sd-jwt', 1, undefined]) {
    expect(verdict(present({ header: { alg: 'ES256', typ } }))).toBe('FORMAT typ');
  }
  for (const alg of ['none', 'HS256', 'ES384', 'es256', 'RS256', '__proto__', 'toString', undefined]) {
    expect(verdict(present({ header: { alg, typ: 'dc+sd-jwt' } }))).toBe('SIGNATURE alg');
  }
  expect(verdict(present({ signer: other.privateKey }))).toBe('SIGNATURE');
  expect(verdict(present(), { issuerKey: long.key })).toBe('SIGNATURE');
  expect(verdict(present({ header: { alg: 'ES384', typ: 'dc+sd-jwt' } }), { algorithms: ['ES384'] })).toBe(
    'SIGNATURE',
  );
  // the header never brings its own key
  const jwk = { alg: 'ES256', typ: 'dc+sd-jwt', jwk: other.jwk };
  expect(verdict(present({ header: jwk, signer: other.privateKey }))).toBe('SIGNATURE');
});

it('a DER signature is none of ES256', () => {
  const [text = '', ...rest] = present({ bindingHeader: undefined }).split('~');
  const [header, body] = text.split('.');
  const der = Buffer.concat([Buffer.from('30440220', 'hex'), Buffer.alloc(64, 1)]).toString('base64url');
  expect(verdict([`${header}.${body}.${der}`, ...rest].join('~'))).toBe('SIGNATURE');
});

it('disclosures (RFC 9901 section 7.1)', () => {
  const claim = (...items: readonly unknown[]) => disclosed('s', ...items);
  const nested = claim('address', { _sd: [claim('city', 'Ulm').digest] });
  const cases: Record<string, string> = {
    unreferenced: presented({}, [name.text, claim('x', 1).text]),
    repeated: presented({}, [name.text, name.text]),
    'digest twice in one list': presented({ _sd: [name.digest, name.digest] }),
    'digest twice, withheld': presented({ _sd: [name.digest, 'a', 'a'] }),
    'digest twice at two levels': presented({ address: { _sd: [name.digest] } }),
    'digest in an array again': presented({ list: [{ '...': name.digest }] }),
    'child without its parent': presented({ _sd: [nested.digest] }, [claim('city', 'Ulm').text]),
    'name _sd': presented({ _sd: [claim('_sd', []).digest] }, [claim('_sd', []).text]),
    'name ...': presented({ _sd: [claim('...', 'a').digest] }, [claim('...', 'a').text]),
    'name _sd_alg': presented({ _sd: [claim('_sd_alg', 'none').digest] }, [claim('_sd_alg', 'none').text]),
    'claim exists': presented({ given_name: 'Eve' }),
    'claim disclosed twice': presented({ _sd: [name.digest, claim('given_name', 'Eve').digest] }, [
      name.text,
      claim('given_name', 'Eve').text,
    ]),
    'element where a claim belongs': presented({ _sd: [claim('DE').digest] }, [claim('DE').text]),
    'claim where an element belongs': presented({ list: [{ '...': claim('a', 1).digest }] }, [
      name.text,
      claim('a', 1).text,
    ]),
    'four items': presented({ _sd: [claim('a', 1, 2).digest] }, [claim('a', 1, 2).text]),
    'one item': presented({ _sd: [claim().digest] }, [claim().text]),
    'salt is a number': presented({ _sd: [disclosed(1, 'a', 2).digest] }, [disclosed(1, 'a', 2).text]),
    'name is a number': presented({ _sd: [claim(1, 2).digest] }, [claim(1, 2).text]),
    'not an array': presented({ _sd: [digestOf(encoded({ a: 1 }))] }, [encoded({ a: 1 })]),
    'not JSON': presented({ _sd: [digestOf('e30x')] }, ['e30x']),
    'not base64url': presented({ _sd: [digestOf('"a"')] }, ['"a"']),
    'digests are no array': presented({ _sd: name.digest }),
    'digests are no text': presented({ _sd: [name.digest, 1] }),
    'slot with a companion': presented({ list: [{ '...': 'a', b: 1 }] }),
    'slot is no text': presented({ list: [{ '...': 1 }] }),
    'slot outside of an array': presented({ place: { '...': 'a' } }),
    'unknown hash': presented({ _sd_alg: 'md5' }),
    'hash is no text': presented({ _sd_alg: null }),
    'hash is a member of every object': presented({ _sd_alg: 'constructor' }),
    'hash does not fit': presented({ _sd_alg: 'sha-512' }),
  };
  for (const [what, text] of Object.entries(cases)) expect([what, verdict(text)]).toEqual([what, 'DIGEST']);
});

it('a duplicate member inside a disclosure is refused', () => {
  const text = Buffer.from('["s","a",{"b":1,"b":2}]').toString('base64url');
  expect(verdict(presented({ _sd: [digestOf(text)] }, [text]))).toBe('DIGEST');
});

it('nesting is bounded over disclosures', () => {
  const chain = (levels: number) => {
    const texts: string[] = [];
    let value: unknown = 1;
    for (let level = 0; level < levels; level += 1) {
      const made = disclosed('s', `c${level}`, value);
      texts.push(made.text);
      value = { _sd: [made.digest] };
    }
    return presented(value as JsonObject, texts);
  };
  expect(verdict(chain(16))).toBeUndefined();
  expect(verdict(chain(17))).toBe('DIGEST');
  const plain = (levels: number) => JSON.parse(`${'['.repeat(levels)}${']'.repeat(levels)}`);
  expect(verdict(presented({ deep: plain(15) }))).toBeUndefined();
  expect(verdict(presented({ deep: plain(16) }))).toBe('DIGEST');
});

it('a claim named __proto__ is a claim and nothing else', () => {
  const text = Buffer.from('["s","__proto__",{"admin":true}]').toString('base64url');
  const form = judgeSdJwtForm(presented({ _sd: [digestOf(text)] }, [text]));
  if (form.result === undefined) throw new Error('not parsed');
  const claims = verifySdJwtVc(form.result, expectation).result?.claims ?? {};
  expect(Object.keys(claims)).toContain('__proto__');
  expect(Object.getPrototypeOf(claims)).toBe(Object.prototype);
  expect(claims['admin']).toBeUndefined();
});

it('claims that must not be selectively disclosable', () => {
  const values: JsonObject = {
    iss: 'https://issuer.example',
    nbf: seconds - 10,
    exp: seconds + 10,
    cnf: { jwk: holder.jwk },
    vct: testVct,
    status: { status_list: { idx: 1, uri: 'https://a.example/1' } },
  };
  for (const [claim, value] of Object.entries(values)) {
    const made = disclosed('s', claim, value);
    const text = present({ payload: payload({ _sd: [made.digest] }, [claim]), disclosures: [made.text] });
    expect(verdict(text)).toBe(`DIGEST ${claim}`);
  }
  // nor parts of them
  const jwk = disclosed('s', 'jwk', holder.jwk);
  expect(verdict(presented({ cnf: { _sd: [jwk.digest] } }, [jwk.text, name.text]))).toBe('DIGEST cnf');
  expect(verdict(presented({ cnf: { jwk: holder.jwk, _sd: [] } }))).toBe('DIGEST cnf');
});

it('lifetime with 60 seconds of leeway', () => {
  expect(verdict(presented({ exp: seconds - 59 }))).toBeUndefined();
  expect(verdict(presented({ exp: seconds - 60 }))).toBe('EXPIRED exp');
  expect(verdict(presented({ nbf: seconds + 60 }))).toBeUndefined();
  expect(verdict(presented({ nbf: seconds + 61 }))).toBe('EXPIRED nbf');
  for (const wrong of ['1883000000', null, -1, 1e300, true]) {
    expect(verdict(presented({ exp: wrong }))).toBe('FORMAT exp');
    expect(verdict(presented({ iat: wrong }))).toBe('FORMAT iat');
  }
});

it('type, issuer and status', () => {
  expect(verdict(presented({ vct: 'https://issuer.example/vct/other' }))).toBe('VCT_MISMATCH vct');
  expect(
    verdict(presented({ vct: 'https://issuer.example/vct/other' }), { types: undefined }),
  ).toBeUndefined();
  expect(verdict(present({ payload: payload({}, ['vct']), disclosures: [] }))).toBe('FORMAT vct');
  for (const wrong of ['', 1, null, [testVct]]) expect(verdict(presented({ vct: wrong }))).toBe('FORMAT vct');
  expect(verdict(presented({ iss: 1 }))).toBe('FORMAT iss');
  const uri = 'https://a.example/1';
  for (const status of [
    1,
    { status_list: 1 },
    { status_list: { idx: -1, uri } },
    { status_list: { idx: 0.5, uri } },
  ]) {
    expect(verdict(presented({ status }))).toBe('FORMAT status');
  }
  expect(verdict(presented({ status: { status_list: { idx: 1, uri: 'nowhere' } } }))).toBe('FORMAT status');
  const form = judgeSdJwtForm(presented({ status: { other_list: {} } }));
  if (form.result === undefined) throw new Error('not parsed');
  expect(verifySdJwtVc(form.result, expectation).result?.status).toBe('unsupported');
});

it('key binding', () => {
  const other = keyPair();
  expect(verdict(present({ bindingHeader: undefined }))).toBe('KB_MISSING');
  expect(verdict(present({ bindingHeader: undefined }), { keyBinding: undefined })).toBeUndefined();
  expect(verdict(present({ holder: other.privateKey }))).toBe('KB_SIGNATURE');
  expect(verdict(present({ bindingHeader: { alg: 'ES256', typ: 'jwt' } }))).toBe('KB_SIGNATURE typ');
  expect(verdict(present({ bindingHeader: { alg: 'none', typ: 'kb+jwt' } }))).toBe('KB_SIGNATURE alg');
  expect(verdict(present({ bindingHeader: { alg: 'EdDSA', typ: 'kb+jwt' } }))).toBe('KB_SIGNATURE');
  expect(verdict(present({ binding: { nonce: 'another' } }))).toBe('KB_NONCE nonce');
  expect(verdict(present({ binding: { nonce: ['n-0123456789'] } }))).toBe('KB_NONCE nonce');
  expect(verdict(present({ binding: { aud: 'verifier.example' } }))).toBe('KB_AUD aud');
  expect(verdict(present({ binding: { aud: ['x509_san_dns:verifier.example'] } }))).toBe('KB_AUD aud');
  expect(verdict(present({ binding: { sd_hash: digestOf('x') } }))).toBe('KB_SD_HASH sd_hash');
  expect(verdict(present({ binding: { iat: seconds - 300 } }))).toBeUndefined();
  expect(verdict(present({ binding: { iat: seconds - 301 } }))).toBe('EXPIRED iat');
  expect(verdict(present({ binding: { iat: seconds + 60 } }))).toBeUndefined();
  expect(verdict(present({ binding: { iat: seconds + 61 } }))).toBe('EXPIRED iat');
  expect(verdict(present({ binding: { iat: undefined } }))).toBe('FORMAT iat');
  expect(verdict(present({ binding: { exp: seconds - 61 } }))).toBe('EXPIRED exp');
});

it('the key of the holder', () => {
  const withKey = (cnf: unknown) => verdict(presented({ cnf }));
  const { x } = holder.jwk;
  expect(withKey(undefined)).toBe('KB_SIGNATURE cnf');
  expect(withKey({ kid: 'a' })).toBe('KB_SIGNATURE cnf');
  expect(withKey({ jwk: issuer.jwk })).toBe('KB_SIGNATURE');
  expect(withKey({ jwk: { ...holder.jwk, d: x } })).toBe('KB_SIGNATURE');
  expect(withKey({ jwk: { ...holder.jwk, use: 'enc' } })).toBe('KB_SIGNATURE');
  expect(withKey({ jwk: { ...holder.jwk, key_ops: ['sign'] } })).toBe('KB_SIGNATURE');
  expect(withKey({ jwk: { ...holder.jwk, alg: 'ES384' } })).toBe('KB_SIGNATURE');
  expect(withKey({ jwk: { ...holder.jwk, y: x } })).toBe('KB_SIGNATURE');
  expect(withKey({ jwk: { ...holder.jwk, x: `AA${String(x)}` } })).toBe('KB_SIGNATURE');
  expect(withKey({ jwk: { ...holder.jwk, crv: 'secp256k1' } })).toBe('KB_SIGNATURE');
  expect(withKey({ jwk: { kty: 'oct', k: x } })).toBe('KB_SIGNATURE');
});

it('a binding made for fewer disclosures cannot be moved to more', () => {
  const few = present({ disclosures: [name.text] });
  const binding = few.slice(few.lastIndexOf('~') + 1);
  const more = present({ bindingHeader: undefined });
  expect(verdict(more + binding)).toBe('KB_SD_HASH sd_hash');
});

it('an Ed25519 holder', () => {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const jwk = { ...publicKey.export({ format: 'jwk' }) };
  const bound = present({
    payload: payload({ cnf: { jwk } }),
    disclosures: [name.text],
    bindingHeader: undefined,
  });
  const { keyBinding } = expectation;
  const kb = { nonce: keyBinding?.nonce, aud: keyBinding?.audience, iat: seconds, sd_hash: digestOf(bound) };
  const jwt = signedJwt({ alg: 'EdDSA', typ: 'kb+jwt' }, kb, privateKey);
  expect(verdict(bound + jwt)).toBeUndefined();
  expect(verdict(`${bound}${jwt.slice(0, -4)}AAAA`)).toMatch(/^(?:KB_SIGNATURE|FORMAT)$/);
});
