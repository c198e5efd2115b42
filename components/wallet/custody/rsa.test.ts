import { describe, expect, test } from 'vitest';
import type { KeyMaterial } from './material.ts';
import { RsaGenerator } from './rsa.ts';

describe('RsaGenerator', () => {
  test('two run at a time, sixteen wait, the nineteenth is refused with Retry-After; a failure frees its slot', async () => {
    const gates: PromiseWithResolvers<KeyMaterial>[] = [];
    const generator = new RsaGenerator({
      make: () => {
        const gate = Promise.withResolvers<KeyMaterial>();
        gates.push(gate);
        return gate.promise;
      },
    });
    const requests = Array.from({ length: 18 }, () => generator.generate());
    const outcomes = Promise.allSettled(requests);
    await expect(generator.generate()).rejects.toMatchObject({
      code: 'KEY_GENERATION_BUSY',
      retryAfterSeconds: 5,
    });
    expect(gates).toHaveLength(2);
    for (let i = 0; i < 18; i += 1) {
      const gate = gates[i];
      if (i % 3 === 0) gate?.reject(new Error('no entropy'));
      else gate?.resolve({ purpose: 'pkcs8', secret: Buffer.alloc(1) });
      await requests[i]?.catch(() => undefined);
      expect(gates.length - i - 1).toBeLessThanOrEqual(2);
    }
    const settled = await outcomes;
    expect(settled.filter((each) => each.status === 'rejected')).toHaveLength(6);
    const next = generator.generate();
    gates.at(-1)?.resolve({ purpose: 'pkcs8', secret: Buffer.alloc(1) });
    await expect(next).resolves.toBeDefined();
  });
});
