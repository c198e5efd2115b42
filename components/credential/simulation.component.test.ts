import { X509Certificate } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseCertificate } from '#core/trust/certificate.ts';
import { Attester } from './testing/attester.ts';
import { type Fixture, openFixture } from './testing/fixture.ts';
import { highAssuranceMutations, mutations } from './testing/simulation/mutations.ts';
import { simulate } from './testing/simulation/run.ts';
import { anyStep } from './testing/simulation/steps.ts';
import { openStage, type Stage } from './testing/simulation/world.ts';

/**
 * Ten wallets, four of them hostile, take random steps through offers and requests for presentations, and each answer is
 * compared with a model. A failure prints its seed and its shortest steps; `CHANCERY_TEST_SEED` repeats it.
 */

const full = process.env['CHANCERY_TEST_LENGTH'] === 'full';
const seed = process.env['CHANCERY_TEST_SEED'];

describe.each(['openid4vc-1.0', 'haip-1.0'] as const)('simulated wallets in %s', (profile) => {
  const isHighAssurance = profile === 'haip-1.0';
  let fixture: Fixture;
  let stage: Stage;

  beforeAll(async () => {
    const attester = await Attester.open();
    const authorities = [parseCertificate(new X509Certificate(attester.certificate.rootPem).raw)];
    const served = { profile, authorities, requiresKeyAttestation: isHighAssurance };
    fixture = await openFixture(`credential_simulation_${isHighAssurance ? 'haip' : 'plain'}`, served);
    stage = await openStage(fixture, { attester, isHighAssurance });
  });

  afterAll(() => fixture.close());

  test('get and present what the model says', { timeout: full ? 3_600_000 : 180_000 }, async () => {
    const steps = fc.array(anyStep, { minLength: 40, maxLength: 120, size: 'max' });
    const holds = fc.asyncProperty(steps, (taken) => simulate(stage, taken));
    await fc.assert(holds, {
      numRuns: full ? 1_000 : 40,
      ...(seed !== undefined && { seed: Number(seed) }),
    });
    expect([...stage.reached.keys()]).toEqual(
      expect.arrayContaining(['credential right accepted', 'credential right refused', 'verified']),
    );
  });

  const cases = Object.entries(isHighAssurance ? { ...mutations, ...highAssuranceMutations } : mutations);

  test.each(cases)('differ from the model where the database %s', async (_, { on, does, steps }) => {
    const { pool } = fixture.db;
    await simulate(stage, steps);
    await pool.query(
      `create function credential.mutate() returns trigger language plpgsql as $$ begin ${does}; end $$`,
    );
    await pool.query(`create trigger mutation ${on} execute function credential.mutate()`);
    try {
      await expect(simulate(stage, steps)).rejects.toThrow();
    } finally {
      await pool.query('drop function credential.mutate() cascade');
    }
  });
});
