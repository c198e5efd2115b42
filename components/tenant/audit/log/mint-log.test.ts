import { expect, it } from 'vitest';
import { manualClock } from '#kit/clock/clock.ts';
import type { AuditEvent } from './event.ts';
import { createMintLog } from './mint-log.ts';

it('writes one row per principal, credential and flush, and keeps the counts when a flush fails', async () => {
  const written: AuditEvent[][] = [];
  let fails = false;
  const log = createMintLog({
    clock: manualClock(5_000),
    organizationId: 'org',
    append: async (events) => {
      if (fails) throw new Error('database away');
      written.push(events);
    },
  });
  await log.flush();
  expect(written).toEqual([]);
  for (const credential of ['certificate', 'certificate', 'secret']) log.count('p', 'service-x', credential);
  fails = true;
  await expect(log.flush()).rejects.toThrow('database away');
  log.count('p', 'service-x', 'certificate');
  fails = false;
  await log.flush();
  const details = { clientId: 'service-x', principalId: 'p' };
  const row = { organizationId: 'org', occurredAtMs: 5_000, type: 'TokenIssued', success: true };
  expect(written).toEqual([
    [
      { ...row, details: { ...details, credential: 'certificate', occurrences: 3 } },
      { ...row, details: { ...details, credential: 'secret', occurrences: 1 } },
    ],
  ]);
});
