import { expect, it } from 'vitest';
import {
  credentialAvailable,
  credentialStatusChanged,
  deviceRevoked,
  HOLDER_EVENTS,
  parseHolderEvent,
} from './holder-events.ts';

const platformUserId = '0197a5d2-7c1e-7b40-9d52-3f1c2a4b5e60';
const walletAddress = 'w1qdf3q6tl433zl3al00lzv4uqgyy0lucqpq2nf2tsv9txnyqjgr3ss2uttek';
const credentialId = 'urn:uuid:7d5f1c9e-4f7b-4b61-8b2a-91c54c3a7b55';
const traceId = '0af7651916cd43dd8448eb211c80319c';
const deviceId = '0197a5d2-7c1e-7b40-9d52-3f1c2a4b5e61';

it('reads what the outbox stores, under the key of the person, else of the wallet', () => {
  const events = [
    deviceRevoked({ platformUserId, deviceId, traceId }),
    credentialAvailable({ walletAddress, platformUserId, credentialId, traceId: undefined }),
    credentialAvailable({ walletAddress, credentialId }),
    credentialStatusChanged({ walletAddress, platformUserId, credentialId, traceId }),
    credentialStatusChanged({ walletAddress, credentialId }),
  ];
  for (const { kind, data } of events) {
    expect(parseHolderEvent(kind, JSON.parse(JSON.stringify(data)))).toEqual({ kind, data });
  }
  expect(events.map(({ key }) => key)).toEqual([
    platformUserId,
    platformUserId,
    walletAddress,
    platformUserId,
    walletAddress,
  ]);
  expect([...new Set(events.map(({ kind }) => kind))]).toEqual(HOLDER_EVENTS);
});

it('ignores unknown kinds and members, and refuses data that is not what its kind says', () => {
  expect(parseHolderEvent('WalletCreated', {})).toBeUndefined();
  expect(parseHolderEvent('toString', {})).toBeUndefined();
  expect(parseHolderEvent('DeviceRevoked', { platformUserId, deviceId, later: 1 })).toEqual({
    kind: 'DeviceRevoked',
    data: { platformUserId, deviceId },
  });
  for (const [kind, data] of [
    ['DeviceRevoked', { platformUserId, deviceId: 'mine' }],
    ['DeviceRevoked', { deviceId }],
    ['CredentialAvailable', { walletAddress }],
    ['CredentialAvailable', { platformUserId, credentialId }],
    ['CredentialStatusChanged', { walletAddress, credentialId, traceId: 'x' }],
    ['CredentialStatusChanged', null],
  ] as const) {
    expect(() => parseHolderEvent(kind, data)).toThrow(expect.objectContaining({ code: 'EVENT_UNREADABLE' }));
  }
});
