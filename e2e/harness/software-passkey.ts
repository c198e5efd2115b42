import { createHash, generateKeyPairSync, randomBytes, sign } from 'node:crypto';

interface Creation {
  readonly challenge: string;
  readonly rp: { readonly id: string };
  readonly user: { readonly id: string };
}

const hashOf = (bytes: Buffer | string) => createHash('sha256').update(bytes).digest();
const text = (bytes: Buffer) => bytes.toString('base64url');
const present = 0x01;
const verified = 0x04;
const attested = 0x40;

/** A passkey of P-256 that is synchronised, so its counter stays 0 (WebAuthn Level 3, 6). */
export class SoftwarePasskey {
  readonly #key = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  readonly #id = randomBytes(32);
  readonly #origin: string;
  #user = '';

  constructor(origin: string) {
    this.#origin = origin;
  }

  /** The COSE_Key: kty EC2, alg ES256, crv P-256 (RFC 9052, 7). */
  get publicKey(): Buffer {
    const { x = '', y = '' } = this.#key.publicKey.export({ format: 'jwk' });
    const [head, between] = [Buffer.from('a5010203262001215820', 'hex'), Buffer.from('225820', 'hex')];
    return Buffer.concat([head, Buffer.from(x, 'base64url'), between, Buffer.from(y, 'base64url')]);
  }

  /** Answers `navigator.credentials.create`, with the attestation `none`. */
  create({ challenge, rp, user }: Creation): object {
    this.#user = user.id;
    const credential = Buffer.concat([
      Buffer.alloc(16),
      Buffer.of(0, this.#id.length),
      this.#id,
      this.publicKey,
    ]);
    const data = Buffer.concat([authenticatorData(rp.id, attested), credential]);
    const length = Buffer.of(data.length >> 8, data.length & 0xff);
    // {"fmt": "none", "attStmt": {}, "authData": bytes}
    const head = Buffer.from('a363666d74646e6f6e656761747453746d74a068617574684461746159', 'hex');
    return this.#answer({
      clientDataJSON: text(this.#clientData('webauthn.create', challenge)),
      attestationObject: text(Buffer.concat([head, length, data])),
    });
  }

  /** Answers `navigator.credentials.get`. */
  get(challenge: string, rpId: string): object {
    const data = authenticatorData(rpId, 0);
    const client = this.#clientData('webauthn.get', challenge);
    const signature = sign('sha256', Buffer.concat([data, hashOf(client)]), this.#key.privateKey);
    return this.#answer({
      clientDataJSON: text(client),
      authenticatorData: text(data),
      signature: text(signature),
      userHandle: this.#user,
    });
  }

  #clientData(type: string, challenge: string): Buffer {
    return Buffer.from(JSON.stringify({ type, challenge, origin: this.#origin, crossOrigin: false }));
  }

  #answer(response: object): object {
    const id = text(this.#id);
    return { id, rawId: id, type: 'public-key', clientExtensionResults: {}, response };
  }
}

function authenticatorData(rpId: string, more: number): Buffer {
  return Buffer.concat([hashOf(rpId), Buffer.of(present | verified | more), Buffer.alloc(4)]);
}
