import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { memberDid } from '#core/ledger/did.ts';
import { testKey } from '../../testing/keys.ts';
import { startTestRegister, type TestRegister } from '../../testing/register.ts';

const owner = memberDid(testKey(1).walletAddress);
const target = memberDid(testKey(2).walletAddress);
const key = { publicKey: testKey(2).publicKey, algorithm: 'ED25519' };
const entry = { validatorId: 'v', ...key, proofOfPossession: 'AAAA' };
const hash = 'a'.repeat(64);
const signature = { publicKey: key.publicKey, signatureValue: 'AAAA', algorithm: 'ED25519' };

/** Nearly valid bodies, by their path below the register; each test replaces one member. */
const bodies: readonly (readonly ['POST' | 'PUT', string, Readonly<Record<string, unknown>>])[] = [
  [
    'POST',
    '/governance/propose',
    { operationType: 'add-member', targetDid: target, targetRole: 'Admin', targetKey: key },
  ],
  [
    'POST',
    '/governance/propose',
    { operationType: 'add-validator', validatorEntry: entry, justification: 'x' },
  ],
  ['POST', '/governance/propose', { operationType: 'policy-update', policy: { version: 2 }, mode: 'direct' }],
  ['POST', '/governance/propose', { operationType: 'crypto-policy-update', cryptoPolicy: { version: 2 } }],
  [
    'POST',
    '/governance/propose',
    {
      operationType: 'suspend-validator',
      validatorId: 'validator-0',
      evidence: { kind: 'missed-slots', dockets: [1] },
    },
  ],
  [
    'POST',
    '/governance/propose',
    {
      transaction: {
        transactionId: hash,
        actionId: 'add-member',
        payload: {},
        createdAt: '2026-11-21T12:00:00Z',
        metadata: { Type: 'Control' },
        signatures: [signature],
      },
    },
  ],
  [
    'POST',
    `/governance/proposals/${hash}/approvals`,
    { decision: 'approve', comment: 'x', approverDid: owner },
  ],
  ['POST', '/policy/update', { policy: { version: 2 }, updatedBy: owner, transitionMode: 'immediate' }],
  ['POST', '/governance/crypto-policy', { cryptoPolicy: { devMode: false }, updatedBy: owner }],
  ['PUT', '', { title: 'x', description: 'y', metadata: { a: 'b' }, advertise: false }],
];

/** Replaces the value of a member, at any depth. */
function replaced(value: unknown, path: readonly number[], by: unknown): unknown {
  const [step, ...rest] = path;
  if (step === undefined || typeof value !== 'object' || value === null) return by;
  const entries = Object.entries(value);
  if (entries.length === 0) return by;
  const at = step % entries.length;
  const changed = entries.map(([name, member], index) =>
    index === at ? ([name, replaced(member, rest, by)] as const) : ([name, member] as const),
  );
  return Array.isArray(value) ? changed.map(([, member]) => member) : Object.fromEntries(changed);
}

describe('hostile request bodies', () => {
  let register: TestRegister;
  let registerId: string;
  beforeAll(async () => {
    register = await startTestRegister('hostile');
    registerId = await register.createRegister();
    // Accepted transactions are never confirmed: these tests check the answers only.
    register.ledger.confirmations.close();
  });
  afterAll(() => register.stop());

  it.each(bodies)(
    '%s %s never fails with an internal error, whatever its body contains',
    async (method, rest, body) => {
      const strange = fc.oneof(
        fc.jsonValue({ maxDepth: 3 }),
        fc.constantFrom('\u0000', '\ud800', 'x'.repeat(2_000), -0, 1e300, [], {}, '__proto__', [[[[]]]]),
      );
      await fc.assert(
        fc.asyncProperty(fc.array(fc.nat(20), { minLength: 1, maxLength: 3 }), strange, async (path, by) => {
          const sent = replaced(body, path, by);
          const answer = await register.call(method, `/api/registers/${registerId}${rest}`, {
            token: 'admin',
            body: sent,
          });
          expect(answer.status, JSON.stringify(sent)).toBeLessThan(500);
        }),
        { numRuns: 60 },
      );
    },
  );

  it('seals the accepted transactions, or refuses them with codes', async () => {
    const waiting = register.validators.pooled(registerId).length;
    const result = await register.ledger.writeDocket(await register.propose(registerId, 1));
    expect(waiting).toBeGreaterThan(0);
    expect(['stored', 'invalid']).toContain(result.outcome);
  });
});
