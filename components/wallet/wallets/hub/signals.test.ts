import { expect, it } from 'vitest';
import { credentialAvailable, credentialStatusChanged, deviceRevoked } from '#core/events/holder-events.ts';
import { WALLET_HUB_EVENTS, type WalletHubEvent } from '#core/events/hub-events.ts';
import type { OutboxEvent } from '#kit/db/outbox.ts';
import { personGroup, signalsOf, walletGroup } from './signals.ts';

const deviceId = '019a0000-0000-7000-8000-000000000001';
const traceId = 'c'.repeat(32);
const createdAt = new Date('2026-11-21T12:00:00Z');
const credential = { walletAddress: 'w1a', platformUserId: 'anna', credentialId: 'urn:uuid:1' };
const ofOrganization = { walletAddress: 'w1b', credentialId: 'urn:uuid:2' };

function row(event: { readonly kind: string; readonly key: string; readonly data: unknown }): OutboxEvent {
  return { ...event, cursor: { transactionId: 1n, sequence: 1n }, createdAt };
}

const rows = [
  row(deviceRevoked({ platformUserId: 'anna', deviceId, traceId })),
  row(credentialAvailable({ ...credential, traceId })),
  row(credentialStatusChanged(credential)),
  row(credentialAvailable(ofOrganization)),
];

it('signals are what the schemas of the hub say, and carry ids, times and a trace alone', () => {
  const signals = signalsOf(rows, () => true);
  const at = createdAt.toISOString();
  const ofBoth = [walletGroup('w1a'), personGroup('anna')];
  expect(signals).toEqual([
    { target: 'DeviceRevoked', arguments: [deviceId], groups: [personGroup('anna')] },
    { target: 'CredentialAvailable', arguments: ['urn:uuid:1', at, traceId], groups: ofBoth },
    { target: 'CredentialStatusChanged', arguments: ['urn:uuid:1', at, ''], groups: ofBoth },
    { target: 'CredentialAvailable', arguments: ['urn:uuid:2', at, ''], groups: [walletGroup('w1b')] },
  ]);
  expect([...new Set(signals.map(({ target }) => target))]).toEqual(Object.keys(WALLET_HUB_EVENTS));
  for (const { target, arguments: args } of signals) {
    expect(WALLET_HUB_EVENTS[target as WalletHubEvent].parse(args)).toEqual(args);
    expect(args.filter((arg) => typeof arg === 'object')).toEqual([]);
  }
});

it('rows that no connection follows have no signal', () => {
  const targetsFor = (group: string) => signalsOf(rows, (each) => each === group).map(({ target }) => target);
  expect(targetsFor(personGroup('ben'))).toEqual([]);
  expect(targetsFor(walletGroup('w1a'))).toEqual(['CredentialAvailable', 'CredentialStatusChanged']);
  expect(targetsFor(walletGroup('w1b'))).toEqual(['CredentialAvailable']);
  expect(targetsFor(personGroup('anna'))).toHaveLength(3);
});

it('rows of other kinds have no signal, and a row that cannot be read is an error', () => {
  const [first] = rows;
  if (first === undefined) throw new Error('no row');
  expect(signalsOf([{ ...first, kind: 'WalletCreated' }], () => true)).toEqual([]);
  expect(() => signalsOf([{ ...first, data: {} }], () => true)).toThrow('DeviceRevoked');
});
