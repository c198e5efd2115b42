import { createHash, createPrivateKey, createPublicKey } from 'node:crypto';
import { ed25519 } from '@noble/curves/ed25519.js';
import { walletAddress } from '#core/crypto/address.ts';
import { unwrapAgreedKey } from '#core/crypto/key-wrap.ts';
import { createSigner } from '#core/crypto/sign.ts';
import { encodeBase64 } from '#core/encoding/base64.ts';
import { AppError } from '#core/errors/errors.ts';
import type { Wallets } from '../clients/wallets.ts';

const x25519Pkcs8 = Buffer.from('302e020100300506032b656e04220420', 'hex');
const x25519Spki = Buffer.from('302a300506032b656e032100', 'hex');

interface TestWallet {
  readonly address: string;
  readonly signer: ReturnType<typeof createSigner>;
  readonly encryptionKey: ReturnType<typeof createPrivateKey>;
  /** Subjects that may use it. */
  readonly people: Set<string>;
  status: string;
}

type Client = Pick<Wallets, 'findKey' | 'findEncryptionKeys' | 'signDigest' | 'unwrapKeys'>;

/** Wallets with real keys; the token of a delegation is `for:{person}`. */
export function createTestWallets() {
  const wallets = new Map<string, TestWallet>();
  /** Called before the key of a signer is given, before a signature and after it. */
  const hooks: {
    beforeFindKey?: (() => void) | undefined;
    beforeSign?: (() => void | Promise<void>) | undefined;
    afterSign?: (() => void) | undefined;
    beforeErase?: (() => void) | undefined;
  } = {};
  const signatures: string[] = [];

  function use(address: string, subjectToken: string): TestWallet {
    const wallet = wallets.get(address);
    const person = /^for:(.+)$/.exec(subjectToken)?.[1];
    if (wallet === undefined || person === undefined || !wallet.people.has(person))
      throw new AppError('forbidden', 'WALLET_ACCESS_DENIED', 'not a wallet of the subject');
    return wallet;
  }

  function add(name: string, ...people: string[]): string {
    const seed = createHash('sha256').update(`wallet ${name}`).digest();
    const signer = createSigner({ algorithm: 'ED25519', privateKey: seed });
    const address = walletAddress('ED25519', ed25519.getPublicKey(seed));
    const key = Buffer.concat([x25519Pkcs8, createHash('sha256').update(`decrypt ${name}`).digest()]);
    const encryptionKey = createPrivateKey({ key, format: 'der', type: 'pkcs8' });
    wallets.set(address, { address, signer, encryptionKey, people: new Set(people), status: 'Active' });
    return address;
  }

  const client: Client = {
    findKey: async (address) => {
      hooks.beforeFindKey?.();
      const wallet = wallets.get(address);
      const publicKey = wallet && encodeBase64(wallet.signer.publicKey);
      return publicKey === undefined ? undefined : { address, algorithm: 'ED25519', publicKey };
    },
    findEncryptionKeys: async (addresses) =>
      addresses.flatMap((address) => {
        const wallet = wallets.get(address);
        if (wallet === undefined) return [];
        const jwk = createPublicKey(wallet.encryptionKey).export({ format: 'jwk' });
        const publicKey = encodeBase64(Buffer.from(jwk.x ?? '', 'base64url'));
        const kid = `${address}#platform:payload-encryption`;
        return [{ address, kid, algorithm: 'X25519', publicKey, status: wallet.status }];
      }),
    signDigest: async (address, digest, subjectToken) => {
      const { signer } = use(address, subjectToken);
      await hooks.beforeSign?.();
      const signature = signer.signDigest(digest);
      signatures.push(encodeBase64(signature));
      hooks.afterSign?.();
      return signature;
    },
    unwrapKeys: async (address, wrapped, subjectToken) => {
      const { encryptionKey } = use(address, subjectToken);
      return wrapped.map(({ epk, apu, apv, encryptedKey }) => {
        const der = Buffer.concat([x25519Spki, epk?.x ?? Buffer.of()]);
        const publicKey = createPublicKey({ key: der, format: 'der', type: 'spki' });
        return { contentKey: unwrapAgreedKey(encryptionKey, { publicKey, apu, apv, encryptedKey }) };
      });
    },
  };

  const made = new Map<string, string>();

  return {
    client,
    /** Wallets of the service itself. */
    own: {
      names: made,
      ensure: async (name: string) => {
        const address = made.get(name) ?? add(name, 'service-blueprint');
        made.set(name, address);
        return address;
      },
      erase: async (names: readonly string[]) => {
        hooks.beforeErase?.();
        for (const name of names) {
          wallets.delete(made.get(name) ?? '');
          made.delete(name);
        }
      },
    },
    hooks,
    signatures,
    /** Makes a wallet of a person, from its name. */
    add,
    setStatus(address: string, status: string): void {
      const wallet = wallets.get(address);
      if (wallet !== undefined) wallet.status = status;
    },
    remove: (address: string) => void wallets.delete(address),
  };
}
