import { expect, it } from 'vitest';
import { freshnessOf } from './freshness.ts';

const issued = Date.UTC(2026, 0, 1);

it('is stale from the next update on', () => {
  const list = { listIssueAtMs: issued, nextUpdateAtMs: issued + 1_000 };
  expect(freshnessOf(list, issued + 999)).toBe('Fresh');
  expect(freshnessOf(list, issued + 1_000)).toBe('Stale');
});

it('is stale 90 days after its issue when no next update is named', () => {
  const list = { listIssueAtMs: issued, nextUpdateAtMs: undefined };
  expect(freshnessOf(list, Date.UTC(2026, 3, 1) - 1)).toBe('Fresh');
  expect(freshnessOf(list, Date.UTC(2026, 3, 1))).toBe('Stale');
});
