import { createHash, createSign, generateKeyPairSync, type KeyObject, randomBytes } from 'node:crypto';

/** An authenticator in software: ES256, attestation `none`, one credential (WebAuthn Level 3, 6). */
export class SoftAuthenticator {
  readonly credentialId = randomBytes(32);
  readonly #key: KeyObject;
  readonly #cose: Buffer;
  /** Of a passkey that is synchronised, 0. */
  counter: number;
  userHandle = '';

  constructor(counter = 0) {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const { x = '', y = '' } = publicKey.export({ format: 'jwk' });
    this.#key = privateKey;
    this.counter = counter;
    // COSE_Key of RFC 9052: kty EC2, alg ES256, crv P-256.
    this.#cose = Buffer.concat([
      Buffer.from('a5010203262001215820', 'hex'),
      Buffer.from(x, 'base64url'),
      Buffer.from('225820', 'hex'),
      Buffer.from(y, 'base64url'),
    ]);
  }

  get id(): string {
    return this.credentialId.toString('base64url');
  }

  /** Answers `navigator.credentials.create`. */
  create(options: Options, change: Change = {}) {
    this.userHandle = options.user?.id ?? '';
    const length = Buffer.alloc(2);
    length.writeUInt16BE(this.credentialId.length);
    const attested = Buffer.concat([Buffer.alloc(16), length, this.credentialId, this.#cose]);
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
    const signature = createSign('sha256')
      .update(Buffer.concat([authenticatorData, hash]))
      .sign(this.#key);
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
