import { createHash, randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../encoding/json.ts';
import { compactSdJwt, faultOfClaims, prepareSdJwt } from './issue.ts';

const decode = (text: string) => JSON.parse(Buffer.from(text, 'base64url').toString());
const digestOf = (text: string) => createHash('sha256').update(text).digest('base64url');

/** The claims that a holder who discloses everything shows, by the steps of RFC 9901 section 7.1. */
function restore(payload: unknown, disclosures: readonly string[]): unknown {
  const byDigest = new Map(disclosures.map((one) => [digestOf(one), decode(one)]));
  const walk = (value: unknown): unknown => {
    if (Array.isArray(value)) {
      return value.flatMap((element) => {
        const found = element !== null && typeof element === 'object' && '...' in element;
        return found ? [walk(byDigest.get(String(element['...']))[1])] : [walk(element)];
      });
    }
    if (value === null || typeof value !== 'object') return value;
    const members = Object.entries(value).filter(([name]) => name !== '_sd' && name !== '_sd_alg');
    const digests: string[] = '_sd' in value && Array.isArray(value._sd) ? value._sd : [];
    const disclosed = digests.flatMap((digest) => {
      const found = byDigest.get(digest);
      return found === undefined ? [] : [[found[1], walk(found[2])]];
    });
    return Object.fromEntries([...members.map(([name, inner]) => [name, walk(inner)]), ...disclosed]);
  };
  return walk(payload);
}

const issue = (claims: JsonObject, disclosable: readonly string[] | undefined) => {
  const input = { header: { alg: 'ES256' }, payload: { iss: 'i' }, claims, disclosable };
  const unsigned = prepareSdJwt(input, randomBytes);
  return { ...unsigned, payload: decode(unsigned.signingInput.split('.')[1] ?? '') };
};

/** Every pointer into a value. */
function pointersOf(value: unknown, path = ''): string[] {
  if (value === null || typeof value !== 'object') return [];
  return Object.entries(value).flatMap(([name, inner]) => {
    const at = `${path}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`;
    return [at, ...pointersOf(inner, at)];
  });
}

const claimName = fc
  .string({ minLength: 1, maxLength: 8 })
  .filter((name) => faultOfClaims({ [name]: 1 }, undefined) === undefined && name !== '__proto__');
const claimsArbitrary = fc.dictionary(
  claimName,
  fc.oneof(
    fc.string(),
    fc.integer(),
    fc.boolean(),
    fc.array(fc.string(), { maxLength: 3 }),
    fc.dictionary(claimName, fc.oneof(fc.string(), fc.array(fc.integer(), { maxLength: 2 })), { maxKeys: 3 }),
  ),
  { maxKeys: 5 },
);

describe('an SD-JWT', () => {
  it('shows nothing of disclosable claims, and everything with all disclosures', () => {
    fc.assert(
      fc.property(claimsArbitrary, fc.array(fc.nat(), { maxLength: 5 }), (claims, picks) => {
        const all = pointersOf(claims);
        const paths = all.length === 0 ? [] : [...new Set(picks.map((pick) => all[pick % all.length] ?? ''))];
        expect(faultOfClaims(claims, paths)).toBeUndefined();
        const { payload, disclosures } = issue(claims, paths);
        expect(disclosures).toHaveLength(paths.length);
        expect(restore(payload, disclosures)).toEqual({ iss: 'i', ...claims });
        for (const path of paths.filter((one) => one.split('/').length === 2)) {
          const name = path.slice(1).replaceAll('~1', '/').replaceAll('~0', '~');
          expect(Object.hasOwn(payload, name)).toBe(false);
        }
      }),
    );
  });

  it('has salts of 128 bits, and sorted digests with up to four decoys', () => {
    const counts = new Set<number>();
    for (let run = 0; run < 60; run += 1) {
      const { payload, disclosures } = issue({ a: 1, b: 2 }, undefined);
      for (const one of disclosures) expect(Buffer.from(decode(one)[0], 'base64url')).toHaveLength(16);
      expect(payload._sd).toEqual([...payload._sd].sort());
      counts.add(payload._sd.length);
    }
    expect([...counts].sort()).toEqual([2, 3, 4, 5, 6]);
  });

  it('says nothing of digests when it has none', () => {
    const { payload } = issue({ a: 1 }, []);
    expect(payload).toEqual({ iss: 'i', a: 1 });
  });

  it('ends with a tilde in its compact form', () => {
    const compact = compactSdJwt({ signingInput: 'a.b', disclosures: ['c', 'd'] }, new Uint8Array([1]));
    expect(compact).toBe('a.b.AQ~c~d~');
  });

  it.each([
    [{ cnf: 1 }, undefined, 'the claim cnf is set by the issuer'],
    [{ a: { '...': 1 } }, undefined, 'a claim is named _sd or ...'],
    [{ a: [{ _sd: [] }] }, undefined, 'a claim is named _sd or ...'],
    [{ a: 1 }, ['/b'], 'no claim is at /b'],
    [{ a: [1] }, ['/a/length'], 'no claim is at /a/length'],
    [{ a: 'x' }, ['/a/0'], 'no claim is at /a/0'],
    [{ a: 1 }, [''], 'no claim is at '],
  ])('cannot be made of %j with %j', (claims, paths, fault) => {
    expect(faultOfClaims(claims, paths)).toBe(fault);
  });
});
