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

describe('events in the outbox of the register service', () => {
  it.each([
    registerCreated({ registerId, organizationIds: ['acme'], traceId }),
    registerDeleted({ registerId, organizationIds: [], traceId: undefined }),
    registerAdvertised({ registerId, advertise: false }),
    registerStatusChanged({ registerId, status: 'Halted', organizationIds: ['acme'] }),
    syncStateChanged({ registerId, syncState: 'Syncing' }),
  ])('$kind is parsed, and unknown members are ignored', ({ kind, key, data }) => {
    expect(key).toBe(registerId);
    const written = JSON.parse(JSON.stringify({ ...data, colour: 'red' }));
    expect(parseStoredEvent(kind, written)).toEqual({ kind, data: JSON.parse(JSON.stringify(data)) });
  });

  it('parses as it was written before organisations and traces were added', () => {
    const data = { registerId, organizationId: 'acme', purpose: 'General' };
    expect(parseStoredEvent('RegisterCreated', data)?.data).toEqual({ registerId, organizationIds: [] });
    const docket = { registerId, docketNumber: 3, hash, transactionCount: 2 };
    expect(parseStoredEvent('DocketSealed', docket)?.data).toEqual(docket);
  });

  it('an unknown kind is undefined, a known kind with other data is an error', () => {
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

  it('parses by kind; an unknown kind is undefined, a known kind with other data is an error', () => {
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
