import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';

const bytesOf = (hex: string) => Buffer.from(hex, 'hex');

/** A key pair, its COSE_Key (RFC 9052, 7) and the hash that it signs with. */
interface Pair {
  readonly key: KeyObject;
  readonly cose: Buffer;
  readonly hash: string | null;
}

function ellipticPair(namedCurve: string, head: string, between: string, hash: string): Pair {
  const { privateKey: key, publicKey } = generateKeyPairSync('ec', { namedCurve });
  const { x = '', y = '' } = publicKey.export({ format: 'jwk' });
  const [left, right] = [Buffer.from(x, 'base64url'), Buffer.from(y, 'base64url')];
  return { key, hash, cose: Buffer.concat([bytesOf(head), left, bytesOf(between), right]) };
}

/** By the name of the algorithm; each first byte string is the map with kty, alg and crv. */
const pairs = {
  ES256: () => ellipticPair('P-256', 'a5010203262001215820', '225820', 'sha256'),
  ES384: () => ellipticPair('P-384', 'a501020338222002215830', '225830', 'sha384'),
  EdDSA: (): Pair => {
    const { privateKey: key, publicKey } = generateKeyPairSync('ed25519');
    const { x = '' } = publicKey.export({ format: 'jwk' });
    return {
      key,
      hash: null,
      cose: Buffer.concat([bytesOf('a4010103272006215820'), Buffer.from(x, 'base64url')]),
    };
  },
  RS256: (): Pair => {
    const { privateKey: key, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
    const { n = '' } = publicKey.export({ format: 'jwk' });
    const cose = [bytesOf('a401030339010020590100'), Buffer.from(n, 'base64url'), bytesOf('2143010001')];
    return { key, hash: 'sha256', cose: Buffer.concat(cose) };
  },
};

/** An authenticator in software: attestation `none`, one credential (WebAuthn Level 3, 6). */
export class SoftAuthenticator {
  readonly credentialId = randomBytes(32);
  readonly #pair: Pair;
  /** Of a passkey that is synchronised, 0. */
  counter: number;
  userHandle = '';

  constructor(counter = 0, algorithm: keyof typeof pairs = 'ES256') {
    this.#pair = pairs[algorithm]();
    this.counter = counter;
  }

  get id(): string {
    return this.credentialId.toString('base64url');
  }

  /** Answers `navigator.credentials.create`. */
  create(options: Options, change: Change = {}) {
    this.userHandle = options.user?.id ?? '';
    const length = Buffer.alloc(2);
    length.writeUInt16BE(this.credentialId.length);
    const attested = Buffer.concat([Buffer.alloc(16), length, this.credentialId, this.#pair.cose]);
    const authData = Buffer.concat([this.#head(options, change, 0x40), attested]);
    const size = Buffer.alloc(2);
    size.writeUInt16BE(authData.length);
    // {"fmt": "none", "attStmt": {}, "authData": bytes}
    const attestationObject = Buffer.concat([
      Buffer.from('a363666d74646e6f6e656761747453746d74a068617574684461746159', 'hex'),
      size,
      authData,
    ]);
    return {
      ...this.#credential(),
      response: {
        clientDataJSON: clientData('webauthn.create', options, change).toString('base64url'),
        attestationObject: attestationObject.toString('base64url'),
        transports: ['internal'],
      },
    };
  }

  /** Answers `navigator.credentials.get`. */
  get(options: Options, change: Change = {}) {
    const authenticatorData = this.#head(options, change, 0);
    const clientDataJSON = clientData('webauthn.get', options, change);
    const hash = createHash('sha256').update(clientDataJSON).digest();
    const signature = sign(this.#pair.hash, Buffer.concat([authenticatorData, hash]), this.#pair.key);
    if (change.spoilsSignature === true) signature[signature.length - 1] = (signature.at(-1) ?? 0) ^ 1;
    return {
      ...this.#credential(),
      response: {
        clientDataJSON: clientDataJSON.toString('base64url'),
        authenticatorData: authenticatorData.toString('base64url'),
        signature: signature.toString('base64url'),
        userHandle: change.userHandle ?? this.userHandle,
      },
    };
  }

  #credential() {
    return { id: this.id, rawId: this.id, type: 'public-key', clientExtensionResults: {} };
  }

  #head(options: Options, change: Change, more: number): Buffer {
    const rpId = change.rpId ?? options.rp?.id ?? options.rpId ?? '';
    const counter = Buffer.alloc(4);
    counter.writeUInt32BE(this.counter);
    const flags = 0x01 | (change.withoutVerification === true ? 0 : 0x04) | more;
    return Buffer.concat([createHash('sha256').update(rpId).digest(), Buffer.of(flags), counter]);
  }
}

/** What differs from an honest answer. */
interface Change {
  readonly origin?: string;
  readonly rpId?: string;
  readonly challenge?: string;
  readonly withoutVerification?: boolean;
  readonly spoilsSignature?: boolean;
  readonly userHandle?: string;
}

interface Options {
  readonly challenge: string;
  readonly rpId?: string;
  readonly rp?: { readonly id?: string };
  readonly user?: { readonly id: string };
}

export const origin = 'https://ledger.example.org';

function clientData(type: string, options: Options, change: Change): Buffer {
  const challenge = change.challenge ?? options.challenge;
  return Buffer.from(
    JSON.stringify({ type, challenge, origin: change.origin ?? origin, crossOrigin: false }),
  );
}
