import { randomBytes } from 'node:crypto';
import { walletAddress } from '#core/crypto/address.ts';
import { createSigner, type Signer } from '#core/crypto/sign.ts';
import { refusal } from '../../errors.ts';
import {
  type KeySource,
  type KeyUse,
  type OrganizationKeys,
  organizationKeyOf,
} from './organization-keys.ts';

interface FakeWallet {
  readonly address: string;
  readonly organizationId: string;
  readonly source: KeySource;
  state: 'usable' | 'locked' | 'ineligible' | 'replaced';
  readonly keys: Record<KeyUse, Signer>;
}

/** The wallet service with keys in memory: real P-256 keys, and the refusals of its routes. */
export interface FakeKeys extends OrganizationKeys {
  /** Makes the present wallet of an organisation; an earlier one is replaced. */
  makeWallet(organizationId: string, source?: KeySource): FakeWallet;
  /** What signs instead of the key. */
  forge: ((use: KeyUse, digest: Uint8Array) => Buffer) | undefined;
  /** While true nothing answers. */
  isDown: boolean;
  /** Signatures so far. */
  signed: number;
}

export function fakeKeys(): FakeKeys {
  const wallets: FakeWallet[] = [];
  const find = (organizationId: string) =>
    wallets.find((wallet) => wallet.organizationId === organizationId && wallet.state !== 'replaced');
  const get = ({
    organizationId,
    walletAddress: address,
  }: {
    organizationId: string;
    walletAddress: string;
  }) => {
    if (fake.isDown) throw refusal('WALLETS_UNAVAILABLE');
    const wallet = find(organizationId);
    if (wallet?.address !== address) throw refusal('WALLET_NOT_FOUND');
    if (wallet.state === 'ineligible') throw refusal('CERT_KEY_NOT_ELIGIBLE');
    if (wallet.state === 'locked') throw refusal('WALLET_LOCKED');
    return wallet;
  };
  const fake: FakeKeys = {
    isDown: false,
    signed: 0,
    forge: undefined,
    makeWallet: (organizationId, source = 'Primary') => {
      const earlier = find(organizationId);
      if (earlier !== undefined) earlier.state = 'replaced';
      const keys = { issuer: makeKey(), root: makeKey() };
      const address = walletAddress('NISTP256', makeKey().publicKey);
      const wallet: FakeWallet = { address, organizationId, source, state: 'usable', keys };
      wallets.push(wallet);
      return wallet;
    },
    findWallet: async (organizationId) => {
      if (fake.isDown) throw refusal('WALLETS_UNAVAILABLE');
      return find(organizationId)?.address;
    },
    get: async (owner, use) => {
      const { keys, source } = get(owner);
      return organizationKeyOf(Buffer.from(keys[use].publicKey), use === 'issuer' ? source : 'HaipCoKey');
    },
    sign: async (owner, use, digest) => {
      const { keys } = get(owner);
      fake.signed += 1;
      return fake.forge === undefined ? Buffer.from(keys[use].signDigest(digest)) : fake.forge(use, digest);
    },
  };
  return fake;
}

const makeKey = () => createSigner({ algorithm: 'NISTP256', privateKey: randomBytes(32) });
