import { describe, expect, it } from 'vitest';
import { waitFor } from '#kit/testing/wait.ts';
import { testBounds } from '../../testing/bounds.ts';
import { World } from '../../testing/world.ts';

describe('the pools of a validator', () => {
  it('share a byte budget over all registers, which sealing frees', async () => {
    const small = new World({ bounds: { ...testBounds, maxBytesTotal: 6_000 } });
    try {
      await small.open();
      await small.begin();
      const { budget } = small.engine;
      await waitFor(() => budget.bytes === 0, { what: 'genesis stored' });
      await small.engine.setMode(small.register.id, 'Paused');
      const one = small.sign({ payload: { blob: 'x'.repeat(1_500) } });
      const two = small.sign({ payload: { blob: 'y'.repeat(1_500) } });
      // The budget used by another register.
      budget.hold(2_000);
      expect((await small.submit(one.text)).status).toBe(200);
      expect(budget.bytes).toBe(2_000 + small.register.pool.heldBytes);
      const refused = await small.submit(two.text);
      expect(refused).toMatchObject({
        status: 429,
        retryAfterSeconds: 1,
        body: { code: 'MEMPOOL_FULL', bound: 'total' },
      });
      budget.hold(-2_000);
      expect((await small.submit(two.text)).status).toBe(200);
      await small.engine.setMode(small.register.id, 'Running');
      await small.sealed(3);
      await waitFor(() => budget.bytes === 0, { what: 'everything stored' });
    } finally {
      await small.remove();
    }
  });
});
