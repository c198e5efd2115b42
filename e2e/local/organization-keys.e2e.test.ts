import { createPublicKey, randomUUID, verify } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { createOrganization, createPerson, type Person } from '../harness/governance.ts';
import { createRegister, createWallet, waitOnline } from '../harness/journey.ts';
import { codeOf, type OrganizationKeys, organizationKeys, walletUse } from '../harness/organization-keys.ts';
import { installation } from '../harness/shared-system.ts';

const here = installation();
const signature = z.object({ signature: z.string(), publicKey: z.string() });

/** Judges an Ed25519 signature with node:crypto alone. */
function isSignatureOf(publicKey: string, text: string, signed: string): boolean {
  const spki = Buffer.concat([
    Buffer.from('302a300506032b6570032100', 'hex'),
    Buffer.from(publicKey, 'base64'),
  ]);
  const key = createPublicKey({ key: spki, format: 'der', type: 'spki' });
  return verify(null, Buffer.from(text), key, Buffer.from(signed, 'base64'));
}

describe('keys of an organisation and the ends of wallets, from outside', () => {
  let organizationId: string;
  let administrator: Person;
  let officer: Person;
  let officerId: string;
  let keys: OrganizationKeys;
  const words: string[] = [];

  beforeAll(async () => {
    const organization = await createOrganization(here.api, here.token(), 'keys');
    organizationId = organization.id;
    const person = (name: string, role: 'Administrator' | 'User') =>
      createPerson(here.api, here.token(), organization, { name, role });
    administrator = await person('administrator', 'Administrator');
    officer = await person('officer', 'User');
    keys = organizationKeys(here.api, administrator.token, organizationId);
    officerId = await keys.memberId(officer.email);
  });

  test('master key: words once, by Idempotency-Key without them, made again while nothing was derived', async () => {
    const lost = await keys.makeMaster({}, 'answer-lost');
    expect(lost.mnemonic?.split(' ')).toHaveLength(24);
    const repeated = await keys.makeMaster({}, 'answer-lost');
    expect(repeated).toMatchObject({ walletAddress: lost.walletAddress });
    expect(repeated.mnemonic).toBeUndefined();
    expect(codeOf(await keys.send('POST', '/master-key', {}), 409)).toBe('ORGANIZATION_WALLET_EXISTS');
    const made = await keys.makeMaster({ replaces: lost.walletAddress });
    expect(made.walletAddress).not.toBe(lost.walletAddress);
    words.push(made.mnemonic ?? '');
    const strangers = await keys.send('POST', '/derive-key', { userId: randomUUID(), usage: 'Identity' });
    expect(codeOf(strangers, 422)).toBe('MEMBER_UNKNOWN');
  });

  test('derive, sign, rotate, read, revoke', async () => {
    const name = { userId: officerId, usage: 'Identity' };
    const race = await Promise.all([keys.derive(name), keys.derive(name)]);
    const [key] = race;
    expect(race[1]).toEqual(key);
    const former = walletUse(here.api, officer.token, key.walletAddress);
    const signed = signature.parse((await former.sign('permit')).body);
    expect(signed.publicKey).toBe(key.publicKey);
    expect(isSignatureOf(key.publicKey, 'permit', signed.signature)).toBe(true);
    expect((await walletUse(here.api, administrator.token, key.walletAddress).sign('permit')).status).toBe(
      403,
    );
    const sealed = await former.seal('an application');

    const rotated = await keys.rotate(key.derivedKeyId, 'rotation');
    expect(await keys.rotate(key.derivedKeyId, 'rotation')).toEqual(rotated);
    expect(codeOf(await keys.send('POST', `/keys/${key.derivedKeyId}/rotate`), 409)).toBe('KEY_NOT_ACTIVE');
    expect(codeOf(await former.sign('permit'), 403)).toBe('KEY_ROTATED');
    expect(await former.open(sealed)).toBe('an application');
    const present = walletUse(here.api, officer.token, rotated.walletAddress);
    const again = signature.parse((await present.sign('permit')).body);
    expect(isSignatureOf(rotated.publicKey, 'permit', again.signature)).toBe(true);

    const first = await keys.revoke(rotated.newDerivedKeyId);
    expect(await keys.revoke(rotated.newDerivedKeyId)).toEqual(first);
    expect(codeOf(await present.sign('permit'), 423)).toBe('WALLET_LOCKED');
    const { body } = await keys.send('GET', '/keys');
    const listed = z.object({ items: z.array(z.object({ status: z.string() })) }).parse(body);
    expect(listed.items.map(({ status }) => status).sort()).toEqual(['Revoked', 'Rotated']);

    const recorded = async () => {
      const path = `/api/organizations/${organizationId}/audit?eventType=WalletChanged`;
      const { body: audit } = await here.api.expect(200, 'GET', path, { token: administrator.token });
      return JSON.stringify(audit);
    };
    await expect.poll(recorded, { timeout: 10_000 }).toContain('KeyRevoked');
    for (const act of ['MasterKeyCreated', 'MasterKeyReplaced', 'KeyDerived', 'KeyRotated']) {
      expect(await recorded()).toContain(`"${act}"`);
    }
  });

  test('a revoked key is revoked on the registers where its participant published it', async () => {
    const key = await keys.derive({ userId: officerId, usage: 'Identity' });
    const registerId = await createRegister(
      here.api,
      administrator.token,
      'Published keys',
      administrator.wallet,
    );
    await waitOnline(here.api, administrator.token, registerId);
    const { walletAddress, publicKey } = key;
    const addresses = [{ walletAddress, publicKey, algorithm: 'ED25519' }];
    const payload = Buffer.from(JSON.stringify({ participantId: 'officer', addresses })).toString('base64');
    const json = { transactionType: 'Participant', senderAddress: walletAddress, payload };
    const path = `/api/registers/${registerId}`;
    await here.api.expect(202, 'POST', `${path}/transactions`, { token: officer.token, json });
    const resolved = async () => {
      const call = { token: officer.token, json: { walletAddresses: [walletAddress] } };
      const { body } = await here.api.expect(200, 'POST', `${path}/participants/resolve-public-keys`, call);
      return body;
    };
    const published = { [walletAddress]: expect.objectContaining({ status: 'Active' }) };
    await expect.poll(resolved, { timeout: 20_000 }).toMatchObject({ resolved: published, revoked: [] });
    await keys.revoke(key.derivedKeyId);
    await expect.poll(resolved, { timeout: 20_000 }).toEqual({
      resolved: {},
      notFound: [],
      revoked: [walletAddress],
    });
  });

  test('an officer who leaves the organisation signs with its keys no more', async () => {
    const { walletAddress } = await keys.derive({ userId: officerId, usage: 'Governance' });
    const wallet = walletUse(here.api, officer.token, walletAddress);
    expect((await wallet.sign('permit')).status).toBe(200);
    await here.api.expect(204, 'DELETE', `/api/organizations/${organizationId}/users/${officerId}`, {
      token: administrator.token,
    });
    await expect.poll(async () => (await wallet.sign('permit')).status, { timeout: 10_000 }).toBe(401);
    const derived = await keys.send('POST', '/derive-key', { userId: officerId, usage: 'Communications' });
    expect(codeOf(derived, 422)).toBe('MEMBER_UNKNOWN');
  });

  test('lock, try, unlock, lock, delete; the words bring the wallet back', async () => {
    const { token } = administrator;
    const own = await createWallet(here.api, token, 'ED25519');
    const wallet = walletUse(here.api, token, own.id);
    expect(codeOf(await wallet.remove(), 409)).toBe('WALLET_NOT_LOCKED');
    await wallet.set('Locked');
    expect(codeOf(await wallet.sign('text'), 423)).toBe('WALLET_LOCKED');
    await wallet.set('Active');
    expect((await wallet.sign('text')).status).toBe(200);
    await wallet.set('Locked');
    expect((await wallet.remove()).status).toBe(204);
    expect((await wallet.remove()).status).toBe(204);
    expect(codeOf(await wallet.sign('text'), 410)).toBe('WALLET_DELETED');
  });

  test('the wallet of the organisation comes back from its words as the organisation’s', async () => {
    const { token } = administrator;
    const recover = (json: object) =>
      here.api.send('POST', '/api/wallets/recover', {
        token,
        json: { keyType: 'ED25519', mnemonic: words.at(-1), ...json },
      });
    const known = z.object({ walletAddress: z.string() }).parse((await recover({ organizationId })).body);
    const wallet = walletUse(here.api, token, known.walletAddress);
    await wallet.set('Locked');
    expect((await wallet.remove()).status).toBe(204);
    expect(codeOf(await recover({}), 409)).toBe('WALLET_EXISTS');
    const back = await recover({ organizationId });
    expect([back.status, back.body]).toMatchObject([
      201,
      { walletAddress: known.walletAddress, ownerKind: 'Organization', organizationId, status: 'Active' },
    ]);
  });
});
