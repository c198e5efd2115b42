import { utf8 } from '#core/encoding/text.ts';
import { AppError } from '#core/errors/errors.ts';
import { signingDigest } from '#core/ledger/transaction.ts';
import type { WalletKey, Wallets } from '../clients.ts';
import { type TestKey, testKey } from './keys.ts';

export interface FakeWallets extends Wallets {
  /** Lets the bearer of a token sign with a key. */
  own(token: string, key: TestKey): void;
  readonly systemTestKey: TestKey;
}

function factsOf({ publicKey, algorithm, walletAddress }: TestKey): WalletKey {
  return { publicKey, algorithm, walletAddress };
}

/** The wallet service as this component sees it: keys in memory, owners by token. */
export function fakeWallets(): FakeWallets {
  const owners = new Map<string, { token: string; key: TestKey }>();
  const system = testKey(200);
  return {
    systemTestKey: system,
    own(token, key) {
      owners.set(key.walletAddress, { token, key });
    },
    async findKey(address) {
      const owned = owners.get(address);
      return owned && factsOf(owned.key);
    },
    async subjectWallets(token) {
      return [...owners.values()].filter((one) => one.token === token).map((one) => factsOf(one.key));
    },
    async signDigest({ walletAddress, digest, subjectToken }) {
      const owned = owners.get(walletAddress);
      if (owned?.token !== subjectToken) throw new AppError('forbidden', 'FORBIDDEN', 'not your wallet');
      return { signature: owned.key.signer.signDigest(digest), key: factsOf(owned.key) };
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
    async signCheckpoint(_registerId, body) {
      return { signature: system.signer.sign(utf8(body)), key: factsOf(system) };
    },
  };
}
