import type { Api } from '../harness/api.ts';
import { createOrganization, createPerson, type Person } from '../harness/governance.ts';
import { createWallet } from '../harness/journey.ts';
import { codeOf, type OrganizationKeys, organizationKeys, walletUse } from '../harness/organization-keys.ts';
import type { Steps } from './steps.ts';

interface City {
  readonly id: string;
  readonly keys: OrganizationKeys;
  readonly administrator: Person;
  readonly officer: Person;
}

/** The keys of an organisation and the ends of wallets, as their administrator and owners see them. */
export async function walletKeys(steps: Steps, { api, token }: { api: Api; token: string }): Promise<void> {
  const city = await steps.run('create a city with an administrator and an officer', async () => {
    const organization = await createOrganization(api, token, 'city');
    const administrator = await createPerson(api, token, organization, {
      name: 'administrator',
      role: 'Administrator',
    });
    const officer = await createPerson(api, token, organization, { name: 'officer', role: 'User' });
    const keys = organizationKeys(api, administrator.token, organization.id);
    return [organization.subdomain, { id: organization.id, keys, administrator, officer }];
  });
  const words = await steps.run('make the master key of the city', async () => {
    const { mnemonic = '', walletAddress } = await city.keys.makeMaster();
    const count = mnemonic.split(' ').length;
    const again = codeOf(await city.keys.send('POST', '/master-key', {}), 409);
    return [`${walletAddress.slice(0, 14)}…, ${count} words shown once; again: ${again}`, mnemonic];
  });
  await useDerivedKey(steps, api, city);
  await endPersonalWallet(steps, api, city.officer);
  await steps.run('lose the wallet of the city and recover it from its words', async () => {
    const { token: chief } = city.administrator;
    const recover = async () => {
      const json = { keyType: 'ED25519', mnemonic: words, organizationId: city.id };
      const { body } = await api.expect([200, 201], 'POST', '/api/wallets/recover', { token: chief, json });
      return body as { readonly walletAddress: string; readonly ownerKind: string };
    };
    const { walletAddress } = await recover();
    const wallet = walletUse(api, chief, walletAddress);
    await wallet.set('Locked');
    await wallet.remove();
    const back = await recover();
    if (back.walletAddress !== walletAddress || back.ownerKind !== 'Organization')
      throw new Error(`${back.walletAddress} of ${back.ownerKind} came back`);
    return [`${back.walletAddress.slice(0, 14)}… of the ${back.ownerKind.toLowerCase()}`, undefined];
  });
}

async function useDerivedKey(steps: Steps, api: Api, { keys, officer }: City): Promise<void> {
  const key = await steps.run('derive a key of the city, with which the officer signs', async () => {
    const userId = await keys.memberId(officer.email);
    const derived = await keys.derive({ userId, usage: 'Identity' });
    const again = await keys.derive({ userId, usage: 'Identity' });
    const signed = await walletUse(api, officer.token, derived.walletAddress).sign('permit');
    if (signed.status !== 200 || again.derivedKeyId !== derived.derivedKeyId)
      throw new Error(`signing answered ${signed.status}`);
    return [derived.derivationPath, derived];
  });
  const former = walletUse(api, officer.token, key.walletAddress);
  const sealed = await former.seal('an application');
  const successor = await steps.run('rotate it: the former key opens and signs nothing', async () => {
    const rotated = await keys.rotate(key.derivedKeyId);
    const refused = codeOf(await former.sign('permit'), 403);
    const text = await former.open(sealed);
    return [`opened "${text}", signing: ${refused}`, rotated];
  });
  await steps.run('revoke its successor, twice', async () => {
    const first = await keys.revoke(successor.newDerivedKeyId);
    const second = await keys.revoke(successor.newDerivedKeyId);
    const refused = codeOf(await walletUse(api, officer.token, successor.walletAddress).sign('permit'), 423);
    if (first.revokedAt !== second.revokedAt) throw new Error('the repetition shows another time');
    return [`both at ${first.revokedAt}, signing: ${refused}`, undefined];
  });
}

async function endPersonalWallet(steps: Steps, api: Api, { token }: Person): Promise<void> {
  await steps.run('lock a wallet, try it, unlock it, lock it and delete it', async () => {
    const { id } = await createWallet(api, token, 'ED25519');
    const wallet = walletUse(api, token, id);
    const unlocked = codeOf(await wallet.remove(), 409);
    await wallet.set('Locked');
    const locked = codeOf(await wallet.sign('anything'), 423);
    await wallet.set('Active');
    const { status } = await wallet.sign('anything');
    await wallet.set('Locked');
    await wallet.remove();
    const deleted = codeOf(await wallet.sign('anything'), 410);
    return [`${unlocked}, ${locked}, ${status}, ${deleted}`, undefined];
  });
}
