import { describe, expect, it } from 'vitest';
import {
  parseWalletEvent,
  parseWalletKeyRevoked,
  WALLET_EVENTS,
  WALLET_KEY_REVOKED,
} from './wallet-events.ts';

const fact = {
  walletId: '0199b5ab-0000-7000-8000-000000000001',
  address: 'w1qdf3q6tl433zl3al00lzv4uqgyy0lucqpq2nf2tsv9txnyqjgr3ss2uttek',
  ownerKind: 'User',
  ownerId: '0199b5ab-0000-7000-8000-00000000000a',
  status: 'Active',
  createdAt: '2026-11-21T12:00:00.000Z',
};

it('an event of a revoked key is parsed, and refused when it is not what its schema says', () => {
  const revoked = {
    derivedKeyId: fact.walletId,
    walletAddress: fact.address,
    did: `did:platform:w:${fact.address}`,
    revokedAt: fact.createdAt,
  };
  expect(parseWalletKeyRevoked(WALLET_KEY_REVOKED, { ...revoked, later: 1 })).toEqual(revoked);
  expect(parseWalletKeyRevoked('WalletCreated', fact)).toBeUndefined();
  for (const data of [null, {}, { ...revoked, revokedAt: 'yesterday' }, { ...revoked, walletAddress: '' }]) {
    expect(() => parseWalletKeyRevoked(WALLET_KEY_REVOKED, data)).toThrow(
      expect.objectContaining({ code: 'EVENT_UNREADABLE' }),
    );
  }
});

describe('events of the wallet service', () => {
  it.each(WALLET_EVENTS)('%s is parsed; unknown members are ignored', (kind) => {
    expect(parseWalletEvent(kind, { ...fact, colour: 'red' })).toEqual({ kind, fact });
  });

  it('an unknown kind is undefined, whatever its data', () => {
    expect(parseWalletEvent('TransactionReceived', 7)).toBeUndefined();
  });

  it('unknown owner kinds and states are accepted', () => {
    const later = { ...fact, ownerKind: 'Service', status: 'Sleeping' };
    expect(parseWalletEvent('WalletStatusChanged', later)?.fact).toEqual(later);
  });

  const wrong: Record<string, unknown> = {
    nothing: null,
    text: 'x',
    'a wallet without id': { ...fact, walletId: undefined },
    'an invalid id': { ...fact, walletId: 'w1' },
    'an owner without id': { ...fact, ownerId: '' },
    'an invalid time': { ...fact, createdAt: 'yesterday' },
  };
  it.each(Object.entries(wrong))('refuses %s', (_name, data) => {
    expect(() => parseWalletEvent('WalletCreated', data)).toThrow(
      expect.objectContaining({ kind: 'internal', code: 'EVENT_UNREADABLE' }),
    );
  });
});
