import { walletAddress } from '#core/crypto/address.ts';
import type { Algorithm } from '#core/crypto/algorithm.ts';
import { createSigner, type Signer } from '#core/crypto/sign.ts';
import { encodeBase64 } from '#core/encoding/base64.ts';
import { memberDid } from '#core/ledger/did.ts';
import type { Random } from '#kit/testing/random.ts';

/** The holder of a key. */
export interface Person {
  readonly signer: Signer;
  readonly address: string;
  readonly did: string;
  readonly key: { readonly publicKey: string; readonly algorithm: Algorithm };
}

/** Participants of a history: people, validators by id, the installation. */
export interface Cast {
  readonly people: readonly Person[];
  readonly validatorKeys: readonly Person[];
  readonly system: Person;
}

function person(random: Random, algorithm: Algorithm = 'ED25519'): Person {
  const signer = createSigner({ algorithm, privateKey: random.bytes(32) });
  const address = walletAddress(algorithm, signer.publicKey);
  const key = { publicKey: encodeBase64(signer.publicKey), algorithm };
  return { signer, address, did: memberDid(address), key };
}

/** Seven people, one of them with another algorithm, the keys of nine validators, and the installation. */
export function createCast(random: Random): Cast {
  const algorithmOf = (index: number): Algorithm => (index === 2 ? 'NISTP256' : 'ED25519');
  return {
    people: Array.from({ length: 7 }, (_, index) => person(random, algorithmOf(index))),
    validatorKeys: Array.from({ length: 9 }, () => person(random)),
    system: person(random),
  };
}
