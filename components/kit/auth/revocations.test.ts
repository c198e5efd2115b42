import { describe, expect, it } from 'vitest';
import { AppError } from '#core/errors/errors.ts';
import type { Caller } from '#core/identity/claims.ts';
import type { Bus } from '#kit/bus/bus.ts';
import { manualClock } from '#kit/clock/clock.ts';
import { testRuntime } from '#kit/testing/runtime.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { createRevocationView, type Revocation, type RevocationPage } from './auth.ts';

const startMs = 1_800_000_000_000;

describe('revocation view', () => {
  const base = {
    kind: 'user',
    subject: 'identity-1',
    platformUserId: 'person-1',
    organizationId: 'org-1',
    sessionId: 'family-1',
    tokenId: 'token-1',
    issuedAtMs: startMs,
  } as Caller;

  const world = (pollMs = 5) => {
    const clock = manualClock(startMs);
    const state = { log: [] as Revocation[], down: false, lists: 0, notify: () => {} };
    const list = async (cursor: { sequence: bigint } | undefined): Promise<RevocationPage> => {
      state.lists += 1;
      if (state.down) throw new Error('down');
      const from = Number(cursor?.sequence ?? 0n);
      const revocations = state.log.slice(from, from + 2);
      const end = from + revocations.length;
      const next = { transactionId: 1n, sequence: BigInt(end) };
      return { revocations, next, complete: end === state.log.length };
    };
    const bus: Bus = {
      connected: true,
      publish: () => {},
      subscribe: (_subject, listener) => {
        state.notify = listener;
        return () => {};
      },
      close: async () => {},
    };
    const { log } = testRuntime('test');
    return { clock, state, view: createRevocationView({ source: { list }, bus, clock, log, pollMs }) };
  };
  const far = startMs + 100_000_000;

  it('is not fresh before the first snapshot, which may have many pages', async () => {
    const { view, state } = world();
    for (let at = 0; at < 7; at += 1) {
      state.log.push({ kind: 'token', key: `token-${at}`, notBeforeMs: 0, expiresAtMs: far });
    }
    expect(() => view.assertFresh()).toThrow(expect.objectContaining({ code: 'REVOCATIONS_STALE' }));
    await view.start();
    view.assertFresh();
    expect(view.isRevoked(base)).toBe(true);
    expect(view.isRevoked({ ...base, tokenId: 'token-9' })).toBe(false);
    view.stop();
  });

  const kinds: Record<string, Omit<Revocation, 'expiresAtMs'>> = {
    token: { kind: 'token', key: 'token-1', notBeforeMs: 0 },
    family: { kind: 'family', key: 'family-1', notBeforeMs: 0 },
    identity: { kind: 'identity', key: 'identity-1', notBeforeMs: startMs },
    person: { kind: 'platform_user', key: 'person-1', notBeforeMs: startMs },
    organisation: { kind: 'organization', key: 'org-1', notBeforeMs: startMs },
  };
  for (const [name, revocation] of Object.entries(kinds)) {
    it(`knows a revoked ${name}`, async () => {
      const { view, state } = world();
      await view.start();
      expect(view.isRevoked(base)).toBe(false);
      state.log.push({ ...revocation, expiresAtMs: far });
      await waitFor(() => view.isRevoked(base));
      view.stop();
    });
  }

  it('tokens issued after a revocation of everything are valid', async () => {
    const { view, state } = world();
    state.log.push({ kind: 'identity', key: 'identity-1', notBeforeMs: startMs, expiresAtMs: far });
    state.log.push({ kind: 'identity', key: 'identity-1', notBeforeMs: startMs - 5_000, expiresAtMs: far });
    await view.start();
    expect(view.isRevoked(base)).toBe(true);
    expect(view.isRevoked({ ...base, issuedAtMs: startMs + 1 })).toBe(false);
    view.stop();
  });

  it.each([
    ['identity', 'identity-9'],
    ['platform_user', 'person-9'],
    ['organization', 'org-9'],
    ['family', 'family-9'],
  ] as const)('a revoked %s revokes the tokens delegated for the person', async (kind, key) => {
    const { view, state } = world();
    const delegation = {
      userId: 'identity-9',
      platformUserId: 'person-9',
      organizationId: 'org-9',
      roles: [],
      sessionId: 'family-9',
    };
    await view.start();
    expect(view.isRevoked({ ...base, delegation })).toBe(false);
    state.log.push({ kind, key, notBeforeMs: startMs, expiresAtMs: far });
    await waitFor(() => view.isRevoked({ ...base, delegation }));
    expect(view.isRevoked(base)).toBe(false);
    view.stop();
  });

  it('a wake signal shortens the wait', async () => {
    const { view, state } = world(60_000);
    await view.start();
    state.log.push({ kind: 'token', key: 'token-1', notBeforeMs: 0, expiresAtMs: far });
    state.notify();
    await waitFor(() => view.isRevoked(base), { deadlineMs: 2_000 });
    view.stop();
  });

  it('goes stale after 60 s without an answer, keeps its entries, and recovers', async () => {
    const { view, state, clock } = world();
    state.log.push({ kind: 'token', key: 'token-1', notBeforeMs: 0, expiresAtMs: far });
    await view.start();
    state.down = true;
    const lists = state.lists;
    await waitFor(() => state.lists > lists + 1);
    clock.advance(60_000);
    view.assertFresh();
    clock.advance(1);
    expect(() => view.assertFresh()).toThrow(AppError);
    expect(view.isRevoked(base)).toBe(true);
    state.down = false;
    await waitFor(() => {
      view.assertFresh();
      return true;
    });
    view.stop();
  });

  it('drops entries that no valid token can match', async () => {
    const { view, state, clock } = world();
    state.log.push({ kind: 'token', key: 'token-1', notBeforeMs: 0, expiresAtMs: startMs + 1_000 });
    await view.start();
    clock.advance(200_000);
    await waitFor(() => !view.isRevoked(base));
    view.stop();
  });

  it('stops polling when stopped', async () => {
    const { view, state } = world();
    await view.start();
    view.stop();
    const lists = state.lists;
    await new Promise((resolve) => setImmediate(resolve));
    state.notify();
    expect(state.lists).toBeLessThanOrEqual(lists + 1);
  });
});
