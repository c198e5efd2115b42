import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { walletHandlers } from '../../signing/rpc.ts';
import { openFixture, person, type Replica, type ReplicaOptions, rpcContext } from '../../testing/fixture.ts';
import { mayOwnWallets, serviceWalletHandlers } from './rpc.ts';

describe('wallets of the blueprint service', () => {
  const own = 'service-blueprint';
  let replica: Replica & ReplicaOptions;
  beforeAll(async () => {
    replica = await openFixture('blueprint_wallets');
  });
  afterAll(() => replica.close());

  const subject = (clientId: string) =>
    person({ kind: 'service', tier: 'service', clientId, platformUserId: undefined });
  const handlers = () => serviceWalletHandlers(replica.deps);
  const ensure = async (name: string, clientId = own) => {
    const { wallet } = await handlers().ensureServiceWallet({ name } as never, rpcContext(clientId));
    return wallet?.walletAddress ?? '';
  };
  const erase = (names: string[], clientId = own) =>
    handlers().eraseServiceWallets({ names } as never, rpcContext(clientId));
  const sign = (walletAddress: string, clientId = own) =>
    walletHandlers(replica.deps).signDigest(
      { walletAddress, digest: randomBytes(32), derivationContext: '' } as never,
      rpcContext(clientId, { subject: subject(clientId) }),
    );

  test('only the blueprint service may call', () => {
    const asks = (clientId: string) => mayOwnWallets({ clientId, spiffeId: '' });
    expect(asks(own)).toBe(true);
    for (const other of ['service-operator', 'service-register', 'service-tenant', 'validator-0', ''])
      expect(asks(other)).toBe(false);
  });

  test('a name has one wallet, with which its service alone signs', async () => {
    const [first, second] = await Promise.all([ensure('role-0'), ensure('role-0')]);
    expect(first).toBe(second);
    expect(await ensure('role-1')).not.toBe(first);
    expect((await sign(first)).signature).toHaveLength(64);
    await expect(sign(first, 'service-register')).rejects.toMatchObject({ code: 'PERSON_REQUIRED' });
  });

  test('an erased wallet has no key, signs nothing and is not made again', async () => {
    const address = await ensure('gone');
    await sign(address);
    await erase(['gone', 'unknown', 'gone']);
    await erase(['gone']);
    await expect(sign(address)).rejects.toMatchObject({ code: 'WALLET_DELETED' });
    await expect(ensure('gone')).rejects.toMatchObject({ code: 'WALLET_DELETED' });
    const { rows } = await replica.db.pool.query(
      `select s.wallet_id from wallet_secrets s join wallets w on w.id = s.wallet_id where w.address = $1`,
      [address],
    );
    expect(rows).toEqual([]);
  });

  test('another service erases none of them', async () => {
    const address = await ensure('kept');
    await erase(['kept'], 'service-operator');
    expect((await sign(address)).signature).toHaveLength(64);
  });

  test('malformed names and too many of them are refused', async () => {
    for (const name of ['', 'A', 'a_b', '-a', 'a'.repeat(64)]) {
      await expect(ensure(name)).rejects.toMatchObject({ kind: 'invalid' });
      await expect(erase([name])).rejects.toMatchObject({ kind: 'invalid' });
    }
    await expect(erase(Array.from({ length: 65 }, (_, at) => `n-${at}`))).rejects.toMatchObject({
      kind: 'invalid',
    });
  });
});
