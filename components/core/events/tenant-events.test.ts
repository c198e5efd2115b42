import { expect, it } from 'vitest';
import { inboxEntriesSeen, inboxEntryAdded, parseTenantEvent } from './tenant-events.ts';

const platformUserId = '0197a5d2-7c1e-7b40-9d52-3f1c2a4b5e60';
const entryId = '0197a5d2-7c1e-7b40-9d52-3f1c2a4b5e61';
const traceId = '0af7651916cd43dd8448eb211c80319c';

it('reads what the outbox stores', () => {
  for (const event of [
    inboxEntryAdded({ platformUserId, entryId, traceId }),
    inboxEntryAdded({ platformUserId, entryId, traceId: undefined }),
    inboxEntriesSeen({ platformUserId }),
  ]) {
    const { kind, data } = event;
    expect(event.key).toBe(platformUserId);
    expect(parseTenantEvent(kind, JSON.parse(JSON.stringify(data)))).toEqual({ kind, data });
  }
});

it('ignores unknown kinds and members, and refuses data that is not what its kind says', () => {
  expect(parseTenantEvent('DeviceForgotten', {})).toBeUndefined();
  expect(parseTenantEvent('toString', {})).toBeUndefined();
  expect(parseTenantEvent('InboxEntriesSeen', { platformUserId, later: 1 })).toEqual({
    kind: 'InboxEntriesSeen',
    data: { platformUserId },
  });
  for (const data of [{ platformUserId }, { platformUserId, entryId: 'x' }, null, 'x']) {
    expect(() => parseTenantEvent('InboxEntryAdded', data)).toThrow(
      expect.objectContaining({ code: 'EVENT_UNREADABLE' }),
    );
  }
});
