import { describe, expect, it } from 'vitest';
import {
  parseRegisterEvent,
  parseStoredEvent,
  REGISTER_EVENTS,
  registerAdvertised,
  registerCreated,
  registerDeleted,
  registerStatusChanged,
  syncStateChanged,
} from './register-events.ts';

const registerId = '0123456789abcdef0123456789abcdef';
const traceId = 'ab'.repeat(16);
const hash = 'cd'.repeat(32);

describe('what the outbox of the register service holds', () => {
  it.each([
    registerCreated({ registerId, organizationIds: ['acme'], traceId }),
    registerDeleted({ registerId, organizationIds: [], traceId: undefined }),
    registerAdvertised({ registerId, advertise: false }),
    registerStatusChanged({ registerId, status: 'Halted', organizationIds: ['acme'] }),
    syncStateChanged({ registerId, syncState: 'Syncing' }),
  ])('$kind is read, and members that come later are passed over', ({ kind, key, data }) => {
    expect(key).toBe(registerId);
    const written = JSON.parse(JSON.stringify({ ...data, colour: 'red' }));
    expect(parseStoredEvent(kind, written)).toEqual({ kind, data: JSON.parse(JSON.stringify(data)) });
  });

  it('is read as it was written before organisations and traces were', () => {
    const data = { registerId, organizationId: 'acme', purpose: 'General' };
    expect(parseStoredEvent('RegisterCreated', data)?.data).toEqual({ registerId, organizationIds: [] });
    const docket = { registerId, docketNumber: 3, hash, transactionCount: 2 };
    expect(parseStoredEvent('DocketSealed', docket)?.data).toEqual(docket);
  });

  it('an unknown kind is nothing, a known one with something else a fault', () => {
    expect(parseStoredEvent('toString', {})).toBeUndefined();
    expect(() => parseStoredEvent('DocketSealed', { registerId })).toThrow(
      expect.objectContaining({ kind: 'internal', code: 'EVENT_UNREADABLE' }),
    );
  });
});

describe('the feed', () => {
  const common = { registerId, occurredAt: '2026-11-22T12:00:00.000Z', traceId };

  it('carries ids, times and a trace, and no content', () => {
    const members = Object.values(REGISTER_EVENTS).flatMap(({ shape }) => Object.keys(shape));
    expect([...new Set(members)].toSorted()).toEqual([
      'docketHash',
      'docketNumber',
      'newHeight',
      'occurredAt',
      'organizationIds',
      'receiptId',
      'registerId',
      'sealedAt',
      'status',
      'syncState',
      'traceId',
      'transactionId',
    ]);
  });

  it('is read by kind; an unknown one is nothing, a wrong one a fault', () => {
    const data = { ...common, newHeight: 4 };
    expect(parseRegisterEvent('x', 'RegisterHeightUpdated', data)).toEqual({
      id: 'x',
      kind: 'RegisterHeightUpdated',
      data,
    });
    expect(parseRegisterEvent('x', 'Later', data)).toBeUndefined();
    expect(() => parseRegisterEvent('x', 'DocketSealed', data)).toThrow(
      expect.objectContaining({ code: 'EVENT_UNREADABLE' }),
    );
  });
});
