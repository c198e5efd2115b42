import { randomBytes, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { controlKey } from '../system-signer/keys.ts';
import { administrator, openFixture, person, type Replica, rpcContext } from '../testing/fixture.ts';
import { createHttpClient, type HttpClient } from '../testing/http-client.ts';
import { walletHandlers } from './rpc.ts';

const ATTESTATION = 'platform:register-attestation';

describe('attestation keys', () => {
  const organizationId = randomUUID();
  const admin = administrator(organizationId);
  const second = administrator(organizationId);
  const alice = person();
  let replica: Replica;
  let client: HttpClient;
  let organization: { id: string; walletAddress: string };

  beforeAll(async () => {
    replica = await openFixture('wallet_attestation_keys');
    client = createHttpClient(replica);
    client.callers.set('admin', admin).set('second', second).set('alice', alice);
    const body = { title: 'Ours', keyType: 'ED25519', organizationId };
    organization = (await client.call('admin', 'POST /api/wallets', { body })).body;
  });

  afterAll(async () => {
    await client.close();
    await replica.close();
  });

  const handlers = () => walletHandlers(replica.deps);
  const find = async (...wallets: string[]) =>
    (await handlers().findAttestationKeys({ wallets } as never, rpcContext('service-register'))).keys ?? [];
  const sign = (subject: typeof admin, derivationContext: string) => {
    const { walletAddress } = organization;
    const request = { walletAddress, digest: randomBytes(32), derivationContext };
    return handlers().signDigest(request as never, rpcContext('service-register', { subject }));
  };

  test('an organisation attests with the derived key that also signs', async () => {
    const [byAddress, byId] = await find(organization.walletAddress, organization.id);
    expect(byAddress).toMatchObject({
      wallet: organization.walletAddress,
      walletAddress: organization.walletAddress,
      derivationContext: ATTESTATION,
    });
    expect(byId).toEqual({ ...byAddress, wallet: organization.id });
    expect(byAddress?.key?.walletAddress).not.toBe(organization.walletAddress);
    const { key } = await sign(admin, ATTESTATION);
    expect(key).toEqual(byAddress?.key);
  });

  test('a person attests with the primary key of the wallet, of any type', async () => {
    for (const keyType of ['ED25519', 'NISTP256', 'RSA']) {
      const wallet = await client.made('alice', keyType);
      expect(await find(wallet.walletAddress)).toEqual([
        {
          wallet: wallet.walletAddress,
          walletAddress: wallet.walletAddress,
          derivationContext: '',
          key: {
            walletAddress: wallet.walletAddress,
            publicKey: wallet.publicKey,
            algorithm: wallet.algorithm,
          },
        },
      ]);
    }
  });

  test('unknown wallets and system keys are left out; too many are refused', async () => {
    await controlKey(replica.deps);
    const { rows } = await replica.db.pool.query(`SELECT address FROM wallets WHERE kind = 'System'`);
    const system = rows.map((row: { address: string }) => row.address);
    expect(system).toHaveLength(1);
    expect(await find(randomUUID(), 'w1nothing', ...system)).toEqual([]);
    const tooMany = Array.from({ length: 65 }, () => randomUUID());
    await expect(find(...tooMany)).rejects.toMatchObject({ kind: 'invalid' });
  });

  test('signing needs the grant and the context: another Administrator and the primary key are refused', async () => {
    await expect(sign(second, ATTESTATION)).rejects.toMatchObject({ code: 'WALLET_ACCESS_DENIED' });
    await expect(sign(admin, '')).rejects.toMatchObject({ code: 'WALLET_ACCESS_DENIED' });
  });

  test('the wallet of an organisation is found while it is active', async () => {
    const ofOrganization = async (id: string) =>
      (
        await handlers().findOrganizationWallet(
          { organizationId: id } as never,
          rpcContext('service-register'),
        )
      ).wallet?.walletAddress;
    expect(await ofOrganization(organizationId)).toBe(organization.walletAddress);
    expect(await ofOrganization(randomUUID())).toBeUndefined();
    expect(await ofOrganization('')).toBeUndefined();
    const setStatus = (status: string) =>
      replica.db.pool.query('UPDATE wallets SET status = $2 WHERE id = $1', [organization.id, status]);
    await setStatus('Locked');
    expect(await ofOrganization(organizationId)).toBeUndefined();
    await setStatus('Active');
  });
});
