import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  activate,
  bundleOf,
  type Circumstances,
  firstRoots,
  parseRoots,
  planStep,
  prepare,
  type Roots,
  renewalMs,
  retire,
  signingRoot,
} from './roots.ts';

const day = 86_400_000;
const overlapMs = 1_000;

let count = 0;
function made(notAfterMs: number) {
  count += 1;
  return { certificatePem: `certificate ${count}\n`, keyPem: `key ${count}\n`, notAfterMs };
}

function follow(roots: Roots, around: Circumstances): Roots {
  switch (planStep(roots, around)) {
    case 'none':
      return roots;
    case 'prepare':
      return prepare(roots, made(around.nowMs + 365 * day), around);
    case 'activate':
      return activate(roots, around.nowMs);
    case 'retire':
      return retire(roots);
  }
}

const at = (nowMs: number, wanted?: string): Circumstances => ({ nowMs, overlapMs, wanted });

describe('roots', () => {
  it('are rotated: trusted first, then signing, then removed', () => {
    const first = firstRoots('acme.local', made(365 * day), 0, undefined);
    const before = signingRoot(first).certificatePem;
    const asked = follow(first, at(10, 'now'));
    expect(signingRoot(asked).certificatePem).toBe(before);
    const after = asked.roots.find(({ stage }) => stage === 'next')?.certificatePem ?? '';
    expect(bundleOf(asked)).toBe(before + after);
    expect(follow(asked, at(10 + overlapMs - 1, 'now'))).toBe(asked);
    const signing = follow(asked, at(10 + overlapMs, 'now'));
    expect(signingRoot(signing).certificatePem).toBe(after);
    expect(bundleOf(signing)).toBe(after + before);
    expect(signing.roots.find(({ stage }) => stage === 'former')).not.toHaveProperty('keyPem');
    const alone = follow(signing, at(10 + 2 * overlapMs, 'now'));
    expect(bundleOf(alone)).toBe(after);
    expect(planStep(alone, at(10 * day, 'now'))).toBe('none');
    expect(planStep(alone, at(10 * day, 'again'))).toBe('prepare');
  });

  it('are rotated without a request before the signing one expires', () => {
    const roots = firstRoots('acme.local', made(365 * day), 0, undefined);
    expect(planStep(roots, at(365 * day - renewalMs))).toBe('none');
    expect(planStep(roots, at(365 * day - renewalMs + 1))).toBe('prepare');
  });

  it('that are new count an earlier request as done', () => {
    expect(planStep(firstRoots('acme.local', made(365 * day), 0, 'old'), at(1, 'old'))).toBe('none');
  });

  it('are loaded from their stored form', () => {
    const roots = firstRoots('acme.local', made(365 * day), 0, undefined);
    expect(parseRoots(JSON.stringify(roots), 'acme.local')).toEqual(roots);
  });

  it.each([
    ['', 'AUTHORITY_DAMAGED'],
    ['{}', 'AUTHORITY_DAMAGED'],
    [JSON.stringify({ version: 1, trustDomain: 'acme.local', roots: [] }), 'AUTHORITY_DAMAGED'],
    [JSON.stringify(activate(firstRoots('acme.local', made(1), 0, undefined), 1)), 'AUTHORITY_DAMAGED'],
    [JSON.stringify(firstRoots('other.local', made(1), 0, undefined)), 'ISSUER_TRUST_DOMAIN'],
  ])('that cannot be used are refused: %s', (text, code) => {
    expect(() => parseRoots(text, 'acme.local')).toThrow(expect.objectContaining({ kind: 'conflict', code }));
  });

  it('sign only after every workload could trust them, and stay until nothing that they signed is valid', () => {
    const steps = fc.array(fc.tuple(fc.nat(700), fc.constantFrom('a', 'b', 'c', undefined)), {
      maxLength: 60,
    });
    fc.assert(
      fc.property(steps, (pauses) => {
        const history = new History();
        for (const [pauseMs, wanted] of pauses) history.pass(pauseMs, wanted);
      }),
    );
  });
});

/** Records since when each root of an installation was trusted and until when it signed. */
class History {
  #roots = firstRoots('acme.local', made(365 * day), 0, undefined);
  #nowMs = 0;
  readonly #trustedSince = new Map([[this.#signing(), -overlapMs]]);
  readonly #signedUntil = new Map<string, number>();

  pass(pauseMs: number, wanted: string | undefined): void {
    this.#nowMs += pauseMs;
    this.#signedUntil.set(this.#signing(), this.#nowMs);
    this.#roots = follow(this.#roots, at(this.#nowMs, wanted));
    const trusted = this.#roots.roots.map(({ certificatePem }) => certificatePem);
    for (const one of trusted) this.#trustedSince.set(one, this.#trustedSince.get(one) ?? this.#nowMs);
    expect(this.#roots.roots.filter(({ stage }) => stage === 'active')).toHaveLength(1);
    const sinceMs = this.#trustedSince.get(this.#signing()) ?? Number.NaN;
    expect(this.#nowMs - sinceMs).toBeGreaterThanOrEqual(overlapMs);
    for (const [one, untilMs] of this.#signedUntil) {
      expect(trusted.includes(one) || this.#nowMs - untilMs >= overlapMs).toBe(true);
    }
  }

  #signing(): string {
    return signingRoot(this.#roots).certificatePem;
  }
}
