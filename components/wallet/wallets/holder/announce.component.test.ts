import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { HOLDER_EVENTS } from '#core/events/holder-events.ts';
import { administrator, openFixture, person, type Replica } from '../../testing/fixture.ts';
import { createHttpClient, type HttpClient } from '../../testing/http-client.ts';
import { getWallet } from '../records/store.ts';
import type { Wallet } from '../records/wallet.ts';
import { announceCredential, announceCredentialStatus, announceRevokedDevice } from './announce.ts';
import { findNotice, storeNotice } from './store.ts';

const alice = randomUUID();
const bob = randomUUID();
const organizationId = randomUUID();

let replica: Replica;
let client: HttpClient;
let ofAlice: Wallet;
let ofOrganization: Wallet;
let derived: Wallet;

beforeAll(async () => {
  replica = await openFixture('wallet_announce');
  client = createHttpClient(replica);
  client.callers
    .set('alice', person({ platformUserId: alice, tier: 'consumer' }))
    .set('admin', administrator(organizationId));
  replica.members.add(`${organizationId} ${alice}`);
  const read = (address: string) => getWallet(replica.db.read, address);
  const base = `POST /api/wallets/org/${organizationId}`;
  ofAlice = await read((await client.made('alice')).walletAddress);
  ofOrganization = await read((await client.call('admin', `${base}/master-key`)).body.walletAddress);
  const key = await client.call('admin', `${base}/derive-key`, {
    body: { userId: alice, usage: 'Identity' },
  });
  derived = await read(key.body.walletAddress);
});

afterAll(async () => {
  await client.close();
  await replica.close();
});

async function events() {
  const { rows } = await replica.db.pool.query(
    'SELECT kind, key, data FROM outbox WHERE kind = ANY($1) ORDER BY transaction_id, sequence',
    [HOLDER_EVENTS],
  );
  return rows;
}

const setNotices = () =>
  replica.db.transact(async (tx) => {
    for (const each of [alice, bob]) await storeNotice(tx, each, 'Parking permit');
  });
const labels = async () =>
  (await Promise.all([alice, bob].map((each) => findNotice(replica.db.read, each)))).map(
    (notice) => notice?.label,
  );

test('delivery of a credential clears the notice of its holder, in the transaction that announces it', async () => {
  await setNotices();
  const failing = replica.db.transact(async (tx) => {
    await announceCredential(tx, { wallet: ofAlice, credentialId: 'urn:uuid:1' });
    throw new Error('the credential is not stored');
  });
  await expect(failing).rejects.toThrow('the credential is not stored');
  expect(await labels()).toEqual(['Parking permit', 'Parking permit']);
  expect(await events()).toEqual([]);

  const announced = { wallet: ofAlice, credentialId: 'urn:uuid:1' };
  await replica.db.transact((tx) => announceCredential(tx, announced));
  expect(await labels()).toEqual([undefined, 'Parking permit']);
  const data = { walletAddress: ofAlice.address, platformUserId: alice, credentialId: 'urn:uuid:1' };
  expect(await events()).toEqual([{ kind: 'CredentialAvailable', key: alice, data }]);
});

test('credentials of an organisation clear no notice; other events of a person do not either', async () => {
  const before = (await events()).length;
  await setNotices();
  await replica.db.transact(async (tx) => {
    for (const wallet of [ofOrganization, derived]) {
      await announceCredential(tx, { wallet, credentialId: 'urn:uuid:2' });
    }
    await announceCredentialStatus(tx, { wallet: ofAlice, credentialId: 'urn:uuid:1' });
    await announceRevokedDevice(tx, { platformUserId: alice, deviceId: randomUUID() });
  });
  expect(await labels()).toEqual(['Parking permit', 'Parking permit']);
  expect((await events()).slice(before).map(({ kind, key }) => [kind, key])).toEqual([
    ['CredentialAvailable', ofOrganization.address],
    ['CredentialAvailable', derived.address],
    ['CredentialStatusChanged', alice],
    ['DeviceRevoked', alice],
  ]);
});
