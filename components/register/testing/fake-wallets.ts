import { REGISTER_ATTESTATION } from '#core/crypto/derivation-context.ts';
import { utf8 } from '#core/encoding/text.ts';
import { AppError } from '#core/errors/errors.ts';
import { memberDid } from '#core/ledger/did.ts';
import { attestationBytes, attestationDigest } from '#core/ledger/owner-attestation.ts';
import { signingDigest } from '#core/ledger/transaction.ts';
import type { WalletKey, Wallets } from '../clients/wallets.ts';
import { type TestKey, testKey } from './keys.ts';

interface FakeWallets extends Wallets {
  /** Lets the bearer of a token sign with a key. */
  own(token: string, key: TestKey): void;
  /** Gives an organisation a wallet; only bearers of `tokens` may sign, with the derived key only. */
  ownByOrganization(wallet: OrganizationTestWallet): void;
  readonly systemTestKey: TestKey;
}

interface OrganizationTestWallet {
  readonly organizationId: string;
  readonly key: TestKey;
  /** The key that it derives for platform:register-attestation. */
  readonly derived: TestKey;
  readonly tokens: readonly string[];
}

function factsOf({ publicKey, algorithm, walletAddress }: TestKey): WalletKey {
  return { publicKey, algorithm, walletAddress };
}

/** The wallet service as this component sees it: keys in memory, owners by token. */
export function fakeWallets(): FakeWallets {
  const owners = new Map<string, { token: string; key: TestKey }>();
  const organizations = new Map<string, OrganizationTestWallet>();
  const system = testKey(200);
  const keyFor = (walletAddress: string, derivationContext: string, token: string): TestKey => {
    const owned = owners.get(walletAddress);
    if (owned !== undefined && owned.token === token && derivationContext === '') return owned.key;
    const wallet = organizations.get(walletAddress);
    const granted = wallet?.tokens.includes(token) && derivationContext === REGISTER_ATTESTATION;
    if (wallet === undefined || !granted) throw new AppError('forbidden', 'FORBIDDEN', 'not your wallet');
    return wallet.derived;
  };
  return {
    systemTestKey: system,
    own(token, key) {
      owners.set(key.walletAddress, { token, key });
    },
    ownByOrganization(wallet) {
      organizations.set(wallet.key.walletAddress, wallet);
    },
    async findKey(address) {
      const owned = owners.get(address);
      return owned && factsOf(owned.key);
    },
    async subjectWallets(token) {
      return [...owners.values()].filter((one) => one.token === token).map((one) => factsOf(one.key));
    },
    async attestationKeys(wallets) {
      return wallets.flatMap((wallet) => {
        const organization = organizations.get(wallet);
        const key = organization?.derived ?? owners.get(wallet)?.key;
        const derivationContext = organization === undefined ? '' : REGISTER_ATTESTATION;
        if (key === undefined) return [];
        return { wallet, walletAddress: wallet, derivationContext, keyAddress: key.walletAddress };
      });
    },
    async organizationWallet(organizationId) {
      const found = [...organizations.values()].find((one) => one.organizationId === organizationId);
      return found && factsOf(found.key);
    },
    async signDigest({ walletAddress, digest, subjectToken, derivationContext }) {
      const key = keyFor(walletAddress, derivationContext, subjectToken);
      return { signature: key.signer.signDigest(digest), key: factsOf(key) };
    },
    async systemKey() {
      return factsOf(system);
    },
    async signControl({ transactionId, payloadHash }) {
      return {
        signature: system.signer.signDigest(signingDigest(transactionId, payloadHash)),
        key: factsOf(system),
      };
    },
    async signOwnership(request) {
      const subject = memberDid(system.walletAddress);
      const bytes = attestationBytes({ ...request, role: 'Owner', subject });
      return { signature: system.signer.signDigest(attestationDigest(bytes)), key: factsOf(system) };
    },
    async signCheckpoint(_registerId, body) {
      return { signature: system.signer.sign(utf8(body)), key: factsOf(system) };
    },
  };
}
